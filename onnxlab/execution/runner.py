"""Running one ModelGraph: all of it, up to some values, from some values, or a selection of nodes.

    runner = Runner(graph, inference.fact)
    runner.run(feeds)                              # {name: array} of the graph's outputs
    runner.run(feeds, outputs=["relu1_out"])       # any values of the main graph; only what they need is run
    runner.run({"relu1_out": array})               # any value may be fed: what makes it is not run
    runner.run()                                   # with the inputs of the last run: after an edit, what it changed
    runner.run_nodes([3, 4, 5])                    # a selection; what is missing comes from the store or is made up
    runner.store.get(value_id)                     # what a value was when it was last run
    graph.followers.append(runner.invalidate)      # so that it hears of edits
    print(runner.partition())                      # who would run what

`run` and `run_nodes` may be called from many threads at once.
"""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnxlab.errors import NameLookupError
from onnxlab.execution import feeds as checks
from onnxlab.execution import watching
from onnxlab.execution.call import PACE, QUICK, Call, Progress
from onnxlab.execution.compiler import Compiler, FactOf, StepCache
from onnxlab.execution.executor import Observer
from onnxlab.execution.folding import Folder
from onnxlab.execution.keeping import same_names
from onnxlab.execution.kept import KeptRuns, copied, owned
from onnxlab.execution.numpy_provider import NumpyProvider
from onnxlab.execution.partition import Partition
from onnxlab.execution.program import Program
from onnxlab.execution.provider import Provider
from onnxlab.execution.providers import named
from onnxlab.execution.ready import ReadyProgram, signature
from onnxlab.execution.store import State, ValueStore
from onnxlab.execution.synthetic import make_up
from onnxlab.execution.watching import Watched
from onnxlab.graph.commits import GraphCommit
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.infer.types import fact_of_type
from onnxlab.limits import Limits
from onnxlab.ops import registry
from onnxlab.shapes import UNKNOWN, Fact, TensorFact, symbol

_PROGRAMS = 16  # kept per version of the model
_OTHERS = 4  # runners with other providers


