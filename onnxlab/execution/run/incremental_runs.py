"""Runs of the main graph that keep all values: what is not there or not fresh runs, the rest comes from the store."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from typing import Any

from onnxlab.errors import LimitError
from onnxlab.execution.base.array_memory import copied, same
from onnxlab.execution.base.value_store import StoreState, ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.planning.programs import Programs
from onnxlab.execution.program.call import Call
from onnxlab.execution.run import requests
from onnxlab.graph.edit.model_graph import ModelGraph


class IncrementalRunner:
    """Runs of one graph over one store.

    Args:
        programs: of the graph, which run node by node.
    """

    def __init__(self, graph: ModelGraph, store: ValueStore, programs: Programs) -> None:
        self._programs = programs
        self._graph = graph
        self._store = store

    def run(
        self, compiler: Compiler, state: StoreState, arrays: dict[str, Any], names: tuple[str, ...], call: Call,
        drawn: frozenset[int] = frozenset(), copies: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Compute all values from the nearest fresh ones to `names`, and merge them.

        Args:
            compiler, state: of the model and the store as they were at the same moment.
            arrays: of all graph inputs that `names` need, checked, and of pinned values.
            names: values of the main graph.
            drawn: ids of values that are to be made again.
            copies: whether to return copies of these values; otherwise nothing is returned.

        Raises:
            FeedError: a value is needed that is not fed; and the errors of the nodes.
        """
        ids = compiler.ids
        fed, changed = _compared(state, {ids[name]: array for name, array in arrays.items()})
        with self._graph.lock:
            again = drawn.union(changed) if state.arrays else drawn
            stale = state.stale.union(drawn, self._store.dependents.of(again)) if again else state.stale
        self._programs.check(compiler, tuple(arrays), names)
        known, is_known = {**state.arrays, **fed}, _known(compiler, arrays, state, stale)
        begins, between = compiler.main.between(names, is_known)
        missing = tuple([name for name in names if not is_known(name)])
        values = self._computed(compiler, {name: known[ids[name]] for name in begins}, between, missing, call)
        by_id = {ids[name]: values.get(name) for name in between}
        new = state.after(fed, by_id, stale, self._store.budget)
        if not (
            self._store.merge(compiler.version, state, new, bool(drawn)) or changed or drawn
            or compiler.version != self._graph.version or not requests.drawn(compiler, 0, by_id)
        ):  # fmt: skip
            # another look was quicker: what this one drew at random is in no other value
            return self.run(compiler, self._store.current(), arrays, names, call, copies=copies)
        return {name: copied(values[name] if name in values else known[ids[name]]) for name in names if copies}

    def _computed(
        self, compiler: Compiler, known: Mapping[str, Any], between: Sequence[str], names: tuple[str, ...], call: Call
    ) -> dict[str, Any]:
        """The values `between`, by name; where they do not fit into the store, only those of `names`."""
        every, most, held = (*dict.fromkeys((*between, *names)),), call.limits.bytes, call.limits.held
        call.limits.bytes = self._store.budget if most is None else min(self._store.budget, most)
        with suppress(LimitError):
            return self._outputs(compiler, known, every, call)
        call.limits.bytes, call.limits.held = most, held
        call.run.begin_again()
        return self._outputs(compiler, known, names, call)

    def _outputs(
        self, compiler: Compiler, known: Mapping[str, Any], names: tuple[str, ...], call: Call
    ) -> dict[str, Any]:
        """Values computed from known ones."""
        program = self._programs.program(compiler, known, names)
        return dict(zip(names, call(program, [*known.values()]), strict=True))

    def completed(
        self, compiler: Compiler, state: StoreState, arrays: dict[str, Any], names: tuple[str, ...],
        drawn: frozenset[int],
    ) -> dict[str, Any]:  # fmt: skip
        """The feeds of a what-if, with the values of the last run that `names` need and the feeds do not change."""
        ids = compiler.ids
        with self._graph.lock:
            stale = state.stale.union(drawn, self._store.dependents.of(drawn.union(ids[name] for name in arrays)))
        border = compiler.main.border(names, _known(compiler, arrays, state, stale))
        return arrays | {name: state.arrays[ids[name]] for name in border if name not in arrays}


def _known(compiler: Compiler, fed: Container[str], state: StoreState, stale: Container[int]) -> Callable[[str], bool]:
    """A function that tells whether a value is fed, or kept and not stale."""
    ids, held, arrays = compiler.ids, compiler.main.scope.initializers, state.arrays
    return lambda name: (
        name in fed or (name not in held and (value := ids.get(name, 0)) in arrays and value not in stale)
    )


def _compared(state: StoreState, feeds: dict[int, Any]) -> tuple[dict[int, Any], list[int]]:
    """({value id: array}, ids of values that changed): equal arrays are those that are stored."""
    pairs = [(value, state.arrays.get(value), array) for value, array in feeds.items()]
    fed = {value: old if same(old, array) else copied(array) for value, old, array in pairs}
    return fed, [value for value, old, _ in pairs if fed[value] is not old]
