"""Networks with channels in blocks (NCHWc), as ONNX Runtime's optimizer saves them, written without blocks for a plan.

A blocked value has the dims of the plain one (see `ops.nchwc`). Connected blocked values form an island. Where this
pass knows every node that makes or reads a value of an island, and no value of it is visible outside, the values are
made plain: convolutions get plain filters, and no values are reordered into and out of blocks between them. Any other
island stays as it is. The model is never changed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

import numpy as np

from onnxlab import schemas
from onnxlab.execution.planning.inlining import Fixed
from onnxlab.execution.planning.passes.pass_list import Additions, NodeList, NodePass
from onnxlab.graph.edit.snapshot import NodeView, SnapshotAttributes
from onnxlab.ops import find_traits
from onnxlab.ops.base.image_layouts import BLOCKED
from onnxlab.shapes import TensorFact

_NOTHING = (0, [1, 1], "NOTSET")  # default values of attributes that older versions of pools do not have

# Versions of ai.onnx with which these operators changed.
_SLICE_BY_INPUTS, _PAD_BY_INPUTS, _RESIZE_BY_SIZES = 10, 11, 13

_CHANNELS_FIRST, _CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class WithoutBlocks(NodePass):
    """Networks with channels in blocks, written without."""

    def run(self, draft: NodeList) -> NodeList:
        """The nodes without blocks; `draft` where there are none."""
        if not any(node.domain == BLOCKED for node in draft.nodes):
            return draft
        added = Additions(draft)
        nodes = NchwcToNchw(draft, added).nodes()
        return replace(draft, nodes=nodes, constant=added.constant, fact=added.fact)


class _KeptError(Exception):
    """The blocks have to stay."""


@dataclass(slots=True)
class NchwcToNchw:
    """Nodes without blocks, the constants that they read and the facts of their values.

    A first pass over all nodes collects the islands; a second one replaces the nodes of islands that are known whole.

    Args:
        draft: nodes, some on blocks.
        added: what is added to them.
    """

    draft: NodeList
    added: Additions
    _next: dict[str, str] = field(default_factory=dict)  # {blocked value: another one of its island, or itself}
    _kept: list[str] = field(default_factory=list)  # one value of each island that has to stay
    _apart: set[str] = field(default_factory=set)  # blocked values that have blocks as an axis

    def nodes(self) -> tuple[NodeView, ...]:
        """All nodes; those on blocks are replaced where that is possible."""
        plain = [self._plain(node) for node in self.draft.nodes]
        blocked = set(map(self._island, self._kept))
        for name in [name for name in self.added.facts if name in self._next and self._island(name) in blocked]:
            del self.added.facts[name]
        nodes: list[NodeView] = []
        for node, new in zip(self.draft.nodes, plain, strict=True):
            first = next((name for name in (*node.outputs, *node.inputs) if name in self._next), None)
            nodes += [node] if first is None or self._island(first) in blocked else new
        return tuple(nodes)

    def _plain(self, node: NodeView) -> list[NodeView]:
        """The nodes that replace a node on blocks; its values join one island, which stays where there is none."""
        nodes, stays = [node], False
        try:
            if node.domain == BLOCKED:
                nodes = self._without_blocks(node)
            elif not self._next.keys().isdisjoint(self.draft.scope.reads(node)):
                nodes = self._among_blocks(node)
        except _KeptError:
            stays = True
        names = [name for name in (*self.draft.scope.reads(node), *node.outputs) if name in self._next]
        for name in names[1:]:
            self._next[self._island(name)] = self._island(names[0])
        if names and (stays or not {*names}.isdisjoint(self.draft.seen)):
            self._kept.append(names[0])
        return nodes

    def _island(self, name: str) -> str:
        """The value that stands for all of an island."""
        while (other := self._next[name]) != name:
            self._next[name] = name = self._next[other]
        return name

    def _block(self, node: NodeView) -> None:
        """Note that a node makes blocked values."""
        self._next.update((name, name) for name in node.outputs if name)

    def _without_blocks(self, node: NodeView) -> list[NodeView]:
        if node.op_type == "ReorderOutput":
            return self._reordered(node)
        self._block(node)
        if node.op_type == "ReorderInput":
            return self._filled(node)
        if node.op_type == "Conv":
            return [self._convolution(node)]
        is_pool = find_traits(BLOCKED, node.op_type).category == "pooling"
        if node.inputs[0] not in self._next or not (is_pool or node.op_type == "Upsample"):
            raise _KeptError
        return [self._as(node, node.op_type, dict(node.attributes)) if is_pool else self._enlarged(node)]

    def _filled(self, node: NodeView) -> list[NodeView]:
        """A plain image, its channels filled up to whole blocks."""
        first, last = node.inputs[0], node.attributes.get("channels_last", 0)
        channels = self._channels(first, -1 if last else 1)
        if first in self._next or channels is None:
            raise _KeptError
        image = self._turned(node, _CHANNELS_FIRST) if last else self._as(node, "Identity")
        missing = -channels % self._size()
        if not missing:
            return [image]
        image = self._before(image, "to fill", -1 if last else 1, channels)
        pads = [0, 0, 0, 0, 0, missing, 0, 0]
        if self.draft.opset < _PAD_BY_INPUTS:
            return [image, self._as(node, "Pad", {"pads": pads}, image.outputs)]
        return [image, self._as(node, "Pad", inputs=(*image.outputs, self._new(f"{first} pads", np.array(pads))))]

    def _enlarged(self, node: NodeView) -> NodeView:
        """A Resize; before there was one, an Upsample."""
        if self.draft.opset < _RESIZE_BY_SIZES:
            raise _KeptError
        mode, factors = node.attributes.get("mode", "nearest"), np.array(node.attributes["scales"], np.float32)
        places = node.attributes if mode != "nearest" else {}
        place = places.get("coordinate_transformation_mode", "asymmetric")
        attributes = {"mode": mode, "coordinate_transformation_mode": place, "nearest_mode": "floor"}
        scales = self._new(f"{node.inputs[0]} scales", factors)
        return self._as(node, "Resize", attributes, (node.inputs[0], "", scales))

    def _convolution(self, node: NodeView) -> NodeView:
        """A FusedConv, its filters taken out of their blocks."""
        x, w, *others = node.inputs
        weights = self.draft.constant(w)
        added = others[1] if len(others) > 1 else ""
        if weights is None or weights.ndim != 4 or w in self.draft.seen or (added and added not in self._next):
            raise _KeptError
        channels = weights.shape[1] * node.attributes.get("group", 1)
        if weights.shape[0] % self._size() or (x not in self._next and channels % self._size() == 0):
            raise _KeptError  # its blocks may be made elsewhere
        name = self._new(f"{w} without blocks", nchwc().unblocked_filters(weights, self._size()))
        return replace(node, op_type="FusedConv", domain="com.microsoft", inputs=(x, name, *others))

    def _reordered(self, node: NodeView) -> list[NodeView]:
        """The first channels of a value: all of them, without those that fill up the last block."""
        source, kept_channels = node.inputs[0], node.attributes.get("channels", 0)
        if source not in self._next:
            raise _KeptError
        channels = self._channels(source, 1)
        last = node.attributes.get("channels_last", 0)
        if kept_channels in (0, channels):
            return [self._turned(node, _CHANNELS_LAST) if last else self._as(node, "Identity")]
        part = self._first_channels(node, source, kept_channels)
        if not last:
            return [part]
        part = self._before(part, "in part", 1, kept_channels)
        return [part, replace(self._turned(node, _CHANNELS_LAST), inputs=part.outputs)]

    def _first_channels(self, node: NodeView, source: str, count: int) -> NodeView:
        places = {"starts": 0, "ends": count, "axes": 1}
        if self.draft.opset < _SLICE_BY_INPUTS:
            return self._as(node, "Slice", {name: [place] for name, place in places.items()})
        names = [self._new(f"{source} {name}", np.array([place])) for name, place in places.items()]
        return self._as(node, "Slice", inputs=(source, *names))

    def _among_blocks(self, node: NodeView) -> list[NodeView]:
        """A node of another domain that does the same to blocked values as to plain ones."""
        inputs = [name for name in node.inputs if name]
        values = [name for name in inputs if self.draft.constant(name) is None]
        if not self._next.keys() >= {*values}:
            raise _KeptError
        if not node.domain and node.op_type == "Reshape" and values == inputs[:1]:
            return [self._reshaped(node)]
        apart = not self._apart.isdisjoint(values)
        numbers = all(np.size(self.draft.constant(name)) == 1 for name in inputs if name not in values)
        same = find_traits(node.domain, node.op_type).blockwise and numbers and self._alike(values, apart)
        if not node.domain and node.op_type == "Concat":
            same = not apart and node.attributes.get("axis") == 1 and len(values) == len(inputs)
        if not same:
            raise _KeptError
        self._block(node)
        if apart:
            self._note_apart(node.outputs[0])
        return [node]

    def _alike(self, values: Sequence[str], apart: bool) -> bool:
        """Whether no value is broadcast within blocks: all have as many blocks, and as many elements in each."""
        facts = {self.draft.fact(name) for name in values}
        shapes = {fact.shape for fact in facts if isinstance(fact, TensorFact) and fact.shape is not None}
        if len(shapes) < len(facts) or (apart and not self._apart.issuperset(values)):
            return False
        return len(shapes) == 1 or (apart and len({(len(shape), shape[1], shape[-1]) for shape in shapes}) == 1)

    def _reshaped(self, node: NodeView) -> NodeView:
        """A Reshape between [N, C, H, W] and [N, C/b, H, W, b], for broadcasts: the plain value stays as it is."""
        source, shape = node.inputs[0], self.draft.constant(node.inputs[1]).tolist()
        apart = source in self._apart
        channels = None if apart else self._channels(source, 1)
        plain = len(shape) == 4 and [shape[0], *shape[2:]] == [0, 0, 0]
        if not (
            plain if apart else channels is not None and shape == [0, -1, 0, 0, self._size()]
        ) or node.attributes.get("allowzero", 0):
            raise _KeptError
        self._block(node)
        if not apart:
            self._note_apart(node.outputs[0])
        return self._as(node, "Identity", inputs=(source,))

    def _note_apart(self, name: str) -> None:
        """Note that a value of shape [N, C/b, H, W, b] has the shape [N, C, H, W] when it is plain."""
        self._apart.add(name)
        fact = self.draft.fact(name)
        if not isinstance(fact, TensorFact) or fact.shape is None or len(fact.shape) != 5:
            raise _KeptError
        n, blocks, h, w, size = fact.shape
        self.added.facts[name] = TensorFact(fact.elem_type, (n, blocks * size, h, w))

    def _size(self) -> int:
        """Channels of a block."""
        return self.draft.scope.compiler.block or cast("int", nchwc().block_size())

    def _as(
        self,
        node: NodeView,
        op_type: str,
        attributes: Mapping[str, Any] | None = None,
        inputs: tuple[str, ...] | None = None,
    ) -> NodeView:
        """A node of ai.onnx that replaces one on blocks, without attributes that have their default values."""
        schema = schemas.find("", op_type, self.draft.opset)
        settings = attributes or {}
        if schema is None or any(settings[name] not in _NOTHING for name in settings if name not in schema.attributes):
            raise _KeptError
        known = Fixed({name: settings[name] for name in settings if name in schema.attributes})
        return replace(
            node, op_type=op_type, domain="", since_version=schema.since_version,
            inputs=node.inputs if inputs is None else inputs, attributes=cast("SnapshotAttributes", known),
        )  # fmt: skip

    def _turned(self, node: NodeView, axes: tuple[int, ...]) -> NodeView:
        return self._as(node, "Transpose", {"perm": list(axes)})

    def _channels(self, name: str, axis: int) -> int | None:
        """The size of that axis of an image, None where it is not known."""
        dims = self.draft.fact(name).shape
        if dims is None or len(dims) != 4:
            raise _KeptError
        return size if isinstance(size := dims[axis], int) else None

    def _before(self, node: NodeView, word: str, axis: int, channels: int) -> NodeView:
        """A node whose result, the first input with so many channels, another one reads in its place."""
        source = node.inputs[0]
        name, fact = self.added.name(f"{source} {word}"), self.draft.fact(source)
        assert isinstance(fact, TensorFact)
        dims = [dim for position, dim in enumerate(fact.shape or ()) if position != axis % 4]
        self.added.facts[name] = TensorFact(fact.elem_type, (dims[0], channels, *dims[1:]))
        return replace(node, id=next(self.added.ids), outputs=(name,))

    def _new(self, name: str, array: Any) -> str:
        self.added.arrays[name := self.added.name(name)] = array
        return name


@cache
def nchwc() -> Any:
    """NumPy's kernels for blocks, imported only for models that need them."""
    return importlib.import_module("onnxlab.ops.nchwc.images")
