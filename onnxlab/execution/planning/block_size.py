"""The size of the blocks of channels that a model was saved with: ONNX Runtime writes it down nowhere.

ONNX Runtime blocks a convolution's image where it has at least a block of channels, and fills filters and images up to
whole blocks; so the shapes of a model often allow for one size alone. Source: nchwc_transformer.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from onnxlab.errors import RunError
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.image_layouts import BLOCKED, BLOCKS
from onnxlab.shapes import Fact


@dataclass(slots=True)
class BlockSize:
    """Evidence of the nodes of a model for the size of its blocks, taken in topological order.

    Attributes:
        evidence: {size: label of the first node that allows for this size alone}.
    """

    evidence: dict[int, str] = field(default_factory=dict)
    _blocked: set[str] = field(default_factory=set)

    def look(self, nodes: Iterable[NodeView], fact: Callable[[str], Fact]) -> None:
        """Take the evidence of the nodes of a scope."""
        self._blocked.clear()
        for node in nodes:
            blocked = not self._blocked.isdisjoint(node.inputs)
            if node.domain == BLOCKED:
                sizes = [size for size in BLOCKS if self._fits(node, fact, size)]
                if len(sizes) == 1:
                    self.evidence.setdefault(sizes[0], node.label)
                blocked = node.op_type != "ReorderOutput"
            if blocked:
                self._blocked.update(filter(None, node.outputs))

    def size(self) -> int | None:
        """The size; None where the shapes allow for several.

        Raises:
            RunError: nodes contradict each other.
        """
        if len(self.evidence) > 1:
            nodes = ", ".join(f"{size} in {label}" for size, label in sorted(self.evidence.items()))
            raise RunError(f"channels lie in blocks of different sizes: {nodes}; a model has one size, so parts of it "
                           "were saved for different processors: save the whole model again with one")  # fmt: skip
        return next(iter(self.evidence), None)

    def _fits(self, node: NodeView, fact: Callable[[str], Fact], size: int) -> bool:
        """Whether ONNX Runtime could have written a node for blocks of that size."""
        if node.op_type == "Conv" and len(node.inputs) > 1:
            return self._convolution_fits(node, fact(node.inputs[1]), size)
        if node.op_type == "ReorderInput":
            return True
        source = _dim(fact(node.inputs[0]), 1) if node.inputs else None
        if source is None:
            return True
        channels = node.attributes.get("channels", 0) if node.op_type == "ReorderOutput" else 0
        return source % size == 0 and channels in (0, *range(source - size + 1, source + 1))

    def _convolution_fits(self, node: NodeView, filters: Fact, size: int) -> bool:
        outputs, channels = _dim(filters, 0), _dim(filters, 1)
        if outputs is None or channels is None:
            return True
        if node.inputs[0] not in self._blocked:
            return outputs % size == 0 and channels < size
        depthwise = channels == 1 and node.attributes.get("group", 1) > 1
        return outputs % size == 0 and (depthwise or channels % size == 0)


def _dim(fact: Fact, axis: int) -> int | None:
    """A dim of a tensor, None where it is not known."""
    dims = fact.shape
    size = dims[axis] if dims is not None and len(dims) > axis else None
    return size if isinstance(size, int) else None
