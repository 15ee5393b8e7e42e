"""`Model`: what users hold. One ModelGraph with its inference, values and views; a facade without logic of its own."""

import importlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnxlab.analysis.check import Checker, combined
from onnxlab.analysis.profile import Profile, profile
from onnxlab.errors import Diagnostic, EditError, JournalWarning, NameLookupError, SaveError
from onnxlab.execution.partition import Partition
from onnxlab.execution.progress import bar
from onnxlab.execution.protos import as_model
from onnxlab.execution.provider import Provider
from onnxlab.execution.providers import named
from onnxlab.execution.runner import Runner
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats import recovery, saving, textual
from onnxlab.formats.journal import Journal
from onnxlab.formats.recovery import Recovery
from onnxlab.formats.report import FieldChange
from onnxlab.formats.source import Source
from onnxlab.graph import edits
from onnxlab.graph.commits import CommitKind, GraphCommit, Touched
from onnxlab.graph.editing import ValueKey
from onnxlab.graph.extraction import extract
from onnxlab.graph.handles import Node, Nodes, Value
from onnxlab.graph.history import History
from onnxlab.graph.lazy import LazyTensor
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.queries import FactOf
from onnxlab.graph.querying import Querying
from onnxlab.graph.records import NodeRecord, ValueRecord
from onnxlab.graph.transaction import Transaction
from onnxlab.infer import Inference
from onnxlab.infer.explain import Explanation
from onnxlab.infer.radius import blast_radius
from onnxlab.infer.whatif import Sized
from onnxlab.infer.wires import wire_problem
from onnxlab.limits import Limits
from onnxlab.shapes import Fact

Array = np.ndarray[Any, Any]
ModelSource = str | PathLike[str] | bytes | onnx.ModelProto


@dataclass(frozen=True, slots=True)
class Commit:
    """What one edit, undo or redo did.

    Attributes:
        version: the model's version after it.
        fact_ids: {value id: (fact before, fact after)} for every value whose type, shape or known value changed.
        facts: the same by the value's name, with the path of its scope in front where it is not in the main graph.
        touched: ids of what was added, changed and removed.
        first_refusal: the problem of the first node that cannot accept the change; None where all do.
        origin: who asked for it (a view's session), or None.
    """

    version: int
    label: str
    kind: CommitKind
    fact_ids: Mapping[int, tuple[Fact, Fact]]
    facts: Mapping[str, tuple[Fact, Fact]]
    touched: Touched
    origin: Any = None
    first_refusal: Diagnostic | None = None

    def __str__(self) -> str:
        """What the edit did to the facts, in topological order, and the first node that refuses it."""
        return blast_radius(f"{self.kind} {self.label!r}", self.facts, self.first_refusal)

    def __repr__(self) -> str:
        return f"<Commit {self.version}: {self.kind} {self.label!r}, {len(self.facts)} facts changed>"


