"""`Model`: a graph with its inference, values and journal, kept in step by one stream of commits."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

import onnx

from onnxlab.analysis.check import Checker, combined, foreign_strings, unread
from onnxlab.analysis.judge import Judge
from onnxlab.errors import Diagnostic, NameLookupError
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.run.runner import Runner
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats.journals import recovery
from onnxlab.formats.journals.journal import Journal
from onnxlab.formats.source import Source
from onnxlab.garbage_collection import no_collection
from onnxlab.graph import edits
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.history import History
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.edits.declaring import Action
from onnxlab.graph.edits.extraction import extract
from onnxlab.graph.handles.handles import Node, Nodes, Value
from onnxlab.graph.handles.model_lookup import ValueKey, ValueKeys
from onnxlab.graph.handles.model_queries import Querying
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.graph.protos.nesting import nesting_refused
from onnxlab.graph.query.queries import FactOf
from onnxlab.infer import Inference
from onnxlab.infer.live.declarations import Completer, DeclarationChange, rewrite
from onnxlab.infer.live.size_trials import Trial
from onnxlab.infer.questions.explain import Explanation
from onnxlab.infer.questions.what_if import Sized
from onnxlab.infer.questions.wire_types import wire_problem
from onnxlab.model.commit import Commit
from onnxlab.model.files import Files
from onnxlab.model.renamed import is_renamed, renamed
from onnxlab.model.running import Running
from onnxlab.model.showing import Showing
from onnxlab.model.source import ModelSource
from onnxlab.shapes import Fact
from onnxlab.short_help import ShortHelp


class Model(Querying, Running, Showing, metaclass=ShortHelp):
    """A model that can be looked at, edited, run, undone and saved.

    Made by `onnxlab.load`; `Model(proto)` wraps a ModelProto, which it keeps and mutates.

    Attributes:
        graph: the ModelGraph below, for records by id, networkx and snapshots.
        inference: types, shapes and known values, always up to date with the graph.
        trial: what refuses other sizes, where an edit made a dim dynamic; `trial.finish()` tries now what waits.
    """

    __slots__ = (
        "__weakref__",
        "_checker",
        "_subscribers",
        "graph",
        "inference",
        "last_change",
        "runner",
        "trial",
    )

    @nesting_refused()
    def __init__(self, proto: onnx.ModelProto, source: Source | None = None) -> None:
        self._source = source or onnx_format.read(proto)[1]
        read_here = self._source.path is not None or self._source.kept is not None
        with no_collection():
            self.graph = ModelGraph(proto, self._source.base_dir, shared=not read_here, size=self._source.size)
            self.graph.read_only = self._source.read_only
            self.inference = Inference(self.graph)
            self.graph.index.forget_signatures()
        self.runner = Runner(self.graph, self.inference.fact, refuse=Judge(self.graph, self.inference))
        self._checker = Checker(self.graph)
        self.last_change: Commit | None = None
        self.graph.journal = self._journal = Journal(self.graph, self._source)
        self._recoverable = recovery.find(self._source)
        self._saved_state = 0
        self._subscribers: list[Callable[[Commit], Any]] = []
        self._on_save: list[Callable[[], Any]] = []
        self.graph.followers.append(_follower(self))
        self.trial = Trial(self.graph, self.inference)
        self.graph.completer = Completer(self.graph, self.inference)

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def proto(self) -> onnx.ModelProto:
        """The live ModelProto: read it freely, change it through the model."""
        return self.graph.share()

    @property
    def nodes(self) -> Nodes:
        """Nodes of the main graph: by position, name, output, or path into a body ("if_3/then_branch/Conv_2")."""
        return Nodes(self.graph)

    @property
    def nx(self) -> Any:
        """The main graph as a live, read-only networkx.MultiDiGraph of node ids: any of its algorithms runs on it.

        Nodes have `op_type`, `domain` and `name`; edges `name`, `kind` ("data" or "capture"), and by inference `dtype`,
        `shape` and `bytes`: `nx.dag_longest_path(model.nx, weight="bytes")`. `model.node(id)` is a node's handle.
        """
        return self._network(self.graph.main)

    def nx_of(self, scope: str) -> Any:
        """The same of a body or function, by its path: "if_3/then_branch", "domain::name"; "" is the main graph."""
        return self._network(self._scope_record(scope))

    def _network(self, scope: Scope) -> Any:
        self.graph.networks.fact_of = self.inference.fact  # only now, since a graph that has facts keeps all in memory
        return self.graph.nx(scope)

    @property
    def history(self) -> History:
        """The edits that can be undone and redone."""
        return self.graph.history

    @property
    def files(self) -> Files:
        """What else it does with files: reports, weights, edits that were never saved."""
        return Files(self)

    @property
    def version(self) -> int:
        """Counts edits, undo and redo included."""
        return self.graph.version

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Everything that inference found wrong, pinned to nodes.

        Where an edit made a dim of an input dynamic, other sizes are tried in the background; `check()` waits for that.
        """
        return [*self.inference.diagnostics, *self.trial.diagnostics]

    def check(self, *, types: bool = True, providers: Sequence[str | Provider] | None = None) -> list[Diagnostic]:
        """Every problem of the model, pinned to nodes and values, as `onnxlab.check` finds them.

        After an edit only what it touched is checked again.

        Args:
            types: False leaves out what inference finds.
            providers: warn of versions that these do not read, as `["onnxruntime"]`.

        Raises:
            ProviderError: no provider has that name.
        """
        if providers is not None:
            return [*self.check(types=types), *unread(self.graph.header, providers)]
        if types:
            self.trial.finish()
        rules = [*foreign_strings(self._source.strings), *self._checker.problems()]
        return combined(rules, self.diagnostics, self._checker.doubts) if types else rules

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
        """The fact of a value: `.dtype`, `.shape`, `.value`; always up to date.

        Raises:
            NameLookupError: no value has this name.
        """
        return self.inference.fact(self._value_id(value))

    def explain(self, value: int | str | Value, axis: int | None = None) -> Explanation:
        """Explain why the dim of `axis` (None: each dim) of a value is what it is; print the result.

        The way back through the nodes that made it what it is, with the edits that touched them, to what the model
        declares, or to the operator that lost it and why.

        Raises:
            NameLookupError: no value has this name, or the value has no such axis.
        """
        return self.inference.explain(self._value_id(value), axis)

    def with_dims(self, dims: Mapping[str, int] | None = None, /, **named: int) -> Sized:
        """All shapes, and the memory of each value, with numbers for the symbols of the model's inputs.

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
        """The outputs of the main graph, in order."""
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
            EditError: the history has no such state, or had to drop the edits since then.
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
    def _fact_of(self) -> FactOf:
        """The inferred fact of a value id."""
        return self.inference.fact

    def _declaration(self, value: int) -> onnx.ValueInfoProto:
        """A ValueInfoProto of what inference knows of a value id."""
        return self.inference.declaration(value)

    def declarations(self, action: Action) -> list[DeclarationChange]:
        """Bring what the model says about its values up to date, as one step; returns what changed.

        An edit that makes a declaration wrong changes it by itself; this is for what was wrong before. Bodies and
        functions are seen to as well; inputs of the model stay.

        Args:
            action: "refresh" changes the declared types that there are to what is inferred; "store" declares every
                value that a node makes besides; "drop" takes away those of values that are no outputs, but for what
                operators make that onnxlab does not know.

        Raises:
            EditError: there is no such action.
        """
        return rewrite(self.graph, self.inference, action)

    def _type_refusal(self, value: ValueRecord, node: NodeRecord, slot: int) -> str | None:
        """The reason why the inferred types forbid a node to read a value in a slot, None where they do not."""
        return wire_problem(self.graph, self.inference.fact, value, node, slot)

    def extract(self, outputs: ValueKeys, inputs: ValueKeys = ()) -> "Model":
        """A new model that computes `outputs` from `inputs` and from what graph inputs are needed besides.

        What bodies capture, initializers, functions, declarations, opsets and metadata follow.

        Raises:
            EditError: the values are of different graphs, or one has no producer.
        """
        graph = self.graph
        proto = extract(graph, self._value_records(outputs), self._value_records(inputs), self.inference.declaration)
        return Model(proto, Source(base_dir=graph.base_dir, strings=self._source.strings))

    def insert(
        self,
        other: "Model | ModelSource",
        connect: Mapping[str, ValueKey] | None = None,
        prefix: str = "",
        add_outputs: bool | Iterable[str] = True,
        feed: Mapping[ValueKey, str] | None = None,
    ) -> dict[str, str]:
        """Put another model into this one, as one step; returns what its values are called here.

        `model.insert(head, connect={"features": "pooled"})` puts it behind a value,
        `model.insert(resize, feed={"image": "resized"})` in front of an input, and both together onto a wire.

        Args:
            connect: what each input of the other model reads; those left out become inputs of this one.
            prefix: put before all its names; names that are taken get a number behind them anyway.
            add_outputs: which of its outputs become outputs of this one; True: all that feed nothing here.
            feed: by value of this model, the output of the other one that its readers read instead; a graph input
                goes away with its last reader.

        Raises:
            EditError: it has no such input or output, a wire would join two element types or close a cycle, or its
                operators mean something else at this model's opset version (`other.convert_opset` mends that).
        """
        graph = other.graph if isinstance(other, Model) else Model(*onnx_format.read(other)).graph
        wires = {name: self._value_record(key) for name, key in (connect or {}).items()}
        fed = [(self._value_record(key), name) for key, name in (feed or {}).items()]
        done = edits.insert_model(self.graph, graph, wires, prefix, add_outputs, fed, self._declaration)
        return dict(done.names)

    def subscribe(self, follower: Callable[[Commit], Any]) -> Callable[[], None]:
        """Call `follower` with every Commit from now on; returns a function that ends it."""
        self._subscribers.append(follower)

        def unsubscribe() -> None:
            if follower in self._subscribers:
                self._subscribers.remove(follower)

        return unsubscribe

    def _follow(self, done: GraphCommit) -> None:
        changed = self.inference.follow(done)
        self.trial.follow(changed)
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

    if not TYPE_CHECKING:  # else every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            return renamed(self, name) if is_renamed(name) else super().__getattr__(name)

    def __repr__(self) -> str:
        graph = self.graph
        return f"<Model {self.name!r}: {len(graph.main.node_ids)} nodes, version {graph.version}>"


def _follower(model: Model) -> Callable[[GraphCommit], None]:
    """A follower that passes commits on as long as the model is referenced, then those of its parts that are.

    A graph that had its model would keep it, and everything in it, until Python next collects garbage.
    """
    whole = ref(model)
    parts: list[Callable[[], Callable[[GraphCommit], Any] | None]]
    parts = [WeakMethod(model.inference.follow), WeakMethod(model.runner.invalidate)]

    def follow(done: GraphCommit) -> None:
        if (found := whole()) is not None:
            found._follow(done)
            return
        for part in parts:
            if (method := part()) is not None:
                method(done)

    return follow
