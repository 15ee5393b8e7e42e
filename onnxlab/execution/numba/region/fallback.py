"""Around what could not be bound: the node that failed goes to NumPy, the rest of its region stays compiled.

Only the shapes and values of a call may show that a rule cannot lower a node, and a rule may have a fault. Neither
makes a run fail. Where NumPy then runs the node, the reason is remembered until the node is edited: partitions show it,
and later programs leave the node to NumPy from the start. Where NumPy fails too, the model is at fault, and NumPy's
error is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from onnxlab.execution.base.provider import (
    CompiledPart,
    Part,
    PartitionView,
    Step,
    part_step,
)
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning.partition import parts_of
from onnxlab.execution.program.executor import ProgramBody
from onnxlab.execution.program.program import Program, assemble
from onnxlab.graph.edit.snapshot import NodeView

failed: WeakKeyDictionary[NodeView, str] = WeakKeyDictionary()
"""{node, as it is now: the reason why it was left to NumPy in a run}."""

Compile = Callable[[Part, PartitionView], CompiledPart]


@dataclass(frozen=True, slots=True)
class NodeFallback:
    """Runs the nodes of a region one by one, in place of a plan.

    Attributes:
        body: the region with `node` left to NumPy; without a node, all of the region left to NumPy.
        reason: why the node could not be bound.
    """

    body: ProgramBody
    node: NodeView | None
    reason: str

    def proved(self) -> None:
        """Remember the reason with the node, after NumPy has run it."""
        if self.node is not None:
            failed.setdefault(self.node, self.reason)


def with_fallback(node: NodeView, part: Part, view: PartitionView, make: Compile) -> ProgramBody:
    """The program of a part in which one node is NumPy's.

    Args:
        view: of the scope that the part was claimed in.
        make: makes regions of the other nodes.
    """

    def program() -> Program:
        inner = replace(view, nodes=part.nodes, visible=frozenset(part.outputs), refusals={})
        steps: list[Step] = []
        place = next(number for number, other in enumerate(part.nodes) if other is node)
        groups = ("numba", part.nodes[:place]), ("numpy", (node,)), ("numba", part.nodes[place + 1 :])
        for piece in parts_of(inner, [group for group in groups if group[1]]):
            if piece.provider == "numpy":
                steps += NumpyProvider().compile(piece, inner)
            else:
                steps.append(part_step(piece, make(piece, inner)))
        return assemble(steps, part.inputs, part.outputs, view.constant, "a region")

    return ProgramBody(part.inputs, part.outputs, (), (), program)
