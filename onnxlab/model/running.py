"""Runs of a Model: the whole, a selection, by which providers, and the arrays that stay."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import numpy as np

from onnxlab.analysis.computable_values import failure_text, keep_computable
from onnxlab.argument_types import expect, seed_of
from onnxlab.errors import NameLookupError, OnnxlabWarning
from onnxlab.execution.base.array_memory import copied
from onnxlab.execution.run.progress_bar import bar
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.handles.model_edits import Editing
from onnxlab.graph.handles.model_lookup import ValueKeys, by_name
from onnxlab.infer import Inference
from onnxlab.limits import Limits
from onnxlab.model.copying import Copying
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

if TYPE_CHECKING:
    from onnxlab.execution.base.provider import Provider
    from onnxlab.execution.planning.partition import Partition
    from onnxlab.execution.run.compiled_parts import Compiled
    from onnxlab.execution.run.requests import Keep
    from onnxlab.execution.run.runner import Runner

Array = np.ndarray[Any, Any]

Followers = list[Callable[[], Callable[[GraphCommit], Any] | None]]
"""Weak references to methods that follow commits."""

_PROGRESS = "True, or a function of (nodes done, nodes in all, label of the node)"


class RunnerOwner:
    """A graph with its inference and, once asked for, its runner: a third of the imports is for runs alone."""

    __slots__ = ()

    graph: ModelGraph
    inference: Inference
    _runner: Runner | None
    _followers: Followers

    @property
    def runner(self) -> Runner:
        """The inner layer that runs the graph and keeps the values.

        Examples:
            >>> len(model.runner.store)
            0
        """
        if (runner := self._runner) is None:
            from onnxlab.analysis.run_refusals import Judge
            from onnxlab.execution.run.runner import Runner

            judge = Judge(self.graph, self.inference)
            new = Runner(self.graph, self.inference.fact, refuse=judge, facts=self.inference.state)
            with self.graph.lock:
                if (runner := self._runner) is None:
                    runner = self._runner = new  # type: ignore[misc]
                    self._followers.append(WeakMethod(new.invalidate))
        return runner


class Running(Editing, Copying, RunnerOwner):
    """Runs of a Model, as members."""

    __slots__ = ()

    @property
    def values(self) -> Values:
        """The arrays of the last run, what edits made stale computed again.

        Examples:
            >>> done = model.run(np.zeros((1, 1, 8, 8), np.float32))
            >>> model.values["stem/relu_out"].shape
            (1, 8, 8, 8)
        """
        return Values(self.runner)

    def run(  # noqa: PLR0913
        self,
        feeds: Mapping[str, Any] | Any = None,
        outputs: ValueKeys | None = None,
        *,
        limits: Limits | None = None,
        progress: Callable[[int, int, str], Any] | bool | None = None,
        providers: Sequence[str | Provider] | None = None,
        threads: int = 1,
        seed: int | None = None,
        strict: bool = True,
        exact: bool = False,
    ) -> dict[str, Array]:
        """Run the model on `{name: array}` and return `{name: array}`.

        Args:
            feeds: an array for each input, by name or handle, or the one input alone. Any other value may be fed too,
                and is then not computed: a what-if, whose missing inputs come from the last run. None: the inputs of
                the last run, so that after an edit only what depends on it is computed again.
            outputs: names or handles of any values; default: the graph's outputs. "if_3/then_branch/x" is in a body:
                its array in the branch that ran, or for a loop the list of its arrays by iteration.
            limits: bytes, iterations, seconds and a stop flag.
            progress: called with (nodes done, nodes in all, label of the node); True draws a bar in the terminal for
                what takes longer than a second.
            providers: the providers in order of preference, as `["onnxruntime", "numpy"]`. Default: Numba's kernels,
                and NumPy for what they do not take and until they are compiled, which happens in the background. A part
                runs as a whole, and values inside are computed when they are asked for (`model.values`). After an edit,
                a run on the same inputs begins at what the edit affects.
            threads: number of threads.
            seed: of random operators that have none of their own.
            strict: refuse what onnxruntime refuses to load: nodes that the outputs need and that have wrong element
                types, unknown attributes, too many inputs and the like. False runs them as far as that makes sense.
            exact: run node by node with NumPy's kernels, and keep all values.

        Returns:
            dict[str, Array]: the outputs by name.

        Raises:
            FeedError: an array is missing, of a wrong name, dtype or shape.
            ProviderError: no provider has that name.
            UnsupportedOperatorError: nothing implements an operator that is needed.
            RunError: a node failed; the message names it, its inputs and the rule it broke.
            LimitError: the run would have exceeded its limits.

        Examples:
            >>> image = np.zeros((1, 1, 8, 8), np.float32)
            >>> model.run({"image": image}, outputs=["logits", "stem/relu_out"])["logits"].shape
            (1, 10)
        """
        if not (limits is None is seed is progress):
            expect(limits, (Limits, type(None)), "limits", "onnxlab.Limits(…)")
            seed = seed_of(seed)
            expect(progress, (Callable, bool, type(None)), "progress", _PROGRESS)  # type: ignore[arg-type]
        if isinstance(progress, bool):
            with bar(f"run {self.name}") if progress else nullcontext() as drawn:
                return self.run(feeds, outputs, limits=limits, progress=drawn, providers=providers, threads=threads,
                                seed=seed, strict=strict, exact=exact)  # fmt: skip
        threads = threads if type(threads) is int else expect(threads, int, "threads", "a number")
        feeds, names = by_name(self.graph, feeds), None if outputs is None else by_name(self.graph, outputs)
        runner = self._runner or self.runner
        keep: Keep = "exact" if exact else "border"
        by = None if exact else runner.by(providers, threads) if providers else runner.usual(threads)
        return runner.run(feeds, names, limits=limits, progress=progress, keep=keep, seed=seed, strict=strict, by=by)

    @property
    def compiled(self) -> Compiled:
        """The parts of the last run by provider, what is being compiled, and whether that is wanted; print it.

        Examples:
            >>> done = model.run(np.zeros((1, 1, 8, 8), np.float32))
            >>> model.compiled.in_background
            True
        """
        from onnxlab.execution.run.compiled_parts import Compiled

        return Compiled(self.runner)

    def pin(self, value: str, array: Any) -> None:
        """Use an array for a value in every run that does not feed it, whatever the graph would make of it.

        Args:
            value: name of the value.
            array: its data.

        Raises:
            FeedError: no value of the main graph has this name, or its dtype is another one.

        Examples:
            >>> model.pin("logits", np.eye(10, dtype=np.float32)[:1])
            >>> model.run(np.zeros((1, 1, 8, 8), np.float32))["probabilities"].argmax()
            np.int64(0)
        """
        self.runner.pin(expect(self._by_name(value), str, "value", "the name of a value, or its handle"), array)

    def unpin(self, value: str | None = None) -> None:
        """Let the graph make a pinned value again.

        Args:
            value: its name; None: all that are pinned.

        Raises:
            NameLookupError: the value is not pinned.

        Examples:
            >>> model.pin("logits", np.zeros((1, 10), np.float32))
            >>> model.unpin("logits")
        """
        self.runner.unpin(self._by_name(value))

    def partition(
        self, providers: Sequence[str | Provider] | None = None, outputs: Sequence[str] | None = None
    ) -> Partition:
        """Partition the nodes among providers, without running anything.

        Args:
            providers: in order of preference, as `["onnxruntime", "numpy"]`; default: those of `run`.
            outputs: values to compute; default: the graph's outputs.

        Returns:
            Partition: parts, what crosses between them, why providers refused nodes; print it.

        Raises:
            ProviderError: no provider has that name.

        Examples:
            >>> print(model.partition(["numpy"]))
               0  numpy            24 nodes  /stem/conv/Conv … /head/Softmax
            0 values cross between parts: 0 B
        """
        return self.runner.partition(self._by_name(outputs), by=self.runner.by(providers))

    def sample_inputs(
        self, feeds: Mapping[str, Any] | None = None, *, seed: int = 0, limits: Limits | None = None
    ) -> dict[str, Array]:
        """Make arrays for all inputs up from what is known of them (floats are N(0, 1)).

        Args:
            feeds: arrays to take as they are.
            seed: of the random numbers.
            limits: the bytes that the arrays may take, else LimitError; default: 80 % of the free memory.

        Returns:
            dict[str, Array]: an array for each input.

        Examples:
            >>> model.sample_inputs()["image"].shape
            (2, 1, 8, 8)
        """
        seed = seed_of(expect(seed, int, "seed", "a number")) or 0
        expect(limits, (Limits, type(None)), "limits", "onnxlab.Limits(…)")
        return self.runner.sample_inputs(self._by_name(feeds), seed=seed, limits=limits and limits.begin())

    def subgraph(self, nodes: Iterable[int | str | Node]) -> Subgraph:
        """Select nodes to be run by themselves.

        Args:
            nodes: positions, names or handles.

        Returns:
            Subgraph: its `run` computes just these nodes.

        Raises:
            NameLookupError: there is no such node.

        Examples:
            >>> model.subgraph(["/stem/conv/Conv", "/stem/relu/Relu"])
            <Subgraph of 2 nodes>
        """
        return Subgraph(self.runner, [record.id for record in self._node_records(nodes)])


class Values(Spelled, Mapping[str, Array]):
    """Arrays of the last run, by value name, as the model makes them now: `values["relu1_out"]`.

    A run keeps its inputs and the values that cross between its parts. Every other value, and every value that an edit
    or a pin made stale, is computed from the inputs of the last run when it is asked for. `get(name, stale=True)` gives
    the array from before. Iteration, `in` and `len` compute nothing: they cover every value of the main graph that the
    inputs lead to. `keys()`, `items()`, `values()`, and so `dict(values)`, compute all of them at once, and leave those
    out that nodes which fail would make.
    """

    __slots__ = ("_left_out", "_runner")

    def __init__(self, runner: Runner, left_out: Collection[str] = ()) -> None:
        self._runner = runner
        self._left_out = left_out

    def __getitem__(self, name: str) -> Array:
        graph = self._runner.graph
        name = by_name(graph, name)
        record = graph.values[graph.resolve_value(name)]
        value = self._runner.value(record.name if record.scope == graph.main.id else name)
        return copied(value) if isinstance(value, list | dict) else value  # type: ignore[no-any-return]

    def get(self, name: str, default: Any = None, *, stale: bool = False) -> Any:
        """The array of a value, `default` where nothing was run that has one.

        Args:
            stale: return the array that was last computed, even if an edit changed the value since.

        Raises:
            RunError: computing the value again fails.
        """
        try:
            if not stale:
                return self[name]
            array = self._runner.store.get(self._id(name))
        except NameLookupError:
            return default
        return default if array is None else copied(array) if isinstance(array, list | dict) else array

    def is_stale(self, name: str) -> bool:
        """Whether the kept array of a value is not what the model makes of the last inputs now; False without one.

        Raises:
            NameLookupError: no value has this name.
        """
        value, store = self._id(name), self._runner.store
        self._runner.programs.current()  # notices custom operators that are other ones now
        return value in store and not store.fresh(value)

    def _id(self, name: str) -> int:
        graph = self._runner.graph
        return graph.resolve_value(by_name(graph, name))

    def keys(self) -> KeysView[str]:
        """The names of all values, computed at once; a warning names those that cannot be computed."""
        return KeysView(self._computed())

    def items(self) -> ItemsView[str, Array]:
        """All values, computed at once; a warning names those that cannot be computed."""
        return ItemsView(self._computed())

    def values(self) -> ValuesView[Array]:
        """The arrays of all values, computed at once; a warning names those that cannot be computed."""
        return ValuesView(self._computed())

    def _computed(self) -> Values:
        """These values, but for those that cannot be computed."""
        failed = keep_computable(self._runner)
        if not failed:
            return self
        warnings.warn(failure_text(failed, len(self)), OnnxlabWarning, stacklevel=3)
        return Values(self._runner, failed)

    def __contains__(self, name: object) -> bool:
        name = by_name(self._runner.graph, name)
        return isinstance(name, str) and name not in self._left_out and self._runner.on_demand.can_tell(name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._runner.on_demand.known_names() if name not in self._left_out])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Subgraph(Spelled, metaclass=ShortHelp):
    """Some nodes of a model: `run` runs them by themselves, `node_ids` are their ids; made by `model.subgraph(nodes)`.

    Examples:
        >>> stem = model.subgraph(["/stem/conv/Conv", "/stem/relu/Relu"])
        >>> sorted(stem.run())
        ['stem/conv_out', 'stem/relu_out']
    """

    __slots__ = ("node_ids", "runner")

    def __init__(self, runner: Runner, nodes: Sequence[int]) -> None:
        self.runner = runner
        self.node_ids = tuple(nodes)

    def run(
        self,
        feeds: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        progress: Callable[[int, int, str], Any] | None = None,
        seed: int | None = None,
        strict: bool = True,
    ) -> dict[str, Array]:
        """Run just these nodes and return everything that they make.

        An input from outside of the selection comes from `feeds`, else is computed from the inputs of the model's last
        run. Before any run, and for an input that came since, it is made up (floats are N(0, 1)) as `seed` says.

        Args:
            feeds: arrays by value name.
            limits: bytes, iterations, seconds and a stop flag.
            progress: called with (nodes done, nodes in all, label of the node).
            seed: of made-up inputs, and of random operators: with one, their values of the last run are made again.
            strict: refuse what onnxruntime refuses to load.

        Returns:
            dict[str, Array]: all values that the nodes make, by name.

        Raises:
            RunError: a node failed; the message names it. Others as `Model.run`.

        Examples:
            >>> below = np.full((1, 8, 8, 8), -1, np.float32)
            >>> model.subgraph("/stem/relu/Relu").run({"stem/bn_out": below})["stem/relu_out"].max()
            np.float32(0.0)
        """
        expect(limits, (Limits, type(None)), "limits", "onnxlab.Limits(…)")
        feeds, seed = by_name(self.runner.graph, feeds), seed_of(seed)
        return self.runner.run_nodes(self.node_ids, feeds, limits=limits, progress=progress, seed=seed, strict=strict)

    def __repr__(self) -> str:
        return f"<Subgraph of {len(self.node_ids)} nodes>"
