"""Runs of the main graph that keep all values: what is not there or not fresh runs, the rest comes from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onnxlab.execution.base.array_memory import copied, same
from onnxlab.execution.base.value_store import StoreState, ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.planning.programs import Programs
from onnxlab.execution.program.call import Call
from onnxlab.execution.program.executor import execute
from onnxlab.execution.run.incremental_plan import IncrementalPlan, plan_of
from onnxlab.execution.run.recorder import Recorder
from onnxlab.execution.run.requests import RunRequest
from onnxlab.graph.edit.model_graph import ModelGraph


class IncrementalRunner:
    """Runs of one graph over one store.

    Args:
        programs: of the graph, in which every value stays readable.
    """

    def __init__(self, graph: ModelGraph, store: ValueStore, programs: Programs) -> None:
        self._programs = programs
        self._graph = graph
        self._store = store

    def run(
        self, compiler: Compiler, state: StoreState, arrays: dict[str, Any], names: tuple[str, ...], call: Call,
        copies: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Run what is not fresh, watched by a Recorder, and merge what came out.

        Args:
            compiler, state: of the model and the store as they were at the same moment.
            arrays: of all graph inputs that `names` need, checked, and of pinned values.
            names: values of the main graph.
            copies: whether to return copies of these values; otherwise nothing is returned.

        Raises:
            FeedError: the program needs a value that is not fed; and the errors of the nodes.
        """
        ids = compiler.ids
        fed, changed = _compared(state, {ids[name]: array for name, array in arrays.items()})
        stale = state.stale
        if changed and state.arrays:
            with self._graph.lock:
                stale = stale | self._store.dependents.of(changed)
        program = self._programs.program(compiler, arrays, names, keep=True)
        plan = plan_of(compiler, program)
        frame = program.frame([fed[ids[name]] for name in arrays])
        selection = plan.select(program, state, stale if stale.isdisjoint(fed) else stale - fed.keys(), frame)
        if not plan.parts.isdisjoint(stale):  # the edit may be inside a part: equal inputs prove nothing
            state = replace(state, dirty=state.dirty | (plan.parts & stale))
        values, template, known = plan.values, program.template, state.arrays
        constants = [slot for slot in plan.constants
                     if known.get(values[slot]) is not template[slot] or values[slot] in stale]  # fmt: skip
        supplied = {**{values[slot]: template[slot] for slot in constants}, **fed}
        others = {*changed, *(values[slot] for slot in constants if known.get(values[slot]) is not template[slot])}
        slots = [program.slots[compiler.names[value]] for value in others]
        recorder = Recorder(state, values, supplied, slots, self._store.budget, call.position)
        rows = [program.rows[number] for number in selection.numbers]
        call.part(
            lambda: execute(program, frame, call.run, recorder, rows), len(rows), selection.expected(state.seconds)
        )
        self._store.merge(state, self._after(recorder, plan, stale))
        results = zip(names, program.results(frame), strict=True) if copies else ()
        return {name: copied(array) for name, array in results}

    def _after(self, recorder: Recorder, plan: IncrementalPlan, stale: frozenset[int]) -> StoreState:
        """The state after a run: what did not run and reads what came out as another value has to run."""
        state = recorder.state(stale)
        if not state.stale:
            return state
        with self._graph.lock:
            readers = self._store.dependents.direct([plan.values[slot] for slot in recorder.changed])
        return replace(state, dirty=state.dirty | (readers & state.stale))

    def cheaper(
        self, request: RunRequest, arrays: Mapping[str, Any], seconds: float
    ) -> tuple[Compiler, StoreState] | None:
        """The compiler and state for a run from kept values, node by node, where that takes no more than `seconds`.

        The inputs are those of the run before: either an edit affects little of what was asked for, or all outputs are
        stored already.
        """
        with self._graph.lock:
            compiler = self._programs.current()
            state = self._store.current()
        ids, names, known = compiler.ids, request.names, state.arrays
        fed = {ids[name]: array for name, array in arrays.items()}
        if not known or not (request.again or state.stale):
            return None
        if not all(value in known and same(known[value], array) for value, array in fed.items()):
            return None
        if all(state.fresh(ids[name]) for name in names):
            return compiler, state
        if (compiler.providers, (tuple(arrays), names, True)) not in compiler.steps.programs:
            return None  # some nodes never ran
        program = self._programs.program(compiler, arrays, names, keep=True)
        stale = state.stale if state.stale.isdisjoint(fed) else state.stale - fed.keys()
        selection = plan_of(compiler, program).select(program, state, stale, program.frame(fed.values()))
        return (compiler, state) if selection.expected(state.seconds) <= seconds else None

    def completed(
        self, compiler: Compiler, state: StoreState, arrays: dict[str, Any], names: tuple[str, ...]
    ) -> dict[str, Any]:
        """The feeds of a what-if, with the values of the last run that `names` need and the feeds do not change."""
        ids, held = compiler.ids, compiler.main.scope.initializers
        with self._graph.lock:
            changed = self._store.dependents.of([ids[name] for name in arrays])

        def given(name: str) -> bool:
            value = ids.get(name, 0)
            return name in arrays or (name not in held and value not in changed and state.fresh(value))

        border = compiler.main.border(names, given)
        return arrays | {name: state.arrays[ids[name]] for name in border if name not in arrays}


def _compared(state: StoreState, feeds: dict[int, Any]) -> tuple[dict[int, Any], list[int]]:
    """({value id: array}, ids of values that changed): equal arrays are those that are stored."""
    fed = dict[int, Any]()
    for value, array in feeds.items():
        known = value in state.arrays and same(state.arrays[value], array)
        fed[value] = state.arrays[value] if known else copied(array)
    return fed, [value for value, array in fed.items() if state.arrays.get(value) is not array]
