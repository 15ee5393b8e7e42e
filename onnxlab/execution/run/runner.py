"""Running one ModelGraph: all of it, up to some values, from some values, or a selection of nodes.

    runner = Runner(graph, inference.fact)
    runner.run(feeds)                              # {name: array} of the graph's outputs
    runner.run(feeds, outputs=["relu1_out"])       # any values of the main graph; only what they need is run
    runner.run({"relu1_out": array})               # any value may be fed: what makes it is not run
    runner.run()                                   # with the inputs of the last run: after an edit, what it changed
    runner.run_nodes([3, 4, 5])                    # a selection; what is missing comes from the store or is made up
    runner.store.get(value_id)                     # what a value was when it was last run
    graph.followers.append(runner.invalidate)      # so that it hears of edits
    print(runner.partition())                      # the provider of each node

`run` and `run_nodes` may be called from many threads at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakMethod

from onnxlab.errors import FeedError, NameLookupError, NotComputedError
from onnxlab.execution.base import watching
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.base.synthetic_inputs import make_up
from onnxlab.execution.base.value_store import State, ValueStore
from onnxlab.execution.base.watching import Watched
from onnxlab.execution.numba.tiered_kernels import TieredNumpyProvider
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning.compiler import Compiler, FactOf
from onnxlab.execution.planning.partition import Partition
from onnxlab.execution.planning.programs import Programs
from onnxlab.execution.program.call import Call, Progress
from onnxlab.execution.program.executor import Observer, execute
from onnxlab.execution.program.run_errors import describe
from onnxlab.execution.run import fast_path
from onnxlab.execution.run.incremental_runs import IncrementalRunner, copied, owned
from onnxlab.execution.run.node_selection import nodes_of_main, select
from onnxlab.execution.run.provider_names import named
from onnxlab.execution.run.recorder import freeze
from onnxlab.execution.run.refused_nodes import Refuse, RefusedNodes
from onnxlab.execution.run.requests import Requests, asked
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits, Loading
from onnxlab.shapes import Fact

_OTHERS = 4  # runners with other providers


class Runner:
    """Runs a model's graph in place and keeps its values.

    Args:
        graph: the model.
        fact: what inference knows of a value id; default: what the file declares.
        providers: in order of preference; the last one takes what is left; default: NumPy, and kernels
            compiled for what edits reach again and again (see `tiered_kernels`).
        keep_bytes: memory for kept values; default 40 % of what is available.
        threads: of BLAS during runs (see `base.blas`); 0 leaves it as it is. More pay for large products on idle
            cores. It is one where a provider brings threads of its own: BLAS's would spin beside them.
        store: the values and pins of another runner of this graph, to share them; default: its own.
        refuse: asked once per version of the graph for what keeps nodes from running, and whether some need it.

    Attributes:
        store: the values of the last run, by value id.
    """

    def __init__(
        self,
        graph: ModelGraph,
        fact: FactOf | None = None,
        providers: Sequence[Provider] | None = None,
        keep_bytes: int | None = None,
        threads: int = 1,
        store: ValueStore | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        self.graph = graph
        self.providers = tuple(providers or (TieredNumpyProvider() if threads == 1 else NumpyProvider(),))
        self.store = ValueStore(graph, keep_bytes) if store is None else store
        own_threads = any(getattr(provider, "own_threads", False) for provider in self.providers)
        self.threads = min(threads, 1) if own_threads else threads
        self._requests = Requests(graph, self.store, fact)
        self._fact = fact or self._requests.declared
        doubt = WeakMethod(self._doubt)  # of this runner, which has the programs
        self._programs = Programs(graph, self.providers, self._fact, self._requests.check_missing, doubt)
        self._kept = IncrementalRunner(graph, self.store, self._programs.kept)
        self._others: dict[Any, Runner] = {}
        self._refuse = refuse
        self._refused = RefusedNodes(graph, self._requests, refuse) if refuse is not None else None

    def _doubt(self, values: bool) -> None:
        """Forget kept plans, and values too where custom operators came or went."""
        self._kept.plans.clear()
        if values:
            self.store.invalidate_all()

    def by(self, providers: Sequence[str | Provider], threads: int = 1) -> Runner:
        """The runner of the same graph with these providers, made once; `providers.named` tells the names.

        Raises:
            ProviderError: no provider has that name.
        """
        try:
            key = (tuple([providers] if isinstance(providers, str) else providers), threads)
            known = key in self._others
        except TypeError:  # no list, or a provider that is no key
            return self._sharing(named(providers, threads), threads)
        if not known:
            self._others[key] = self._sharing(named(key[0], threads), threads)
            while len(self._others) > _OTHERS:
                del self._others[next(iter(self._others))]
        return self._others[key]

    def _sharing(self, providers: Sequence[Provider], threads: int) -> Runner:
        """A runner with the values and pins of this one."""
        return Runner(self.graph, self._fact, providers, threads=threads, store=self.store, refuse=self._refuse)

    def last_inputs(self) -> dict[str, Any]:
        """The inputs of the last run whose values were kept."""
        with self.graph.lock:
            compiler, _ = self._programs.current()
            return self._requests.last_inputs(compiler, self.store.current())

    def value(self, name: str) -> Any:
        """The array of a value of the main graph as the model is now: what is stale is computed from the last inputs.

        Raises:
            NotComputedError: nothing was run yet, or not with the inputs that the value needs by now.
            NameLookupError, UnsupportedOperatorError, RunError: as `run`.
        """
        with self.graph.lock:
            compiler, _ = self._programs.current()
            state = self.store.current()
            value = compiler.ids.get(name, 0)
        if state.fresh(value):
            return state.arrays[value]
        if not state.stamps:
            raise NotComputedError(f"{name!r} has not been computed: the model has not been run yet")
        try:
            (array,) = self.run(None, [name]).values()
        except FeedError as error:
            raise NotComputedError(f"{name!r} cannot be computed from the inputs of the last run: {error}") from error
        freeze((array,))
        return array

    def declared(self, value: int) -> Fact:
        """The type that the file declares for a value; UNKNOWN where it declares none."""
        return self._requests.declared(value)

    def invalidate(self, commit: GraphCommit) -> None:
        """Follow an edit: what depends on it is no longer fresh. Register it as a follower of the graph."""
        self.store.follow(commit)
        if commit.touched.functions:
            for runner in (self, *self._others.values()):
                runner._programs.forget_steps()

    def partition(
        self,
        outputs: Sequence[str] | None = None,
        feeds: Iterable[str] = (),
        providers: Sequence[Provider] | None = None,
    ) -> Partition:
        """The provider of each node, bodies included, without running anything.

        Args:
            providers: others than the runner's own, in order of preference; the last one takes what is left.
        """
        compiler, _ = self._programs.current()
        chosen = tuple(providers or self.providers)
        if compiler.providers != chosen:
            compiler = Compiler(compiler.snapshot, chosen, self._fact)
        fed = (*compiler.snapshot.main.inputs, *feeds)
        return compiler.main.partition(fed, self._requests.outputs(compiler, outputs))

    # -- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        feeds: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
        keep: bool = True,
        seed: int | None = None,
        strict: bool = True,
    ) -> dict[str, Any]:
        """Run the main graph and return {name: array} of the outputs.

        Args:
            feeds: {name: array} of graph inputs (of the only one its array alone will do), or of any other values,
                whose producers are then not run. None: the inputs of the last run.
            outputs: names of any values of the main graph; default: the graph's outputs.
            limits: what the run may use, and the flag that stops it.
            progress: told how far the run is, about ten times a second.
            keep: keep all values and use those that are still right. Feeding anything but inputs is a what-if: it
                takes from what is kept whatever the feeds cannot change, inputs too, and changes nothing of it.
                Without `keep`, memory is let go as early as possible.
            seed: of random operators.
            strict: refuse nodes for which onnxruntime would refuse the model.

        Raises:
            FeedError: feeds that do not fit, or inputs that are missing.
            NameLookupError: an output that is no value of the main graph.
            UnsupportedOperatorError: no provider implements an operator that is needed.
            RunError: a node failed; LimitError, RunStopped: the budget is used up, or the run was stopped.
            KeyboardInterrupt: at once; the run goes no further and its result is dropped.
        """
        if feeds is not None and type(feeds) is not dict:
            feeds = self._requests.named(self._programs.current()[0], feeds)
        if outputs is not None and type(outputs) is not list:
            outputs = asked(outputs)
        plain = not keep and limits is None and progress is None and seed is None
        if plain and feeds is not None:
            ready = None if self.store.pins else fast_path.ready_program(self._programs.current()[0], feeds, outputs)
            results = None if ready is None else ready.run(feeds)
            if results is not None:
                return results
        with self.graph.lock:
            compiler, programs = self._programs.within(limits)
            state = self.store.current()
        inner = self._requests.watched(compiler, outputs)
        names = self._requests.outputs(compiler, outputs, inner)
        if feeds is None:
            unchecked = arrays = self._requests.again(compiler, state)
        else:
            unchecked = dict(feeds)
            arrays = self._requests.checked(compiler, unchecked)
        if strict and self._refused is not None:
            self._refused.check(compiler, arrays, names)
        call = Call(limits, progress, seed, self.threads, self._programs.prepare)
        noted = plain and strict
        with Loading(call.limits):
            return self._run(compiler, programs, state, call, (unchecked, arrays), (outputs, names, inner), keep, noted)

    def _run(
        self, compiler: Compiler, programs: Any, state: State, call: Call,
        feeds: tuple[Mapping[str, Any], dict[str, Any]],
        requested: tuple[Sequence[str] | None, tuple[str, ...], list[Watched]], keep: bool, noted: bool,
    ) -> dict[str, Any]:  # fmt: skip
        """The rest of a run, of feeds as they were given and checked, and outputs as they were asked for and found."""
        (unchecked, arrays), (outputs, names, inner) = feeds, requested
        main = compiler.snapshot.main
        inputs = all(name in main.inputs and name not in main.initializers for name in arrays)
        arrays = self._requests.with_pins(compiler, arrays)
        if keep and inputs and not inner:
            return self._kept.run(compiler, state, arrays, names, call)
        if keep and not inner:  # what happens in a body is seen only where it runs
            arrays = self._kept.completed(compiler, state, arrays, names)
        if inner:
            watched = watching.by_scope(inner)
            compiler, programs = self._programs.watching(compiler, watched), OrderedDict()
        general = compiler
        if not (keep or inner):
            compiler, programs = self._programs.for_shapes(compiler, programs, arrays)
        program = self._programs.program(compiler, programs, tuple(arrays), names)
        results = owned(call(program, list(arrays.values()), compiler.folder), names, arrays)
        self._programs.fallbacks.ran((tuple(arrays), names, False), program)
        if noted and not inner and self._programs.decided(general, arrays):
            fast_path.note_run(general, program, (unchecked, arrays), outputs, self.threads)
        results.update((value.path, value.found(call.run.seen)) for value in inner)
        return results if outputs is None else {name: results[name] for name in dict.fromkeys(outputs)}

    def pin(self, name: str, value: Any) -> None:
        """Let a value of the main graph be this array in every run that does not feed it, whatever makes it.

        Raises:
            FeedError: no value has this name, or its dtype is another one.
        """
        with self.graph.lock:
            compiler, _ = self._programs.current()
            ((name, array),) = self._requests.checked(compiler, {name: value}).items()
            self.store.pin(compiler.ids[name], copied(array))

    def unpin(self, name: str | None = None) -> None:
        """Let the graph make a value again; without a name, all.

        Raises:
            NameLookupError: the value is not pinned.
        """
        with self.graph.lock:
            names = {self.graph.values[value].name: value for value in self.store.pins if value in self.graph.values}
            if name is not None and name not in names:
                listed = ", ".join(map(repr, names)) or "none"
                raise NameLookupError(f"{name!r} is not pinned; pinned are: {listed}")
            for value in names.values() if name is None else (names[name],):
                self.store.unpin(value)

    def observed(
        self, observer: Observer, feeds: Mapping[str, Any] | None, call: Call, outputs: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Run once, node by node under an observer's eyes; nothing is kept. Raises as `run`."""
        with self.graph.lock:
            compiler, programs = self._programs.current()
            state = self.store.current()
        names = self._requests.outputs(compiler, outputs)
        unchecked = self._requests.last_inputs(compiler, state) if feeds is None else self._given(compiler, feeds)
        arrays = self._requests.with_pins(compiler, self._requests.checked(compiler, unchecked))
        with Loading(call.limits):
            program = self._programs.program(compiler, programs, tuple(arrays), names)
        frame = program.frame(list(arrays.values()))
        call.part(lambda: execute(program, frame, call.run, observer), len(program.rows), float("inf"))
        self._programs.prepare()
        return owned(program.results(frame), names, arrays)

    def run_nodes(
        self,
        nodes: Iterable[int],
        feeds: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
        seed: int = 0,
        strict: bool = True,
    ) -> dict[str, Any]:
        """Run these nodes (ids; a node in a body stands for the node that owns it) and return all that they make.

        What they read comes from `feeds`, else it is what the inputs of the last run make of it, else, where there was
        none, it is made up from facts. Without `feeds`, what they make after a run is kept too: it is what a run of
        the whole graph makes.

        Raises:
            NameLookupError: a node is in a function, which runs only when it is called.
            FeedError, UnsupportedOperatorError, RunError, LimitError, RunStopped: as `run`.
        """
        with self.graph.lock:
            compiler, programs = self._programs.within(limits)
            state = self.store.current()
            chosen = nodes_of_main(self.graph, nodes)
        if feeds is not None and not isinstance(feeds, Mapping):
            raise FeedError(f"a selection of nodes is fed by name, as {{name: array}}; given {describe(feeds)}")
        arrays = self._requests.checked(compiler, dict(feeds or {}))
        selection = select(compiler, chosen, arrays)
        names = selection.outputs
        call = Call(limits, progress, seed, self.threads, self._programs.prepare)
        if strict and self._refused is not None:
            self._refused.check(compiler, (*arrays, *selection.border), names)
        last = self._requests.last_inputs(compiler, state)
        if state.stamps and last.keys() >= self._requests.input_facts(compiler).keys():  # of a run of all
            if not feeds:
                with Loading(call.limits):
                    return self._kept.run(compiler, state, self._requests.with_pins(compiler, last), names, call)
            if stale := selection.stale(state, arrays):
                arrays = self.run(None, stale, limits=limits, strict=strict) | arrays
        arrays |= selection.kept(state, self.store.pins, arrays)
        selection.make_up(self.graph, arrays, seed, call.limits)
        with Loading(call.limits):
            program = self._programs.program(compiler, programs, tuple(arrays), names)
        return owned(call(program, list(arrays.values()), self._programs.folder), names, arrays)

    def sample_inputs(
        self, feeds: Mapping[str, Any] | None = None, *, seed: int = 0, sizes: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """Arrays for all graph inputs: those of `feeds`, and others made up from facts, of sizes that agree with them.

        Args:
            sizes: of symbolic dims, by name, where `feeds` do not tell them.

        Raises:
            FeedError: feeds that do not fit.
            LimitError: the arrays would take more than 80 % of the free memory.
        """
        with self.graph.lock:
            compiler, _ = self._programs.current()
        arrays = self._requests.checked(compiler, self._given(compiler, feeds))
        scope = compiler.main.scope
        missing = [name for name in scope.inputs if name not in scope.initializers and name not in arrays]
        make_up(compiler.main.scope.nodes, compiler.main.fact, missing, arrays, seed, sizes)
        return arrays

    def _given(self, compiler: Compiler, feeds: Any) -> dict[str, Any]:
        """The feeds by name; none where there are none."""
        return {} if feeds is None else dict(self._requests.named(compiler, feeds))