class Model(Querying):
    """A model that can be looked at, edited, run, undone and saved.

    Made by `onnxlab.load`; `Model(proto)` wraps a ModelProto, which it keeps and mutates.

    Attributes:
        graph: the ModelGraph below, for records by id, networkx and snapshots.
        inference: types, shapes and known values, always up to date with the graph.
        runner: runs the graph and keeps the values.
        on_save: called, without arguments, after each save.
        recoverable: edits of the file that were never saved, from a process that is gone; the newest last.
    """

    def __init__(self, proto: onnx.ModelProto, source: Source | None = None) -> None:
        self.source = source
        self.graph = ModelGraph(proto, source.base_dir if source else None)
        self.inference = Inference(self.graph)
        self.runner = Runner(self.graph, self.inference.fact)
        self._checker = Checker(self.graph)
        self.last_change: Commit | None = None
        self.graph.journal = self._journal = Journal(self.graph, source)
        self.recoverable = recovery.find(source)
        self._saved_state = 0
        self._subscribers: list[Callable[[Commit], Any]] = []
        self.on_save: list[Callable[[], Any]] = []
        self.graph.followers.append(self._follow)

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def proto(self) -> onnx.ModelProto:
        """The live ModelProto: read it freely, change it through the model."""
        return self.graph.proto

    @property
    def path(self) -> Path | None:
        """The file it was loaded from or saved to last."""
        return self.source.path if self.source else None

    @property
    def name(self) -> str:
        """File name, else the graph's name, for titles."""
        return self.path.name if self.path else self.graph.proto.graph.name or "model"

    @property
    def nodes(self) -> Nodes:
        """Nodes of the main graph: by position, name, output, or path into a body ("if_3/then_branch/Conv_2")."""
        return Nodes(self.graph)

    @property
    def values(self) -> "Values":
        """The arrays of the last run, as far as edits left them valid: `model.values["relu1_out"]`."""
        return Values(self)

    @property
    def nx(self) -> Any:
        """The main graph as a live, read-only networkx.MultiDiGraph of node ids."""
        return self.graph.nx()

    @property
    def history(self) -> History:
        return self.graph.history

    @property
    def version(self) -> int:
        """Counts edits, undo and redo included."""
        return self.graph.version

    @property
    def dirty(self) -> bool:
        """Whether there are edits that are not saved."""
        return self.history.state != self._saved_state

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Everything that inference found wrong, pinned to nodes."""
        return list(self.inference.diagnostics)

    def check(self, *, types: bool = True) -> list[Diagnostic]:
        """Every problem of the model, pinned to nodes and values, as `onnxlab.check` finds them.

        After an edit only what it touched is checked again. `types=False` leaves out what inference finds.
        """
        return combined(self._checker.problems(), self.diagnostics if types else ())

    def node(self, ident: int) -> Node:
        """The node with an id (or whatever `nodes[…]` takes as a name)."""
        return Node(self.graph, ident if ident in self.graph.nodes else self.graph.resolve_node(ident))

    def value(self, key: int | str) -> Value:
        """The value with an id or name."""
        if isinstance(key, int) and key in self.graph.values:
            return Value(self.graph, key)
        return Value(self.graph, self.graph.resolve_value(key))  # type: ignore[arg-type]

    def tensor(self, value: int | str) -> LazyTensor:
        """The data of an initializer, read only where it is touched: `model.tensor("w")[0]`, `np.asarray(…)` for all.

        Raises:
            NameLookupError: no value has this name, or it is no dense initializer.
            LoadError: type and shape make no tensor.
        """
        stored = self.value(value).initializer
        if not isinstance(stored, onnx.TensorProto):
            raise NameLookupError(f"{value!r} is no initializer with dense data")
        return LazyTensor(stored, self.graph.base_dir)

    def fact(self, value: int | str | Value) -> Fact:
        """What is known of a value: `.dtype`, `.shape`, `.value`; always up to date.

        Raises:
            NameLookupError: no value has this name.
        """
        return self.inference.fact(self._value_id(value))

    def explain(self, value: int | str | Value, axis: int | None = None) -> Explanation:
        """Why the dim of `axis` (None: each dim) of a value is what it is; print it.

        The way back through the nodes that made it what it is, with the edits that touched them, to what the model
        declares, or to the operator that lost it and why.

        Raises:
            NameLookupError: no value has this name, or the value has no such axis.
        """
        return self.inference.explain(self._value_id(value), axis)

    def with_dims(self, dims: Mapping[str, int] | None = None, /, **named: int) -> Sized:
        """What if: all shapes, and the memory of each value, with numbers for the symbols of the model's inputs.

        `model.with_dims(batch=8, seq=512)`; names that are no Python names go into a mapping. Symbols that are not
        given stay, and the answer says which values they leave open. The model is not touched.

        Raises:
            NameLookupError: no input has a symbol of this name; the message lists those that there are.
            ValueError: a size is not an int from 0 on.
        """
        return self.inference.with_dims({**(dims or {}), **named})

    def _value_id(self, value: int | str | Value) -> int:
        if isinstance(value, (int, Value)):
            return value if isinstance(value, int) else value.id
        return self.graph.resolve_value(value)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Inputs that a run must be given: those that are not also initializers."""
        values = (Value(self.graph, vid) for vid in self.graph.main.inputs)
        return tuple(value for value in values if value.initializer is None)

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(Value(self.graph, vid) for vid in self.graph.main.outputs)

    # -- editing ----------------------------------------------------------------------------------------------------

    def edit(self, label: str) -> Transaction:
        """`with model.edit("swap activation"): …` makes several changes one step: all of them, or none and an error."""
        return self.graph.edit(label)

    def undo(self, to: int | str | None = None) -> Commit | None:
        """Take back the last edit; returns what changed, None where there is nothing to undo.

        Args:
            to: go back (or on) to a state: a number of edits since the model was loaded, negative from now, or the
                label of the edit that led to it; then the last of several commits is returned.

        Raises:
            EditError: the history has no such state.
        """
        if to is not None:
            before = self.version
            self.graph.travel(self.history.position_of(to))
            return self.last_change if self.version != before else None
        return self.last_change if self.graph.undo() else None

    def redo(self) -> Commit | None:
        """Make the edit again that was undone last; None where there is none."""
        return self.last_change if self.graph.redo() else None

    @property
    def fact_of(self) -> FactOf:
        """What inference knows of a value id."""
        return self.inference.fact

    def declaration(self, value: int) -> onnx.ValueInfoProto:
        """A ValueInfoProto of what inference knows of a value id."""
        return self.inference.declaration(value)

    def type_refusal(self, value: ValueRecord, node: NodeRecord, slot: int) -> str | None:
        """Why the types that inference knows forbid a node to read a value in a slot, None where they do not."""
        return wire_problem(self.graph, self.inference.fact, value, node, slot)

    def extract(self, outputs: Iterable[ValueKey], inputs: Iterable[ValueKey] = ()) -> "Model":
        """A new model that computes `outputs` from `inputs` and from what graph inputs are needed besides.

        What bodies capture, initializers, functions, declarations, opsets and metadata follow.

        Raises:
            EditError: the values are of different graphs, or one is made by nobody.
        """
        graph = self.graph
        proto = extract(
            graph, [self.value_record(key) for key in outputs], [self.value_record(key) for key in inputs],
            self.inference.declaration,
        )  # fmt: skip
        return Model(proto, Source(base_dir=graph.base_dir))

    def insert(
        self,
        other: "Model | ModelSource",
        connect: Mapping[str, ValueKey] | None = None,
        prefix: str = "",
        add_outputs: bool = True,
    ) -> dict[str, str]:
        """Put another model into this one; returns what its values are called here.

        Args:
            connect: what each input of the other model reads; those left out become inputs of this one.
            prefix: put before all its names; names that are taken get a number behind them anyway.
            add_outputs: whether its outputs become outputs of this one.

        Raises:
            EditError: it has no such input, or its operators mean something else at this model's opset version.
        """
        graph = other.graph if isinstance(other, Model) else load(other).graph
        wires = {name: self.value_record(key) for name, key in (connect or {}).items()}
        return dict(edits.insert_model(self.graph, graph, wires, prefix, add_outputs).names)

    def subscribe(self, follower: Callable[[Commit], Any]) -> Callable[[], None]:
        """Call `follower` with every Commit from now on; returns a function that ends it."""
        self._subscribers.append(follower)

        def unsubscribe() -> None:
            if follower in self._subscribers:
                self._subscribers.remove(follower)

        return unsubscribe

    def _follow(self, done: GraphCommit) -> None:
        changed = self.inference.follow(done)
        self.runner.invalidate(done)
        self._checker.follow(done.touched)
        values = self.graph.values
        names = {Value(self.graph, vid).path: facts for vid, facts in changed.items() if vid in values}
        refusal = self.inference.first_refusal
        commit = Commit(done.version, done.label, done.kind, changed, names, done.touched, done.origin, refusal)
        self.last_change = commit
        for follower in list(self._subscribers):
            try:
                follower(commit)
            except Exception as error:
                self._subscribers.remove(follower)
                warnings.warn(f"{follower!r} failed to follow {done.label!r} and was cut off: {error!r}", stacklevel=2)

    # -- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        feeds: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        limits: Limits | None = None,
        progress: Callable[[int, int, str], Any] | bool | None = None,
        providers: Sequence[str | Provider] | None = None,
        threads: int = 1,
    ) -> dict[str, Array]:
        """Run the model on `{name: array}` and return `{name: array}`.

        Args:
            feeds: an array for each input; any other value may be given too, and then is not computed. None: the
                inputs of the last run, so that after an edit only what it changed is computed again.
            outputs: names of any values; default: the graph's outputs. "if_3/then_branch/x" is a value inside a body:
                what it was when the branch ran, or of a loop a list with what it was in each iteration.
            limits: bytes, iterations, seconds and a stop flag.
            progress: called with (nodes done, nodes in all, label of the node); True draws a bar in the terminal for
                what takes longer than a second.
            providers: who runs it, in order of preference, as `["numba", "numpy"]`. Numba's kernels compile in the
                background while NumPy answers. Parts then run as wholes: values in between are not kept. Default:
                NumPy, node by node, which keeps all values.
            threads: of a run with `providers`.

        Raises:
            FeedError: an array is missing, of a wrong name, dtype or shape.
            ValueError: no provider has that name.
            UnsupportedOperatorError: nothing implements an operator that is needed.
            RunError: a node failed; the message names it, its inputs and the rule it broke.
            LimitError: the run would have exceeded its limits.
        """
        if isinstance(progress, bool):
            with bar(f"run {self.name}") if progress else nullcontext() as drawn:
                return self.run(feeds, outputs, limits=limits, progress=drawn, providers=providers, threads=threads)
        if providers is None:
            return self.runner.run(feeds, outputs, limits=limits, progress=progress)
        runner = self.runner.by(providers, threads)
        given = self.runner.last_inputs() if feeds is None else feeds
        return runner.run(given, outputs, limits=limits, progress=progress, keep=False)

    def pin(self, value: str, array: Any) -> None:
        """Use this array for a value in every run that does not feed it, whatever the graph would make of it.

        Raises:
            FeedError: no value of the main graph has this name, or its dtype is another one.
        """
        self.runner.pin(value, array)

    def unpin(self, value: str | None = None) -> None:
        """Let the graph make a pinned value again; without a name, all. NameLookupError: it is not pinned."""
        self.runner.unpin(value)

    def partition(
        self, providers: Sequence[str | Provider] | None = None, outputs: Sequence[str] | None = None
    ) -> Partition:
        """Who would run which nodes, without running anything: parts, what crosses between them, why nodes were left.

        Args:
            providers: in order of preference, as `["onnxruntime", "numpy"]`; default: those of `run`.
            outputs: what is to be made; default: the graph's outputs.

        Raises:
            ValueError: no provider has that name.
        """
        return self.runner.partition(outputs, providers=None if providers is None else named(providers))

    def profile(
        self, feeds: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None, *, runs: int = 3
    ) -> Profile:
        """Seconds, bytes and floating-point operations of every node: `print(model.profile())`.

        A bar shows in the terminal for what takes longer than a second. Raises as `run`.

        Args:
            feeds: default: the inputs of the last run, else made-up ones.
            runs: the quickest time of each node counts.
        """
        with bar(f"profile {self.name}") as drawn:
            return profile(self.runner, feeds, outputs, runs=runs, progress=drawn)

    def sample_inputs(self, feeds: Mapping[str, Any] | None = None, *, seed: int = 0) -> dict[str, Array]:
        """Arrays for all inputs: those given, the others made up from what is known of them (floats are N(0, 1))."""
        return self.runner.sample_inputs(feeds, seed=seed)

    def subgraph(self, nodes: Iterable[int | str | Node]) -> "Subgraph":
        """A selection of nodes, to be run by itself: `model.subgraph(["conv1", "relu1"]).run()`."""
        return Subgraph(self, [self.node_record(key).id for key in nodes])

    # -- saving -----------------------------------------------------------------------------------------------------

    def save(
        self,
        path: str | PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        external_data: bool | str | None = None,
        shard_bytes: int | None = None,
    ) -> Path:
        """Write the model, by default to where it came from; returns the path.

        Without a net edit the bytes are those that were loaded. The file and its data files are replaced as a whole or
        not at all, and data that did not change is not written again.

        Args:
            path: where to. The suffix decides the format: .textproto, .pbtxt and .txtpb are protobuf's text, .json its
                JSON, .onnxtxt the language of onnx.parser, all others .onnx. A SaveWarning says what a text does not
                carry.
            overwrite: also where somebody else changed the file since it was loaded.
            external_data: True or a file name puts initializers of 1 KiB or more into a data file, False takes all
                external data into the model's file. None: everything stays where it is, unless the file would have
                2 GiB or more; then its initializers go to a data file, with a SaveWarning.
            shard_bytes: the most bytes of one data file; more go into several.

        Raises:
            SaveError: there is no path, or it cannot be written; the old file is untouched.
        """
        target = Path(path) if path is not None else self.path
        if target is None:
            raise SaveError("this model was not loaded from a file: say where to save it, model.save('model.onnx')")
        options = saving.Options(overwrite, external_data, shard_bytes)
        with self.graph.lock:
            original = self._original(saving.file_format(target)) if options.as_it_is else None
            announce = self._journal.announce
            self.source = saving.write(self.proto, target, self.source, original, options, announce)
            self._journal.begin(self.source)
            self.graph.base_dir = self.source.base_dir  # the external data went along
            self._saved_state = self.history.state
        for follower in list(self.on_save):
            follower()
        return target

    def save_report(self) -> list[FieldChange]:
        """The fields that differ from what was loaded or last saved: path in the proto, old, new.

        Raises:
            SaveError: it was made from a proto, or its file was changed by somebody else.
        """
        with self.graph.lock:
            return saving.pending_changes(self.proto, self.source)

    def recover(self, which: Recovery | None = None) -> int:
        """Make the edits again that were never saved, each as an undoable step; returns how many steps were made.

        Args:
            which: one of `recoverable`; default: the newest.

        Raises:
            EditError: there is nothing to recover, this model was edited already, or an edit does not fit.
        """
        if which is None and not self.recoverable:
            raise EditError("no edits of this file are waiting to be recovered")
        chosen = which or self.recoverable[-1]
        steps = recovery.replay(self.graph, chosen)
        self.discard(chosen)
        return steps

    def discard(self, which: Recovery | None = None) -> None:
        """Forget edits that could be recovered: one entry of `recoverable`, by default all."""
        for entry in self.recoverable if which is None else (which,):
            recovery.discard(entry)
            self.recoverable = tuple(other for other in self.recoverable if other != entry)

    def to_bytes(self) -> bytes:
        """The model as it would be saved (external data apart)."""
        with self.graph.lock:
            original = self._original("onnx")
            return original if original is not None else self.proto.SerializeToString()

    def to_text(self, suffix: str = ".onnxtxt") -> str:
        """The model as text for people: in the language of onnx.parser, or as ".textproto" or ".json".

        Raises:
            ValueError: no textual format has this suffix.
        """
        with self.graph.lock:
            return textual.text_of(self.proto, suffix)

    def _original(self, form: str) -> bytes | None:
        """The bytes as loaded, where they are in this format, there is no net edit, and somebody still has them."""
        if self.source is None or self.history.state != 0 or self.source.origin_format != form:
            return None
        return self.source.original()

    # -- showing ----------------------------------------------------------------------------------------------------

    def view(self, **options: Any) -> Any:
        """The widget on this model: the one made last, or a new one; its `selection` follows the clicks."""
        return importlib.import_module("onnxlab.notebook").view(self, **options)

    def _ipython_display_(self) -> None:
        """The widget in a notebook; a static SVG and a summary where no kernel runs."""
        importlib.import_module("onnxlab.notebook").publish(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the model as one HTML page that folds, searches and inspects without kernel or network."""
        written: Path = importlib.import_module("onnxlab.notebook").write_page(self, path)
        return written

    def to_svg(self, path: str | PathLike[str] | None = None, boxes: int = 120) -> str:
        """The main graph as an SVG document, folded until at most `boxes` boxes show; also written to `path`."""
        drawn: str = importlib.import_module("onnxlab.render.svg").render(self, boxes)
        if path is not None:
            Path(path).write_text(drawn, encoding="utf-8")
        return drawn

    def to_png(self, path: str | PathLike[str] | None = None, boxes: int = 120) -> bytes:
        """The same picture as the bytes of a PNG file, by Graphviz; also written to `path`.

        Raises:
            OnnxlabError: Graphviz is not installed.
        """
        drawn: bytes = importlib.import_module("onnxlab.render.png").render(self, boxes)
        if path is not None:
            Path(path).write_bytes(drawn)
        return drawn

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """What `_ipython_display_` shows, by MIME type."""
        return importlib.import_module("onnxlab.notebook").mimebundle(self, **options)

    def __repr__(self) -> str:
        graph = self.graph
        return f"<Model {self.name!r}: {len(graph.main.node_ids)} nodes, version {graph.version}>"


class Values(Mapping[str, Array]):
    """Arrays that the runner holds, by value name; only those that are valid for the model as it is now."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getitem__(self, name: str) -> Array:
        array = self._model.runner.store.get(self._model.graph.resolve_value(name))
        if array is None:
            raise KeyError(f"{name!r} has not been computed since the model was last changed above it; run it first")
        return array  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        values = self._model.graph.values
        return iter([values[vid].name for vid in self._model.runner.store if vid in values])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Subgraph:
    """Some nodes of a model."""

    def __init__(self, model: Model, nodes: Sequence[int]) -> None:
        self.model = model
        self.node_ids = tuple(nodes)

    def run(
        self,
        feeds: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        progress: Callable[[int, int, str], Any] | None = None,
        seed: int = 0,
    ) -> dict[str, Array]:
        """Run just these nodes and return everything that they make.

        What they read from outside comes from `feeds`, else from the values that the model last saw, else is made up
        from what is known of it (dtype and shape; floats are N(0, 1)), reproducibly by `seed`.
        """
        return self.model.runner.run_nodes(self.node_ids, feeds or {}, limits=limits, progress=progress, seed=seed)

    def __repr__(self) -> str:
        return f"<Subgraph of {len(self.node_ids)} nodes>"


def load(source: ModelSource | None = None) -> Model:
    """Open a model: a path, bytes or a ModelProto (which is kept, and mutated by edits).

    A file may also be protobuf's text or JSON of a model, or ONNX text. Without an argument a small model that comes
    with onnxlab is opened. External data is not read until it is needed.

    Raises:
        LoadError: the file is missing, or is no ONNX model; the message says what it is instead.
    """
    if source is None:
        source = (Path(__file__).parent / "data" / "digits.onnx").read_bytes()  # bytes, so that nobody saves over it
    proto, origin = onnx_format.read(source)
    model = Model(proto, origin)
    if model.recoverable:
        warnings.warn(
            f"{model.name}: {model.recoverable[-1]} were never saved; model.recover() makes them again, "
            "model.discard() forgets them",
            JournalWarning,
            stacklevel=2,
        )
    return model


def save(model: "Model | onnx.ModelProto", path: str | PathLike[str]) -> Path:
    """Write a model as `Model.save` does; a plain ModelProto is written atomically too."""
    if isinstance(model, Model):
        return model.save(path)
    saving.write(model, Path(path))
    return Path(path)


def run(
    model: "Model | ModelSource", feeds: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None
) -> dict[str, Array]:
    """Run a model (or a path, bytes, a proto of a model, graph, function or node) once: `{name: array}` in and out.

    See `Model.run`. Of a bare node or graph the newest operator versions are taken.
    """
    return (model if isinstance(model, Model) else load(as_model(model))).run(feeds, outputs)
