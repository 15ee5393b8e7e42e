"""Values of the last run that it left unkept: which there are, and what computes them when they are looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import proxy

from onnxlab.errors import FeedError, NotComputedError, RunError
from onnxlab.execution.base.array_memory import freeze
from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.base.value_store import StoreState, ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.planning.programs import Programs
from onnxlab.execution.program import constant_folding, shape_specialization
from onnxlab.execution.program.call import Call
from onnxlab.execution.program.program import Program
from onnxlab.execution.run.value_computation import looked_at
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits, Loading

_FEW = 8  # values beyond which all are computed in one run
# Looks at one run after which all values of a part are computed at once, which takes no longer than one more look.
_LOOKS = 2
_SHARE = 4  # divisor of the store's budget: all values of a part may take budget / `_SHARE`


class ValuesOnDemand:
    """The values of a graph as the last run, and the edits since, make them.

    Args:
        programs: programs that run node by node.
        runner: `run` of it runs from the inputs of the last run up to some values, and keeps the values that it
            computes; `compute` does so without results. It is referred to weakly, since it holds this object.
    """

    def __init__(self, graph: ModelGraph, store: ValueStore, programs: Programs, runner: Any) -> None:
        self._graph = graph
        self._store = store
        self._programs = programs
        self._runner = proxy(runner)

    def value(self, name: str, limits: Limits | None = None) -> Any:
        """The array of a value of the main graph as the model is now.

        A value that is stale, or was not kept, is computed from the nearest kept values of the last run: by the part
        that makes it, else node by node.

        Raises:
            NotComputedError: nothing was run yet, or not with the inputs that the value now needs.
            NameLookupError, UnsupportedOperatorError, RunError: as `run`.
        """
        with self._graph.lock:
            compiler = self._programs.current()
            value, run = compiler.ids.get(name, 0), self._store.last_run()
            state = self._store.current() if run is None or self._store.is_settled else None
        if state is not None and state.fresh(value):
            return state.arrays[value]
        if run is not None and value:
            array = self._looked_at(run, compiler, name, limits)
            if array is not None:
                return array
        elif state is not None and not state.has_run:
            raise NotComputedError(f"{name!r} has not been computed: {state.lost or 'the model has not been run yet'}")
        try:
            (array,) = self._runner.run(None, [name], limits=limits).values()
        except FeedError as error:
            raise NotComputedError(f"{name!r} cannot be computed from the inputs of the last run: {error}") from error
        freeze((array,))
        return array

    def _looked_at(self, run: LastRun, compiler: Compiler, name: str, limits: Limits | None) -> Any:
        """The array of a value as the last run makes it; None where its parts and nodes cannot compute it."""
        values = run.known
        if name not in values:
            run.looks += 1
            room = self._store.budget // _SHARE if run.looks > _LOOKS else 0
            call = Call(limits, None, None, self._programs.threads)
            with Loading(call.limits):
                try:
                    values = looked_at(run, compiler, name, partial(self._programs.program, compiler), call, room)
                except FeedError:
                    return None
            self._store.keep(run, values)
        array = values.get(name)
        freeze((array,))
        return array

    def can_tell(self, name: str) -> bool:
        """Whether `value` gives a value of the main graph: it is kept, or computed from kept values."""
        compiler, state = self._now()
        ids, held = compiler.ids, compiler.main.scope.initializers
        if name not in ids or not state.has_run or (name in held and ids[name] not in state.arrays):
            return False
        ends = compiler.main.border([name], lambda read: ids.get(read, 0) in state.arrays, missing=True)
        return all(end in held for end in ends)

    def tell(self, values: Iterable[int], limits: Limits | None = None) -> None:
        """Compute those of some values of the main graph that the last run left unkept and no edit has changed since.

        The graph's lock must not be held. Raises as `run`.
        """
        compiler, state = self._now()
        missing = [compiler.names[value] for value in values
                   if value in compiler.names and not (state.fresh(value) or value in state.stale)]  # fmt: skip
        if len(missing) > _FEW:  # one run of all nodes takes less time than a run for each value
            self.keep_all(limits, {*missing})
            return
        for name in filter(self.can_tell, missing):
            self.value(name, limits)

    def known_names(self) -> list[str]:
        """The names of all values for which `can_tell` is true."""
        compiler, state = self._now()
        known = [name for name, value in compiler.ids.items() if value in state.arrays] if state.has_run else []
        return known + _told(compiler, known) if known else []

    def keep_all(self, limits: Limits | None = None, among: Collection[str] | None = None) -> None:
        """Compute all that `known_names` lists and keep it, as far as the budget allows.

        Args:
            among: where not all can be computed at once, only these of them are.

        Raises:
            as `run`.
        """
        if self._all_of_last_run(limits):
            return
        compiler, state = self._now()
        missing = [name for name in self.known_names()
                   if not state.fresh(compiler.ids[name]) and (among is None or name in among)]  # fmt: skip
        if missing:
            self._runner.compute(missing, limits)

    def _now(self) -> tuple[Compiler, StoreState]:
        with self._graph.lock:
            return self._programs.current(), self._store.current()

    def _all_of_last_run(self, limits: Limits | None) -> bool:
        """Compute and keep all values that the last run did not keep, by one run from those it did; False: no room."""
        with self._graph.lock:
            compiler, run = self._programs.current(), self._store.last_run()
        if run is None:
            return False
        # how long a run took decides whether outputs were kept: they are read where nothing else makes the same again
        notes, names = run.program.notes, run.program.border_names if run.program.repeatable else run.names
        feeds = {name: run.known[name] for name in (*run.program.feeds, *names) if name in run.known}
        fed, all_values = [*feeds.values()], notes.get("all")
        if all_values is None or all_values.program.feeds != tuple(feeds):
            program = self._programs.program(compiler, feeds, tuple(_told(compiler, feeds)))
            all_values = notes["all"] = AllValues(program)
            shape_specialization.expect(program, fed)
        if not all_values.program.repeatable:  # see `looked_at`
            return False
        self._store.let_go()
        call = Call(limits, None, None, self._programs.threads)
        try:
            with Loading(call.limits):
                arrays = call(all_values.program, fed)
        except RunError:  # no room; or a node fails whose results may not be asked for
            return False
        self._store.keep(run, *all_values.divided(fed, arrays))
        return True


class AllValues:
    """The program from the values that a run kept to all others, and those of them that shapes decide."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._decided: tuple[Any, dict[str, Any], list[tuple[str, int]]] = None, {}, []

    def divided(self, feeds: Sequence[Any], results: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The results by name: those that were computed, and those that the program holds in any case."""
        program = self.program
        begin = shape_specialization.final(program, feeds, constant_folding.known_fold(program))
        template = program.template if begin is None else begin.template
        held, decided, places = self._decided
        if held is not template:
            named = [*zip(program.outputs, program.output_slots, range(len(results)), strict=True)]
            decided = {name: template[slot] for name, slot, _ in named if template[slot] is not None}
            places = [(name, place) for name, slot, place in named if template[slot] is None]
            self._decided = template, decided, places
        return {name: results[place] for name, place in places}, decided


def _told(compiler: Compiler, known: Collection[str]) -> list[str]:
    """The names of the values that nodes make from known values, and from initializers alone."""
    main = compiler.main
    readable, names = {*known, *main.scope.initializers}, list[str]()
    for node in main.scope.nodes:
        if readable.issuperset(main.reads(node)):
            results = [name for name in node.outputs if name and name not in readable]
            readable.update(results)
            names += results
    return names
