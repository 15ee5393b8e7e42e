"""Steps of nodes and partitions of earlier snapshots, so that a plan after an edit costs little."""

from __future__ import annotations

from onnxlab.execution.base.provider import Step
from onnxlab.execution.planning.cached_partition import PartitionCache
from onnxlab.graph.edit.snapshot import NodeView


class StepCache:
    """Steps of nodes that did not change, so that a plan after an edit costs little.

    Only steps that depend on their node alone belong here: none with bodies, none that call functions.

    Attributes:
        partitions: the last ones.
    """

    def __init__(self) -> None:
        self._steps: dict[int, tuple[NodeView, Step]] = {}
        self.partitions = PartitionCache()

    def get(self, node: NodeView) -> Step | None:
        """The step compiled for this very view of a node, None where there is none."""
        view, step = self._steps.get(node.id, (None, None))
        return step if view is node else None

    def put(self, node: NodeView, step: Step) -> None:
        """Keep the step of a node."""
        self._steps[node.id] = (node, step)

    def clear(self) -> None:
        """Forget all steps."""
        self._steps.clear()
