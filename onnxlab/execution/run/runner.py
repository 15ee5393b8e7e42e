"""Running one ModelGraph: all of it, up to some values, from some values, or a selection of nodes.

    runner = Runner(graph, inference.fact)
    runner.run(feeds)                              # {name: array} of the graph's outputs
    runner.run(feeds, outputs=["relu1_out"])       # any values of the main graph; only what they need is run
    runner.run({"relu1_out": array})               # any value may be fed: what makes it is not run
    runner.run()                                   # with the inputs of the last run: after an edit, what it changed
    runner.run(feeds, by=runner.by(["numba"]))      # by other providers than its own; values and pins are the same
    runner.run_nodes([3, 4, 5])                    # a selection; what is missing comes from the store or is made up
    runner.on_demand.value("relu1_out")            # a value of the last run, kept or not
    runner.store.get(value_id)                     # what a value was when it was last run
    graph.followers.append(runner.invalidate)      # so that it hears of edits

`run` and `run_nodes` may be called from many threads at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any
from weakref import WeakMethod

from onnxlab.errors import FeedError
from onnxlab.execution.base import background, watching
from onnxlab.execution.base.array_memory import copied, retain_freed
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.base.synthetic_inputs import make_up
from onnxlab.execution.base.value_store import ValueStore
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning.compiler import FactOf
from onnxlab.execution.planning.partition import Partition
from onnxlab.execution.planning.programs import Programs
from onnxlab.execution.program.call import PACE, Call, Progress
from onnxlab.execution.program.executor import Observer, execute
from onnxlab.execution.program.program import Program
from onnxlab.execution.program.run_errors import describe
from onnxlab.execution.program.run_observers import BorderValues, HandedValues, Take
from onnxlab.execution.run.fast_path import Specialization, owned, run_key
from onnxlab.execution.run.incremental_runs import IncrementalRunner
from onnxlab.execution.run.node_selection import nodes_of_main, select
from onnxlab.execution.run.noted_runs import held, note, note_short
from onnxlab.execution.run.provider_names import named, usual_names
from onnxlab.execution.run.refused_nodes import Refuse, RefusedNodes
from onnxlab.execution.run.requests import Keep, Requests, RunRequest, asked, drawn
from onnxlab.execution.run.values_on_demand import ValuesOnDemand
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits, Loading

_OTHERS = 8
_UNSTOPPED = 20e-3  # seconds of a run that looks at no stop flag


class Runner:
    """Runs a model's graph in place and keeps its values.

    Args:
        graph: the model.
        fact: what inference knows of a value id; default: what the file declares.
        providers: in order of preference; the last one takes the nodes that are left; default: NumPy.
        keep_bytes: memory for kept values; default 40 % of the available memory.
        threads: threads of BLAS during runs (see `base.blas`); 0 changes nothing. More than one are of use for large
            products on idle cores. One is used where a provider has threads of its own, which BLAS's would slow down.
        facts: gives what differs wherever a fact does.
        refuse: asked once per version of the graph for errors that keep nodes from running, and for which nodes.

    Attributes:
        value: gives a value of the main graph as the model is now.
        store: the values of the last run, by value id.
        programs: by its own providers.
        on_demand: computes the values that the last run did not keep.
        compiles: whether runs without given providers compile in the background, else by NumPy (ONNXLAB_COMPILE=0).
    """

    def __init__(
        self, graph: ModelGraph, fact: FactOf | None = None, providers: Sequence[Provider] | None = None,
        keep_bytes: int | None = None, threads: int = 1, refuse: Refuse | None = None,
        facts: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        retain_freed()
        self.graph = graph
        self.store = ValueStore(graph, keep_bytes)
        self._requests = Requests(graph, self.store, fact)
        self._fact, self._facts = fact or self._requests.declared, facts
        self.programs = self._programs_by(tuple(providers or (NumpyProvider(),)), threads)
        self.on_demand = ValuesOnDemand(graph, self.store, self.programs, self)
        self.value = self.on_demand.value
        self._incremental = IncrementalRunner(graph, self.store, self.programs)
        self.compiles = os.environ.get("ONNXLAB_COMPILE", "1") != "0"
        self._others: Lru[Any, Programs] = Lru("programs by other providers", _OTHERS)
        self._refused = RefusedNodes(graph, self._requests, refuse)

    def by(self, providers: Sequence[str | Provider] | None, threads: int = 1, patient: bool = False) -> Programs:
        """The programs of the graph by these providers, made once; default: the usual ones.

        Args:
            patient: have them compile in the background.

        Raises:
            ProviderError: no provider has that name.
        """
        try:
            key: Any = providers if isinstance(providers, str | None) else tuple(providers), threads, patient
            if (programs := self._others.get(key)) is not None:
                return programs
        except TypeError:  # not a list, or a provider that is not hashable
            key = None
        chosen = named(usual_names() if providers is None else providers, threads)
        programs = self._programs_by(chosen, threads, patient)
        return programs if key is None else self._others.keep(key, programs)

    def usual(self, threads: int = 1) -> Programs:
        """The programs by the fastest installed providers, which compile in the background; see `compiles`."""
        known = self._others.get((None, threads, True)) if self.compiles else self.by(("numpy",), threads)
        return known or self.by(None, threads, patient=True)

    def _programs_by(self, providers: tuple[Provider, ...], threads: int, patient: bool = False) -> Programs:
        # weak: this runner holds the programs; all nodes run again where custom operators are registered or removed
        check, doubt = self._requests.check_missing, WeakMethod(self.store.invalidate_all)
        return Programs(self.graph, providers, threads, self._fact, check, doubt, patient, self._facts)

    def last_inputs(self) -> dict[str, Any]:
        """The inputs of the last run whose values were kept."""
        with self.graph.lock:
            compiler = self.programs.current()
            return self._requests.last_inputs(compiler, self.store.current())

    def invalidate(self, commit: GraphCommit) -> None:
        """Mark the values that depend on an edit as no longer fresh. To be registered as a follower of the graph."""
        self.store.follow(commit)
        if commit.touched.functions:
            for programs in (self.programs, *self._others.values()):
                programs.forget_steps()

    def partition(
        self, outputs: Sequence[str] | None = None, feeds: Iterable[str] = (), by: Programs | None = None
    ) -> Partition:
        """The provider of each node, bodies included, without running anything; `by` as of `run`."""
        compiler = (by or self.programs).current()
        fed = (*compiler.snapshot.main.inputs, *feeds)
        return compiler.main.partition(fed, self._requests.outputs(compiler, outputs))

    def run(
        self, feeds: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None, *,
        limits: Limits | None = None, progress: Progress | None = None, keep: Keep = True, seed: int | None = None,
        strict: bool = True, by: Programs | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run the main graph and return {name: array} of the outputs.

        Args:
            feeds: {name: array} of graph inputs (of the only one its array alone will do), or of any other values,
                whose producers are then not run. None: the inputs of the last run.
            outputs: names of any values of the main graph; default: the graph's outputs.
            limits: what the run may use, and the flag that stops it.
            progress: called with the progress of the run, about ten times a second.
            keep: True keeps all values, node by node, and reuses those that are still fresh; "exact" reuses none that
                other kernels made. "border" keeps the inputs and the values that cross between parts, so that `value`
                can compute the others when they are asked for. False frees memory as early as possible. A run that
                feeds other values than inputs is a what-if: it reads kept values, inputs too, that the feeds cannot
                change, and leaves the store as it is.
            seed: of random operators.
            strict: refuse nodes for which onnxruntime would refuse the model.
            by: programs of other providers than the runner's own; with `keep=True`, the runner's own are used.

        Raises:
            FeedError: feeds that do not fit, or inputs that are missing.
            NameLookupError: an output that is no value of the main graph.
            UnsupportedOperatorError: no provider implements an operator that is needed.
            RunError: a node failed; LimitError, RunStopped: the budget is used up, or the run was stopped.
            KeyboardInterrupt: raised at once; the run is stopped and its result dropped.
        """
        exact, keep = keep == "exact", keep == "exact" or keep
        owner = self.programs if by is None or keep is True else by
        if feeds is not None and type(feeds) is not dict:
            feeds = self._requests.named(owner.current(), feeds)
        if outputs is not None and type(outputs) is not list:
            outputs = asked(outputs)
        plain = keep is not True and limits is None and progress is None and seed is None
        if plain and feeds is not None and not self.store.pins:
            results = self._fast(owner, feeds, outputs, keep)
            if results is not None:
                return results
        with background.run():  # other inputs may make many kept values stale
            request = self._requested(owner, feeds, outputs, keep, limits, plain and strict, seed)
        if strict:
            self._refused.check(request.compiler, request.arrays, request.names)
        if exact and not request.state.exact:
            state = request.state.of_inputs()
            if request.is_kept:
                self.store.merge(request.compiler.version, request.state, state)
            request = replace(request, state=state)
        call = Call(limits, progress, seed, owner.threads, owner.fallbacks.begin)
        with Loading(call.limits):
            return self._run(owner, request, call)

    def compute(self, names: Sequence[str], limits: Limits | None = None) -> None:
        """Compute values from the inputs of the last run, node by node, and keep them. Raises as `run`."""
        request = self._requested(self.programs, None, names, True, limits, plain=False)
        self._refused.check(request.compiler, request.arrays, request.names)
        call = Call(limits, None, None, self.programs.threads)
        with Loading(call.limits):
            self._incremental.run(request.compiler, request.state, request.arrays, request.names, call, copies=False)

    def _fast(
        self, owner: Programs, feeds: Mapping[str, Any], outputs: Sequence[str] | None, keep: Keep
    ) -> dict[str, Any] | None:
        """The outputs by the checks of an earlier run with the same signature; None where there was none."""
        compiler = owner.current()
        key = run_key(compiler.version, feeds, outputs)
        try:
            specialized = None if key is None else owner.specialized.get(key)
        except TypeError:  # not names: the error is raised where they are looked up
            return None
        if specialized is None or specialized.seconds > _UNSTOPPED:
            return None
        feeds = {name: array.copy() for name, array in feeds.items()} if keep else feeds  # kept values may be views
        results, border = specialized.run(feeds, bool(keep))
        if keep:
            program, seconds = specialized.program, specialized.seconds
            note_short(self.store, compiler, program, [*feeds.values()], border, results, seconds)
        return results  # type: ignore[no-any-return]

    def _requested(
        self, owner: Programs, feeds: Mapping[str, Any] | None, outputs: Sequence[str] | None, keep: Keep,
        limits: Limits | None, plain: bool, seed: int | None = None,
    ) -> RunRequest:  # fmt: skip
        """The request of a run. Raises FeedError and NameLookupError as `run`."""
        with self.graph.lock:
            compiler = owner.within(limits)
            state = self.store.current()
        requests = self._requests
        inner = requests.watched(compiler, outputs)
        names = requests.outputs(compiler, outputs, inner)
        unchecked = requests.last_inputs(compiler, state) if feeds is None else dict(requests.named(compiler, feeds))
        arrays, again = requests.checked(compiler, requests.with_pins(compiler, unchecked)), feeds is None
        return RunRequest(
            compiler, state, unchecked, arrays, outputs, names, inner, keep, again, drawn(compiler, seed), plain
        )

    def _run(self, owner: Programs, request: RunRequest, call: Call) -> dict[str, Any]:
        """Run a request: get its program, call it, and note or keep its values."""
        compiler, state, arrays, names = request.compiler, request.state, request.arrays, request.names
        if request.is_kept and request.keep is True:
            return self._incremental.run(compiler, state, arrays, names, call, request.drawn)
        known = {name: state.arrays.get(compiler.ids[name]) for name in arrays}
        fed = held(self.store, known, arrays) if request.is_kept else None
        if fed is not None:  # the run gets the arrays that are kept: nothing compares or copies them again
            arrays = fed
            if request.is_answered(arrays):
                return request.picked({name: copied(state.arrays[compiler.ids[name]]) for name in names})
        if request.keep and not (request.is_of_inputs or request.inner):
            arrays = self._incremental.completed(compiler, state, arrays, names, request.drawn)
        if request.inner:
            compiler = owner.watching(compiler, watching.by_scope(request.inner))
        elif request.keep is not True:
            compiler = owner.for_shapes(compiler, arrays)
        program = owner.program(compiler, arrays, names)
        border = None if fed is None else BorderValues(program, self.store.budget // 2)
        outputs = call(program, list(arrays.values()), border)
        crossing = [] if border is None else border.in_order()
        results = owned(outputs, names, (*arrays.values(), *crossing))
        if border is not None:
            note(self.store, request.compiler, program, [*arrays.values()], crossing, results)
        owner.fallbacks.ran((tuple(arrays), names), program)
        owner.ran = program
        settled = owner.decided(request.compiler, arrays) and not owner.fallbacks.tier.is_waiting
        key = run_key(request.compiler.version, request.unchecked, request.asked) if request.is_like_others else None
        if settled and key is not None:
            seconds = program.notes.get(PACE, (0, inf))[1]
            before = owner.specialized.get(key)
            if before is not None and before.program is program:
                before.seconds = seconds
            else:
                owner.specialized.keep(key, Specialization(program, owner.threads, seconds))
        results.update((value.path, value.found(call.run.seen)) for value in request.inner)
        return request.picked(results)

    def pin(self, name: str, value: Any) -> None:
        """Use this array for a value of the main graph in every run that does not feed it, whichever node makes it.

        Raises:
            FeedError: no value has this name, or the array does not have its dtype.
        """
        with self.graph.lock:
            self._requests.pin(self.programs.current(), name, value)

    def unpin(self, name: str | None = None) -> None:
        """Let the graph make a value again; without a name, all. Raises NameLookupError where it is not pinned."""
        with self.graph.lock:
            self._requests.unpin(name)

    def observed(
        self, observer: Observer, feeds: Mapping[str, Any] | None, call: Call, outputs: Sequence[str] | None = None,
        by: Programs | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run once, step by step, with an observer; nothing is kept. `by` is as in `run`, and so are the errors."""
        owner = by or self.programs
        with Loading(call.limits):
            program, arrays = self._watchable(owner, feeds, outputs)
            frame = program.frame(arrays)
            call.part(lambda: execute(program, frame, call.run, observer), len(program.rows), inf)
        owner.fallbacks.begin()
        return owned(program.results(frame), program.outputs, arrays)

    def hand(
        self, feeds: Mapping[str, Any], outputs: Sequence[str], take: Take, seed: int | None = None,
        limits: Limits | None = None, by: Programs | None = None,
    ) -> None:  # fmt: skip
        """Run once, and hand each of `outputs` over when it is made; nothing is kept. Raises as `run`."""
        owner = by or self.programs
        call = Call(limits, None, seed, owner.threads, owner.fallbacks.begin)
        with Loading(call.limits):
            program, arrays = self._watchable(owner, feeds, outputs, limits)
            watch = HandedValues(program, take)
            watch.finish(call(program, arrays, watch=watch))

    def _watchable(
        self, owner: Programs, feeds: Any, outputs: Sequence[str] | None, limits: Limits | None = None
    ) -> tuple[Program, list[Any]]:
        """The program and the checked feeds in its order of a run whose steps are observed."""
        request = self._requested(owner, feeds, outputs, False, limits, plain=False)
        self._requests.outputs(request.compiler, outputs)  # values of bodies are made by no step of the program
        return owner.program(request.compiler, request.arrays, request.names), [*request.arrays.values()]

    def run_nodes(
        self, nodes: Iterable[int], feeds: Mapping[str, Any] | None = None, *, limits: Limits | None = None,
        progress: Progress | None = None, seed: int | None = None, strict: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Run these nodes (ids; a node in a body stands for the node that owns it) and return all that they make.

        The values that they read come from `feeds`, else from the inputs of the last run, else, before any run and for
        inputs that came since, they are made up from facts. Without `feeds`, the outputs after a run are kept too, as
        they are those of a run of the whole graph; with a seed, those of random nodes are made again.

        Raises:
            NameLookupError: a node is in a function, which runs only when it is called.
            FeedError, UnsupportedOperatorError, RunError, LimitError, RunStopped: as `run`.
        """
        with self.graph.lock:
            compiler = self.programs.within(limits)
            state = self.store.current()
            chosen = nodes_of_main(self.graph, nodes)
        if feeds is not None and not isinstance(feeds, Mapping):
            raise FeedError(f"a selection of nodes is fed by name, as {{name: array}}; given {describe(feeds)}")
        arrays = self._requests.checked(compiler, dict(feeds or {}))
        selection = select(compiler, chosen, arrays)
        names = selection.outputs
        call = Call(limits, progress, seed or 0, self.programs.threads, self.programs.fallbacks.begin)
        if strict:
            self._refused.check(compiler, (*arrays, *selection.border), names)
        last, pins = self._requests.last_inputs(compiler, state), self.store.pins
        inputs = self._requests.input_facts(compiler).keys()

        def can_be_told(values: Sequence[str]) -> bool:
            """Whether inputs of the last run and pins lead to some values."""
            ids = compiler.ids
            ends = compiler.main.border(values, lambda name: name in last or ids.get(name, 0) in pins, missing=True)
            return state.has_run and inputs.isdisjoint(ends)

        if not feeds and can_be_told(names):
            arrays = self._requests.checked(compiler, self._requests.with_pins(compiler, last))
            values = drawn(compiler, seed, {compiler.ids[name] for name in names})
            with Loading(call.limits):
                return self._incremental.run(compiler, state, arrays, names, call, values)
        if stale := [name for name in selection.stale(state, arrays) if can_be_told([name])]:
            arrays = self.run(None, stale, limits=limits, strict=strict) | arrays
        arrays |= self._requests.checked(compiler, selection.known(state, pins, arrays))
        selection.make_up(self.graph, arrays, seed or 0, call.limits, state.lost)
        with Loading(call.limits):
            program = self.programs.program(compiler, arrays, names)
        return owned(call(program, list(arrays.values())), names, (*arrays.values(),))

    def checked(self, feeds: Any) -> dict[str, Any]:
        """The feeds as arrays. Raises FeedError where they do not fit."""
        compiler = self.programs.current()
        return self._requests.checked(compiler, {} if feeds is None else self._requests.named(compiler, feeds))

    def sample_inputs(
        self, feeds: Mapping[str, Any] | None = None, *, seed: int = 0, sizes: Mapping[str, int] | None = None,
        limits: Limits | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Arrays for all graph inputs: those of `feeds`, and others made up from facts, of sizes that agree with them.

        Args:
            sizes: of symbolic dims, by name, where `feeds` do not tell them.
            limits: memory that the arrays may take; default: 80 % of the free memory.

        Raises:
            FeedError: feeds that do not fit.
            LimitError: the arrays would take more.
        """
        arrays, main = self.checked(feeds), self.programs.current().main
        scope = main.scope
        missing = [name for name in scope.inputs if name not in scope.initializers and name not in arrays]
        make_up(scope.nodes, main.fact, missing, arrays, seed, sizes, limits)
        return arrays
