"""Values inside bodies, on request: what a value of a branch or a loop's body was, each time the body ran.

A watched body makes the watched values as additional outputs; the run notes their arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.errors import NameLookupError, RunError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Watched:
    """A value of a body that is asked for.

    Attributes:
        path: path by which the value was asked for, as "if_3/then_branch/x".
        value: id of the value.
        scope: id of the body that makes the value.
        name: name of the value in the body.
        owner: label of the node of the main graph that holds the body.
        outputs: outputs of the owner; the run has to make them, so that the owner runs.
        once: whether the body runs at most once in a run: it is a branch, not in any loop.
    """

    path: str
    value: int
    scope: int
    name: str
    owner: str
    outputs: tuple[str, ...]
    once: bool

    def found(self, seen: Mapping[int, Sequence[Any]]) -> Any:
        """A value of a run: the array, or a list with that of each iteration.

        Raises:
            RunError: the branch was not taken.
        """
        arrays = [np.array(array) if isinstance(array, np.ndarray) else array for array in seen.get(self.value, ())]
        if not self.once:
            return arrays
        if not arrays:
            raise RunError(f"{self.path!r} has no value: {self.owner} did not take this branch", self.owner)
        return arrays[0]


def find(graph: ModelGraph, snapshot: Snapshot, path: str) -> Watched:
    """The value that a path means.

    Raises:
        NameLookupError: there is no such value, or it is in a function, which runs anew for every call, or in a graph
            of training.
    """
    value = graph.resolve_value(path)
    record = graph.values[value]
    scope, once = graph.scopes[record.scope], True
    inner = scope
    while inner.id != graph.main.id:
        if inner.is_function:
            raise NameLookupError(
                f"{path!r} is inside of function {inner.name}, whose values have no place of their own"
            )
        if not inner.owner:
            raise NameLookupError(
                f"{path!r} is inside of {inner.attribute}, a graph of training: no run of the model runs it"
            )
        owner = graph.nodes[inner.owner]
        once = once and owner.op_type == "If"
        inner = graph.scopes[owner.scope]
    outputs = tuple(graph.values[out].name for out in owner.outputs if out)
    return Watched(path, value, scope.id, record.name, graph.label(owner), outputs, once)


def by_scope(watched: Iterable[Watched]) -> dict[int, tuple[tuple[str, int], ...]]:
    """{scope: ((name, value id), …)} for the compiler."""
    values: dict[int, tuple[tuple[str, int], ...]] = {}
    for value in watched:
        values[value.scope] = (*values.get(value.scope, ()), (value.name, value.value))
    return values
