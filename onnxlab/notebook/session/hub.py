"""The shared part of a model's views: its scene, its inspector, and one follower of its commits.

A hub lives as long as a view of its model is open. The message for a commit is made once, for all views.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from onnxlab.analysis.check import combined
from onnxlab.analysis.flops import flops_by_node
from onnxlab.errors import Diagnostic
from onnxlab.graph.query.equal_groups import equal_groups
from onnxlab.notebook.panels.inspector import Inspector
from onnxlab.notebook.panels.scene import Scene
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, diagnostics, number

if TYPE_CHECKING:
    from onnxlab.model import Commit, Model

Listener = Callable[["Commit", JSON], None]

_hubs: "WeakValueDictionary[int, Hub]" = WeakValueDictionary()


def _nothing() -> None:
    """The end of a hub without views: nothing to do."""


MOST_CHECKED = 20_000
"""Nodes of a model whose rules are checked again after each edit: of larger ones that takes longer than a frame."""

ROWS = 1000
"""Rows of a format's table that are sent to a page."""


class Hub:
    """The shared part of a model's views; `hub_of` returns the hub of a model.

    Attributes:
        scene: the model as the page draws it.
        inspector: answers to questions about nodes and values.
    """

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.scene = Scene(model.graph, model.inference)
        self.inspector = Inspector(model.graph, model.inference.fact, self.scene.hierarchy, model.files.notes)
        self._listeners: list[Listener] = []
        self._state_listeners: list[Callable[[], None]] = []
        self._touched: dict[int, tuple[int, object]] = {}
        self._started = model.version
        self._checked: int | None = None
        self._unsubscribe = model.subscribe(self._follow)
        model.files.on_save.append(self._saved)
        self._trial_listeners: list[Callable[[JSON], None]] = []
        model.trial.on_found.append(self._tried)

    def follow(
        self, listener: Listener, on_state: Callable[[], None], on_diagnostics: Callable[[JSON], None]
    ) -> Callable[[], None]:
        """Call `listener` with each commit and what it changes for the page, `on_state` after a save.

        `on_diagnostics` gets all problems where the background finds others than the last commit had.

        Returns the function that ends the subscription; with the last one the hub stops following the model.
        """
        with self.model.graph.lock:
            self._listeners.append(listener)
            self._state_listeners.append(on_state)
            self._trial_listeners.append(on_diagnostics)

        def leave() -> None:
            with self.model.graph.lock:
                if listener not in self._listeners:
                    return
                self._listeners.remove(listener)
                self._state_listeners.remove(on_state)
                self._trial_listeners.remove(on_diagnostics)
                if not self._listeners:
                    self._unsubscribe()
                    self._unsubscribe = _nothing  # the former function refers to this hub
                    self.model.files.on_save.remove(self._saved)
                    self.model.trial.on_found.remove(self._tried)
                    _hubs.pop(id(self.model), None)

        return leave

    def _follow(self, commit: "Commit") -> None:
        for ident in (*commit.touched.nodes, *commit.touched.values, *commit.touched.declared):
            self._touched[ident] = (commit.version, commit.origin)
        delta = {**self.scene.delta(commit.touched, commit.fact_ids), **self.state(commit.touched.opsets)}
        delta["python"] = self.model.history.last_statement() if commit.kind == "edit" else f"model.{commit.kind}()"
        delta["refusal"] = diagnostics([commit.first_error])[0] if commit.first_error else None
        delta["diagnostics"] = diagnostics(self.problems())
        for listener in list(self._listeners):
            listener(commit, delta)

    def problems(self) -> list[Diagnostic]:
        """The problems that inference finds, and those of ONNX's rules once a page asked for them."""
        model = self.model
        if self._checked is None or (self._checked != model.version and len(model.graph.nodes) > MOST_CHECKED):
            return model.diagnostics
        return combined(model.check(types=False), model.diagnostics, lambda _: ())

    def check(self) -> JSON:
        """Check ONNX's rules from now on, and send every view what they find."""
        with self.model.graph.lock:
            self._checked = self.model.version
            self._tried()
        return {}

    def steps(self) -> JSON:
        """The whole history, oldest first: the label and the Python statement of each edit.

        The first "dropped" edits can no longer be undone.
        """
        history = self.model.history
        pairs = zip(history.all_labels, history.statements(), strict=True)
        steps = [{"label": label, "python": python} for label, python in pairs]
        return {"steps": steps, "position": history.position, "dropped": len(history.dropped)}

    def format(self) -> JSON:
        """The statements of the format of the file on the whole model."""
        about = self.model.files.about()
        rows = [list(row) for row in about.rows[:ROWS]]
        return {
            "title": about.title, "uninferred": about.uninferred, "pairs": dict(about.pairs),
            "columns": list(about.columns), "rows": rows, "more": len(about.rows) - len(rows),
        }  # fmt: skip

    def costs(self) -> JSON:
        """Floating-point operations by node, two columns."""
        flops = flops_by_node(self.model.graph, self.model.inference.fact)
        return {"nodes": list(flops), "flops": [number(count) for count in flops.values()]}

    def blocks(self) -> JSON:
        """Groups that are equal to others, class by class; takes some 10 µs for each node."""
        return {"blocks": equal_groups(self.model.graph, self.scene.hierarchy)}

    def state(self, opsets: bool = True) -> JSON:
        """The model's state: its place in the history, edits to save or recover, its file, its opsets."""
        history = self.model.history
        labels, redo = history.labels, history.redo_labels
        position = {"length": len(history), "position": history.position, "recoverable": self._recoverable()}
        payload = {
            "history": {"undo": labels[-1] if labels else None, "redo": redo[-1] if redo else None, **position},
            "dirty": self.model.dirty,
            "path": str(self.model.path) if self.model.path else None,
        }
        return {**payload, "opsets": dict(self.model.opsets)} if opsets else payload

    def _recoverable(self) -> str | None:
        """The edits that `recover` would make again, where loading the model warned of them."""
        if self.model.history.state != 0:
            return None  # edits can be recovered only into the model as it was loaded
        waiting = self.model.files.recoverable
        return str(waiting[-1]) if waiting and waiting[-1].urgent else None

    def recover(self) -> JSON:
        """Make the edits of the last recoverable journal again."""
        with self.model.graph.lock:
            if self._recoverable() is None:
                raise ProtocolError("nothing", "There are no edits to recover into this model as it is.")
            steps = self.model.files.recover()
            self._saved()
        return {"steps": steps}

    def discard(self) -> JSON:
        """Discard the edits that `recover` would make again."""
        with self.model.graph.lock:
            if self._recoverable() is not None:
                self.model.files.discard(self.model.files.recoverable[-1])
            self._saved()
        return {}

    def _tried(self) -> None:
        """Send every view all problems: the trial of other sizes found more, or the rules were checked."""
        with self.model.graph.lock:
            payload: JSON = {"diagnostics": diagnostics(self.problems())}
            for listener in list(self._trial_listeners):
                listener(payload)

    def _saved(self) -> None:
        """Notify every view of a save, made by any view or by Python."""
        for listener in list(self._state_listeners):
            listener()

    def refuse_conflict(self, version: int | None, targets: Iterable[int] | None, origin: object) -> None:
        """Refuse an edit made on an older state whose targets were changed elsewhere since.

        Args:
            version: the version that the view showed; None to refuse nothing.
            targets: ids of the nodes and values that the edit is about; None for the whole model.

        Raises:
            ProtocolError: with the code "conflict".
        """
        now = self.model.version
        if version is None or version >= now:
            return
        if targets is None:
            raise ProtocolError("conflict", "The model was changed meanwhile; look at it and try again.")
        for ident in targets:
            changed, by = self._touched.get(ident, (self._started, origin))
            if changed > version and by != origin:
                message = "This was changed meanwhile by Python or another view; look at it and try again."
                raise ProtocolError("conflict", message)


def hub_of(model: "Model") -> Hub:
    """The hub of a model, made when there is none."""
    hub = _hubs.get(id(model))
    if hub is None or hub.model is not model:
        hub = _hubs[id(model)] = Hub(model)
    return hub


def open_models() -> "list[Model]":
    """The models that views show now."""
    return [hub.model for hub in list(_hubs.values())]
