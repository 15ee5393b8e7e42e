"""`Model`: a graph with its inference, values and journal, kept in step by one stream of commits."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

import onnx

from onnxlab.analysis.check import Checker
from onnxlab.argument_types import expect
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats.journals import recovery
from onnxlab.formats.journals.journal import Journal
from onnxlab.formats.source import ModelSource, Source
from onnxlab.garbage_collection import no_collection
from onnxlab.graph import edits
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.history import History
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.edits.declaring import Action
from onnxlab.graph.edits.extraction import extract
from onnxlab.graph.handles.handles import Value
from onnxlab.graph.handles.model_lookup import ValueKey, ValueKeys
from onnxlab.graph.handles.model_queries import Querying
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.name_bytes import text
from onnxlab.graph.protos.nesting import nesting_refused
from onnxlab.graph.query.node_search import FactOf
from onnxlab.infer import Inference
from onnxlab.infer.live.declarations import DeclarationChange, DeclarationUpdater, rewrite
from onnxlab.infer.live.size_trials import Trial
from onnxlab.infer.questions.wire_types import wire_problem
from onnxlab.model.commit import Commit
from onnxlab.model.comparing import Comparing
from onnxlab.model.fact_queries import FactQueries
from onnxlab.model.files import Files
from onnxlab.model.measuring import Measuring
from onnxlab.model.renamed import is_renamed, renamed
from onnxlab.model.rewriting import ModelRewriting
from onnxlab.model.running import Followers, Running
from onnxlab.model.showing import Showing
from onnxlab.short_help import ShortHelp

if TYPE_CHECKING:
    from onnxlab.analysis.watches.watches import Watches
    from onnxlab.execution.run.runner import Runner


class Model(FactQueries, Querying, Running, ModelRewriting, Comparing, Measuring, Showing, metaclass=ShortHelp):
    """A model that can be looked at, edited, run, undone and saved.

    `onnxlab.load` makes a Model; `Model(proto)` wraps a ModelProto, which it keeps and mutates. A notebook cell that
    ends in a Model shows it. `help(Model.run)` shows a single member; in examples `model` is `onnxlab.load()`.

    Look: nodes, node, value, inputs, outputs, proto, name, version; find, find_values, structure (what depends on
        what), nx, nx_of (for networkx), node_at, value_at
    Know: fact, explain, with_dims, tensor, diagnostics, check
    Edit: edit, undo, redo, history, last_change, subscribe, changes_since, earlier,
        patch
        nodes: add_node, insert_node, remove, duplicate, connect, can_connect
        values: add_input, remove_input, add_output, remove_output, add_initializer, remove_initializer
        blocks: make_function, inline, for_each_copy, extract, insert
        rules: simplify, optimize, quantize, rewrite, suggest, prove, rules, why_not, near_misses, pattern, find_pattern
        the whole: convert_opset, opsets, opsets_of, declarations, sort_nodes, drop_dead_nodes,
            drop_unused_functions, drop_unused_initializers, metadata, graph_metadata, doc_string,
            graph_doc_string, set_field, bind (training)
    Run: run, values, pin, unpin, subgraph, sample_inputs, profile, cost, memory, trees, partition, hunt, watch, watches
    Show and save: view, to_svg, to_png, to_html, to_text, to_bytes, save, path, dirty, files (reports, weights,
        recovery)
    Inner layers: graph (records by id, changes, snapshots), inference (facts by id), runner (stored values), trial

    Edits are one undo step each, or parts of the open `edit`; EditError says why one is refused, and then nothing
    changed. Nodes are given as a position, name, output, path or handle; values as a name, path or handle.

    Examples:
        >>> model = onnxlab.load()
        >>> model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
        >>> model.undo()
        <Commit 2: undo 'make /stem/relu/Relu a Sigmoid', 0 facts changed>
        >>> result = model.run({"image": np.zeros((1, 1, 8, 8), np.float32)})
        >>> result["probabilities"].shape
        (1, 10)
    """

    __slots__ = (
        "__weakref__",
        "_checker",
        "_followers",
        "_runner",
        "_subscribers",
        "_watches",
        "graph",
        "inference",
        "last_change",
        "trial",
    )

    @nesting_refused()
    def __init__(self, proto: onnx.ModelProto, source: Source | None = None) -> None:
        self._source = source or onnx_format.read(proto)[1]
        read_here = self._source.path is not None or self._source.data is not None
        with no_collection():
            self.graph = ModelGraph(proto, self._source.base_dir, shared=not read_here, size=self._source.size)
            self.graph.read_only, self.graph.uninferred = self._source.read_only, self._source.uninferred
            self.inference = Inference(self.graph)
            self.graph.index.forget_signatures()
        self._runner: Runner | None = None
        self._watches: Watches | None = None
        self._checker = Checker(self.graph)
        self.last_change: Commit | None = None
        self.graph.journal = self._journal = Journal(self.graph, self._source)
        self._recoverable = recovery.find(self._source)
        self._saved_state = 0
        self._subscribers: list[Callable[[Commit], Any]] = []
        self._on_save: list[Callable[[], Any]] = []
        self._followers: Followers = [WeakMethod(self.inference.follow)]
        self.graph.followers.append(_follower(self))
        self.trial = Trial(self.graph, self.inference)
        self.graph.completer = DeclarationUpdater(self.graph, self.inference)

    @property
    def history(self) -> History:
        """The edits that can be undone and redone; iterate for their labels, `to_python()` writes them as a script.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> model.history
            History(['rename /stem/conv/Conv to first'], redo=[])
        """
        return self.graph.history

    @property
    def files(self) -> Files:
        """Reports before saving, weights, and edits that were never saved; see `help(model.files)`.

        Examples:
            >>> print(model.files.loss_report("json"))
            JSON holds all of this model
        """
        return Files(self)

    @property
    def version(self) -> int:
        """The number of edits, undo and redo included.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> model.version
            1
        """
        return self.graph.version

    # -- editing ----------------------------------------------------------------------------------------------------

    def edit(self, label: str) -> Transaction:
        """Open an edit: several changes become one step, all of them, or none and an error.

        Args:
            label: of the step in the history.

        Returns:
            Transaction: a context manager; an exception inside takes every change back.

        Raises:
            EditError: at the end, where the model would not be valid.

        Examples:
            >>> with model.edit("swap activation"):
            ...     model.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
            ...     model.nodes["/stem/relu/Relu"].attributes["alpha"] = 0.1
            >>> model.history.labels
            ['swap activation']
        """
        return self.graph.edit(label)

    def undo(self, to: int | str | None = None) -> Commit | None:
        """Take back the last edit, or go to another state of the history.

        Args:
            to: go back (or on) to a state: a number of edits since the model was loaded, negative from now, or the
                label of the edit that led to it; then the last of several commits is returned.

        Returns:
            Commit | None: what changed; None where there is nothing to undo.

        Raises:
            EditError: the history has no such state, or had to drop the edits since then.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> model.undo()
            <Commit 2: undo 'rename /stem/conv/Conv to first', 0 facts changed>
        """
        if to is not None:
            before = self.version
            self.graph.travel(self.history.position_of(to))
            return self.last_change if self.version != before else None
        return self.last_change if self.graph.undo() else None

    def redo(self) -> Commit | None:
        """Make the edit again that was undone last.

        Returns:
            Commit | None: what changed; None where there is nothing to redo.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> undone = model.undo()
            >>> model.redo().label
            'rename /stem/conv/Conv to first'
        """
        return self.last_change if self.graph.redo() else None

    @property
    def _fact_of(self) -> FactOf:
        """The inferred fact of a value id."""
        return self.inference.fact

    def _declaration(self, value: int) -> onnx.ValueInfoProto:
        """A ValueInfoProto of what inference knows of a value id."""
        return self.inference.declaration(value)

    def declarations(self, action: Action) -> list[DeclarationChange]:
        """Bring what the model says about its values up to date, as one step.

        An edit that makes a declaration wrong corrects it by itself; this method is for declarations that were wrong or
        missing before. Bodies and functions are included; inputs of the model stay.

        Args:
            action: "refresh" sets the declared types to those inferred; "store" also declares every other value that a
                node makes; "drop" removes the declarations of values that are no outputs, except of what operators make
                that onnxlab does not know.

        Returns:
            list[DeclarationChange]: what changed.

        Raises:
            EditError: there is no such action.

        Examples:
            >>> print(len(model.declarations("store")), "values declared")
            23 values declared
        """
        return rewrite(self.graph, self.inference, action)

    def _type_refusal(self, value: ValueRecord, node: NodeRecord, slot: int) -> str | None:
        """The reason why the inferred types forbid a node to read a value in a slot, None where they do not."""
        return wire_problem(self.graph, self.inference.fact, value, node, slot)

    def extract(self, outputs: ValueKeys, inputs: ValueKeys = ()) -> "Model":
        """Make a new model of a part of this one.

        Captured values, initializers, functions, declarations, opsets and metadata come along.

        Args:
            outputs: values that the new model computes, as names or handles.
            inputs: values that become its inputs; further graph inputs that the outputs need become inputs too.

        Returns:
            Model: the new model; this one stays as it is.

        Raises:
            EditError: the values are of different graphs, one has no producer, or an input lies behind the outputs.

        Examples:
            >>> stem = model.extract("stem/relu_out")
            >>> len(stem.nodes), stem.inputs
            (3, (<Value 'image'>,))
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
        """Put another model into this one, as one step.

        With `connect` the other model reads values of this one, with `feed` readers of this one read its outputs; both
        together put it onto a wire.

        Args:
            other: a Model, or what `onnxlab.load` takes.
            connect: what each input of the other model reads; those left out become inputs of this one.
            prefix: text before all names of the other model; names that are taken get a number in any case.
            add_outputs: which outputs of the other model become outputs of this one; True: all that feed nothing here.
            feed: by value of this model, the output of the other one that its readers read instead; a graph input
                without readers is removed.

        Returns:
            dict[str, str]: what the values of the other model are called here.

        Raises:
            EditError: the other model has no such input or output, a wire would join two element types or close a
                cycle, or its operators mean something else at this model's opset version (`other.convert_opset` mends
                that).

        Examples:
            >>> head = onnxlab.load().extract("probabilities", "logits")
            >>> model.insert(head, connect={"logits": "logits"}, prefix="second/")["probabilities"]
            'second/probabilities'
        """
        graph = other.graph if isinstance(other, Model) else Model(*onnx_format.read(other)).graph
        for name, wires in (("connect", connect), ("feed", feed)):
            expect(wires, (Mapping, type(None)), name, "a mapping of names")
        text(prefix)
        joined = {name: self._value_record(key) for name, key in (connect or {}).items()}
        fed = [(self._value_record(key), name) for key, name in (feed or {}).items()]
        done = edits.insert_model(self.graph, graph, joined, prefix, add_outputs, fed, self._declaration)
        return dict(done.names)

    def subscribe(self, follower: Callable[[Commit], Any]) -> Callable[[], None]:
        """Call a function with every Commit from now on.

        Args:
            follower: called with the Commit; one that raises is cut off, with a warning.

        Returns:
            Callable[[], None]: ends the subscription.

        Examples:
            >>> end = model.subscribe(lambda commit: print(commit.label))
            >>> model.nodes[0].name = "first"
            rename /stem/conv/Conv to first
            >>> end()
        """
        expect(follower, Callable, "follower", "a function of a commit")  # type: ignore[arg-type]
        self._subscribers.append(follower)

        def unsubscribe() -> None:
            if follower in self._subscribers:
                self._subscribers.remove(follower)

        return unsubscribe

    def _follow(self, done: GraphCommit) -> None:
        changed, main = self.inference.follow(done), self.graph.index.main
        if self.trial.sizes or not changed.keys().isdisjoint(main.inputs):
            self.trial.follow(changed)
        runner = self._runner
        if runner is not None and (runner.store.in_use or done.touched.functions):
            runner.invalidate(done)
        if self._checker.dirty is not None:
            self._checker.follow(done.touched)
        values = self.graph.values
        known = [(values[vid], facts) for vid, facts in changed.items() if vid in values]
        names = {
            value.name if value.scope == main.id else Value(self.graph, value.id).path: facts for value, facts in known
        }
        refusal = self.inference.first_error
        commit = Commit(done.version, done.label, done.kind, changed, names, done.touched, done.origin, refusal)
        _set_last_change(self, commit)
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


_set_last_change = vars(Model)["last_change"].__set__
"""Sets `last_change` without the check of its name that `Spelled` makes."""


def _follower(model: Model) -> Callable[[GraphCommit], None]:
    """A follower that passes commits on as long as the model is referenced, then those of its parts that are.

    A graph that referred to its model would keep the model, and everything in it, alive until the next garbage
    collection.
    """
    whole, parts = ref(model), model._followers

    def follow(done: GraphCommit) -> None:
        if (alive := whole()) is not None:
            alive._follow(done)
            return
        for part in parts:
            if (method := part()) is not None:
                method(done)

    return follow