class Runner:
    """Runs a model's graph in place and keeps its values.

    Args:
        graph: the model.
        fact: what inference knows of a value id; default: what the file declares.
        providers: in order of preference; the last one takes what is left; default: NumPy alone.
        keep_bytes: memory for kept values; default 40 % of what is available.
        threads: of BLAS during runs (see `blas`); 0 leaves it as it is. More pay for large products on idle cores. It
            is one where a provider brings threads of its own: BLAS's would spin beside them.

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
    ) -> None:
        self.graph = graph
        self.providers = tuple(providers or (NumpyProvider(),))
        self.store = ValueStore(graph, keep_bytes)
        own = any(getattr(provider, "own_threads", False) for provider in self.providers)
        self.threads = min(threads, 1) if own else threads
        self._fact = fact or self.declared
        self._steps = StepCache()
        self._folder = Folder()
        self._generation = registry.generation()
        self._others: dict[Any, Runner] = {}
        self._kept = KeptRuns(graph, self.store, self._check_missing)
        self._prepared = False
        self._compiled: tuple[Compiler, OrderedDict[Any, Program]] | None = None

    def by(self, providers: Sequence[str | Provider], threads: int = 1) -> Runner:
        """The runner of the same graph with these providers, made once; `providers.named` tells the names.

        Raises:
            ValueError: no provider has that name.
        """
        key = (tuple([providers] if isinstance(providers, str) else providers), threads)
        if key not in self._others:
            self._others[key] = Runner(self.graph, self._fact, named(key[0], threads), threads=threads)
            while len(self._others) > _OTHERS:
                del self._others[next(iter(self._others))]
        return self._others[key]

    def last_inputs(self) -> dict[str, Any]:
        """The inputs of the last run whose values were kept."""
        with self.graph.lock:
            compiler, _ = self._current()
            return self._last_inputs(compiler, self.store.settled())

    def declared(self, value: int) -> Fact:
        """The type that the file declares for a value; UNKNOWN where it declares none."""
        record = self.graph.values.get(value)
        if record is None or record.info is None:
            return UNKNOWN
        return fact_of_type(record.info.type, lambda axis: symbol(f"{record.name}.{axis}"))

    def invalidate(self, commit: GraphCommit) -> None:
        """Follow an edit: what depends on it is no longer fresh. Register it as a follower of the graph."""
        self.store.follow(commit)
        if commit.touched.functions:
            self._steps.clear()

    def partition(
        self,
        outputs: Sequence[str] | None = None,
        feeds: Iterable[str] = (),
        providers: Sequence[Provider] | None = None,
    ) -> Partition:
        """Which provider would run which nodes, bodies included, without running anything.

        Args:
            providers: others than the runner's own, in order of preference; the last one takes what is left.
        """
        compiler, _ = self._current()
        wanted = tuple(providers or self.providers)
        if compiler.providers != wanted:
            compiler = Compiler(compiler.snapshot, wanted, self._fact)
        given = (*compiler.snapshot.main.inputs, *feeds)
        return compiler.main.partition(given, self._outputs(compiler, outputs))

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
    ) -> dict[str, Any]:
        """Run the main graph and return {name: array} of the outputs.

        Args:
            feeds: {name: array} of graph inputs, or of any other values, whose producers are then not run. None:
                the inputs of the last run.
            outputs: names of any values of the main graph; default: the graph's outputs.
            limits: what the run may use, and the flag that stops it.
            progress: told how far the run is, about ten times a second.
            keep: keep all values and use those that are still right. Feeding anything but inputs is a what-if: it
                takes from what is kept whatever the feeds cannot change, inputs too, and changes nothing of it.
                Without `keep`, memory is let go as early as possible.
            seed: of random operators.

        Raises:
            FeedError: feeds that do not fit, or inputs that are missing.
            NameLookupError: an output that is no value of the main graph.
            UnsupportedOperatorError: no provider implements an operator that is needed.
            RunError: a node failed; LimitError, RunStopped: the budget is used up, or somebody stopped the run.
            KeyboardInterrupt: at once; the run goes no further and its result is dropped.
        """
        plain = not keep and limits is None and progress is None and seed is None
        if plain and feeds is not None and (ready := self._ready(self._current()[0], feeds, outputs)) is not None:
            return ready.run(feeds)
        with self.graph.lock:
            compiler, programs = self._current()
            state = self.store.settled()
        inner = self._watched(compiler, outputs)
        names = self._outputs(compiler, outputs, inner)
        given = self._last_inputs(compiler, state) if feeds is None else dict(feeds)
        arrays = self._checked(compiler, given)
        call = Call(limits, progress, seed, self.threads, self._prepare)
        main = compiler.snapshot.main
        inputs = all(name in main.inputs and name not in main.initializers for name in arrays)
        arrays = self._with_pins(compiler, arrays)
        if keep and inputs and not inner:
            return self._kept.run(compiler, state, arrays, names, call)
        if keep and not inner:  # what happens in a body is seen only where it runs
            arrays = self._kept.completed(compiler, state, arrays, names)
        if inner:
            watched = watching.by_scope(inner)
            compiler = Compiler(compiler.snapshot, compiler.providers, self._fact, watched=watched)
            programs = OrderedDict()
        program = self._program(compiler, programs, tuple(arrays), names)
        found = owned(call(program, list(arrays.values()), compiler.folder), names, arrays)
        if plain and not inner:
            self._note(compiler, program, given, arrays, outputs)
        found.update((one.path, one.found(call.run.seen)) for one in inner)
        return found if outputs is None else {name: found[name] for name in dict.fromkeys(outputs)}

    def _ready(
        self, compiler: Compiler, feeds: Mapping[str, Any], outputs: Sequence[str] | None
    ) -> ReadyProgram | None:
        """What runs these feeds without further ado, None where something is new or takes long."""
        found: ReadyProgram | None = compiler.ready.get((tuple(feeds), None if outputs is None else tuple(outputs)))
        if found is None or found.seconds > QUICK or self.store.pins or signature(feeds) not in found.accepted:
            return None
        return found

    def _note(
        self, compiler: Compiler, program: Program, feeds: Mapping[str, Any], arrays: Mapping[str, Any],
        outputs: Sequence[str] | None,
    ) -> None:  # fmt: skip
        """Remember a run for `_ready`."""
        key = (tuple(feeds), None if outputs is None else tuple(outputs))
        ready = compiler.ready.get(key)
        if ready is None or ready.program is not program:
            ready = compiler.ready[key] = ReadyProgram(program, compiler.folder, self.threads)
        ready.accept(feeds, arrays, program.notes.get(PACE, (0, 0.0))[1])

    def pin(self, name: str, value: Any) -> None:
        """Let a value of the main graph be this array in every run that does not feed it, whatever makes it.

        Raises:
            FeedError: no value has this name, or its dtype is another one.
        """
        with self.graph.lock:
            compiler, _ = self._current()
            ((name, array),) = self._checked(compiler, {name: value}).items()
            self.store.pin(compiler.main.ids[name], copied(array))

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
            compiler, programs = self._current()
            state = self.store.settled()
        names = self._outputs(compiler, outputs)
        given = self._last_inputs(compiler, state) if feeds is None else dict(feeds)
        arrays = self._with_pins(compiler, self._checked(compiler, given))
        program = self._program(compiler, programs, tuple(arrays), names)
        frame = program.frame(list(arrays.values()))
        call.part(program, frame, program.rows, observer, float("inf"))
        self._prepare()
        return owned(program.results(frame), names, arrays)

    def run_nodes(
        self,
        nodes: Iterable[int],
        feeds: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Run these nodes (ids; a node in a body stands for the node that owns it) and return all that they make.

        What they read comes from `feeds`, else from the store where it is fresh, else it is made up from facts. Where
        all of it is in the store, what they make is kept too: it is what a run of the whole graph makes.

        Raises:
            NameLookupError: a node is in a function, which runs only when it is called.
            FeedError, UnsupportedOperatorError, RunError, LimitError, RunStopped: as `run`.
        """
        with self.graph.lock:
            compiler, programs = self._current()
            state = self.store.settled()
            chosen = {self._in_main(node) for node in nodes}
        arrays = self._checked(compiler, dict(feeds or {}))
        views = [node for node in compiler.snapshot.main.nodes if node.id in chosen]
        made = dict.fromkeys(name for node in views for name in node.outputs if name)
        names = tuple(name for name in made if name not in arrays)
        read = dict.fromkeys(name for node in views for name in compiler.main.reads(node))
        border = [name for name in read if name not in made and name not in compiler.main.scope.initializers]
        ids = compiler.main.ids
        pins = self.store.pins
        for name in border:
            value = ids.get(name, 0)
            if name not in arrays and (value in pins or state.fresh(value)):
                arrays[name] = pins[value] if value in pins else state.arrays[value]
        call = Call(limits, progress, seed, self.threads, self._prepare)
        missing = [name for name in border if name not in arrays]
        last = self._last_inputs(compiler, state)
        if not (feeds or missing) and last.keys() >= self._input_facts(compiler).keys():  # a part of a whole run
            return self._kept.run(compiler, state, self._with_pins(compiler, last), names, call)
        make_up(compiler.main.scope.nodes, compiler.main.fact, missing, arrays, seed)
        program = self._program(compiler, programs, tuple(arrays), names)
        return owned(call(program, list(arrays.values()), self._folder), names, arrays)

    def sample_inputs(
        self, feeds: Mapping[str, Any] | None = None, *, seed: int = 0, sizes: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """Arrays for all graph inputs: those of `feeds`, and others made up from facts, of sizes that agree with them.

        Args:
            sizes: of symbolic dims, by name, where `feeds` do not tell them.

        Raises:
            FeedError: feeds that do not fit.
        """
        with self.graph.lock:
            compiler, _ = self._current()
        arrays = self._checked(compiler, dict(feeds or {}))
        scope = compiler.main.scope
        missing = [name for name in scope.inputs if name not in scope.initializers and name not in arrays]
        make_up(compiler.main.scope.nodes, compiler.main.fact, missing, arrays, seed, sizes)
        return arrays

    def _in_main(self, node: int) -> int:
        record = self.graph.nodes.get(node)
        owner = self.graph.index.owner_in(record, self.graph.main.id) if record else 0
        if record is None or not owner:
            where = "is in a function: select the nodes that call it" if record else "does not exist"
            raise NameLookupError(f"node {self.graph.label(record) if record else node} {where}")
        return owner

    # -- preparing --------------------------------------------------------------------------------------------------

    def _current(self) -> tuple[Compiler, OrderedDict[Any, Program]]:
        """The compiler of the model as it is now, and the programs that it has made."""
        with self.graph.lock:
            snapshot = self.graph.snapshot()
            if self._generation != registry.generation():  # custom operators came or went
                self._generation = registry.generation()
                self._steps.clear()
                self._kept.plans.clear()
                self._compiled = None
                self.store.doubt()
            providers = self.providers if self._prepared else self._at_hand()
            before = self._compiled
            if before is not None and before[0].snapshot is snapshot and before[0].providers == providers:
                return before
            compiler = Compiler(snapshot, providers, self._fact, self._steps, self._folder)
            if before is not None:
                self._folder.turn()
                if before[0].providers != providers:
                    self._kept.plans.clear()
                if same_names(before[0].snapshot, snapshot):
                    compiler.main.ids = before[0].main.ids
            self._compiled = compiler, OrderedDict()
            return self._compiled

    def _at_hand(self) -> tuple[Provider, ...]:
        """The providers that can be used now."""
        found = tuple([each for each in self.providers if getattr(each, "prepared", True)])
        self._prepared = found == self.providers
        return found

    def _prepare(self) -> None:
        """After a run: have those providers made ready that it had to do without."""
        for provider in self.providers:
            if not getattr(provider, "prepared", True):
                provider.prepare()  # type: ignore[attr-defined]

    def _program(
        self,
        compiler: Compiler,
        programs: OrderedDict[Any, Program],
        feeds: tuple[str, ...],
        outputs: tuple[str, ...],
    ) -> Program:
        key = (feeds, outputs)
        program = programs.get(key)
        if program is None:
            self._check_missing(compiler, feeds, outputs)
            program = programs[key] = compiler.program(feeds, outputs)
            while len(programs) > _PROGRAMS:
                programs.popitem(last=False)
        return program

    def _with_pins(self, compiler: Compiler, arrays: dict[str, Any]) -> dict[str, Any]:
        """The feeds and the pinned values that are not fed."""
        pins, names = self.store.pins, compiler.main.names if self.store.pins else {}
        return {names[value]: array for value, array in pins.items() if value in names} | arrays

    def _watched(self, compiler: Compiler, outputs: Sequence[str] | None) -> list[Watched]:
        """Those outputs that are values inside bodies."""
        if outputs is None:
            return []
        ids, main = compiler.main.ids, self.graph
        listed = [outputs] if isinstance(outputs, str) else outputs
        return [watching.find(main, compiler.snapshot, name) for name in listed if name not in ids and "/" in str(name)]

    def _check_missing(self, compiler: Compiler, feeds: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        """Raise FeedError where the outputs need an input that is not fed."""
        ends = compiler.main.border(outputs, set(feeds).__contains__, missing=True)
        inputs = self._input_facts(compiler)
        checks.check_missing([name for name in ends if name in inputs], feeds, inputs)

    def _outputs(
        self, compiler: Compiler, outputs: Sequence[str] | None, inner: Sequence[Watched] = ()
    ) -> tuple[str, ...]:
        if outputs is None:
            return tuple(dict.fromkeys(compiler.snapshot.main.outputs))
        if isinstance(outputs, str):
            outputs = [outputs]
        ids = compiler.main.ids
        paths = {one.path for one in inner}
        names = dict.fromkeys(name for name in outputs if name not in paths)
        for name in names:
            if name not in ids:
                close = difflib.get_close_matches(str(name), list(ids), 3)
                hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
                raise NameLookupError(f"no value of the main graph is called {name!r}{hint}")
        names.update(dict.fromkeys(name for one in inner for name in one.outputs))
        return tuple(names)

    def _input_facts(self, compiler: Compiler) -> dict[str, Fact]:
        """What is declared of the graph's inputs; found out once for each version of the model."""
        facts: dict[str, Fact] | None = compiler.notes.get("inputs")
        if facts is None:
            main = compiler.snapshot.main
            facts = compiler.notes["inputs"] = {
                name: self.declared(value)
                for name, value in zip(main.inputs, main.input_ids, strict=True)
                if name not in main.initializers
            }
        return facts

    def _checked(self, compiler: Compiler, given: Mapping[str, Any]) -> dict[str, Any]:
        """The feeds as arrays: inputs must be as declared, of other values only the dtype is checked."""
        ids = compiler.main.ids
        inputs = self._input_facts(compiler)
        if not given.keys() <= ids.keys():
            checks.check_names(given, inputs, ids)
        facts = {name: inputs[name] if name in inputs else _dtype_only(self._fact(ids[name])) for name in given}
        return checks.convert(given, facts)

    def _last_inputs(self, compiler: Compiler, state: State) -> dict[str, Any]:
        main = compiler.snapshot.main
        return {
            name: state.arrays[value]
            for name, value in zip(main.inputs, main.input_ids, strict=True)
            if value in state.arrays and name not in main.initializers
        }


def _dtype_only(fact: Fact) -> Fact:
    """A fed intermediate value may have any shape: what it breaks, the nodes behind it say."""
    return TensorFact(fact.elem_type) if isinstance(fact, TensorFact) else fact
