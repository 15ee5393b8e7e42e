"""Selections of nodes to run: the values that they make, and those that they read from the rest of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onnxlab.errors import FeedError, NameLookupError
from onnxlab.execution.base.synthetic_inputs import make_up
from onnxlab.execution.base.value_store import StoreState
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Nodes of the main graph, for one run of them.

    Attributes:
        outputs: names that the nodes make and that are not fed.
        border: names that the nodes read and do not make, without initializers.
    """

    compiler: Compiler
    outputs: tuple[str, ...]
    border: tuple[str, ...]

    def stale(self, state: StoreState, fed: Mapping[str, Any]) -> list[str]:
        """The outer values that are read, not fed, and not up to date in the store."""
        return [name for name in self.border
                if not (name in fed or state.fresh(self.compiler.ids.get(name, 0)))]  # fmt: skip

    def known(self, state: StoreState, pins: Mapping[int, Any], fed: Mapping[str, Any]) -> dict[str, Any]:
        """The outer values that are read, not fed, and pinned or known."""
        values = {name: self.compiler.ids.get(name, 0) for name in self.border if name not in fed}
        return {
            name: pins[value] if value in pins else state.arrays[value]
            for name, value in values.items()
            if value in pins or state.fresh(value)
        }

    def make_up(self, graph: ModelGraph, arrays: dict[str, Any], seed: int, limits: Limits, lost: str) -> None:
        """Add arrays, made up from facts, for the other values that are read.

        Args:
            lost: why values of the last run are not there, "" before any run.

        Raises:
            FeedError: a value that is read is neither an input nor made by a node, or was lost.
        """
        missing = [name for name in self.border if name not in arrays]
        for name in missing:
            record = graph.values.get(self.compiler.ids.get(name, 0))
            if record is None or not (record.producers or record.is_input):
                raise FeedError(f"{name!r} is read and nothing makes it; feed it, or mend the graph")
            if lost:
                raise FeedError(f"{lost}: feed {name!r}, which the selection reads")
        make_up(self.compiler.main.scope.nodes, self.compiler.main.fact, missing, arrays, seed, None, limits)


def select(compiler: Compiler, nodes: set[int], fed: Mapping[str, Any]) -> NodeSelection:
    """The selection of these nodes of the main graph, by id."""
    views = [node for node in compiler.main.scope.nodes if node.id in nodes]
    outputs = dict.fromkeys(name for node in views for name in node.outputs if name)
    read = dict.fromkeys(name for node in views for name in compiler.main.reads(node))
    initializers = compiler.main.scope.initializers
    return NodeSelection(
        compiler,
        tuple(name for name in outputs if name not in fed),
        tuple(name for name in read if name not in outputs and name not in initializers),
    )


def nodes_of_main(graph: ModelGraph, nodes: Iterable[int]) -> set[int]:
    """The given nodes where they are of the main graph, else the nodes of the main graph whose bodies hold them.

    Raises:
        NameLookupError: a node does not exist, or is in a function, which runs only when it is called.
    """
    return {_node_of_main(graph, node) for node in nodes}


def _node_of_main(graph: ModelGraph, node: int) -> int:
    record = graph.nodes.get(node)
    owner = graph.index.owner_in(record, graph.main.id) if record else 0
    if record is None or not owner:
        where = "is in a function: select the nodes that call it" if record else "does not exist"
        raise NameLookupError(f"node {graph.label(record) if record else node} {where}")
    return owner
