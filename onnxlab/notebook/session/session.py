"""The kernel's side of one view: answers its requests, sends it numbered events, lets go when it is closed.

A session does not depend on a widget: `send` takes its messages and buffers. Messages may arrive on any thread, while a
cell runs; the model's lock is held only while something is read or edited, never during a run.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from onnxlab import threads
from onnxlab.analysis.statistics import Statistics
from onnxlab.errors import EditError, LimitError, NameLookupError, OnnxlabError, RunError, RunStopped, SaveError
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.limits import Limits
from onnxlab.notebook.panels import detections, palette, profile_table, run_inputs
from onnxlab.notebook.panels.json_values import statistics_on_wire
from onnxlab.notebook.panels.overlay import Overlay, measured
from onnxlab.notebook.panels.tensor_views import Tensors
from onnxlab.notebook.protocol import messages
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, Request, graph_version, wire_version
from onnxlab.notebook.protocol.outbox import Outbox, Send
from onnxlab.notebook.protocol.uploads import Uploads
from onnxlab.notebook.session import file_offers, saver
from onnxlab.notebook.session.editor import Editor
from onnxlab.notebook.session.hub import hub_of
from onnxlab.notebook.session.model_questions import ABOUT_MODEL
from onnxlab.notebook.session.view_runs import DEADLINE, Made, Runs

if TYPE_CHECKING:
    from onnxlab.model import Commit, Model

EDITS = (
    "edit", "rewrite", "undo", "redo", "go_to", "upload", "file", "apply_weights", "copies", "extract", "about",
    "elements",
)  # fmt: skip
"""Methods that the view's Editor answers."""

_APART = (
    "overlay", "profile", "rewrites", "gains", "rewrite", "memory", "watches", "check",
    "pair", "paired_tensor", "paired_nodes", "compare_values", "counterparts", "compare",
)  # fmt: skip
"""Methods that may run the model, or look at all of it: they run on threads of their own."""

_LOOKS = ("tensor", "boxes", "pin")
"""Methods that read a value, which may first have to be computed since the last run did not keep it."""

PROBE = bytes(range(0xA0, 0xA8))

FRESH = 5.0
"""Seconds for which a snapshot made in advance is kept for the page."""


def _nothing() -> None:
    """The end of a closed view: nothing to do."""


def _shown_nowhere(model: "Model", title: str) -> None:
    """The opening of a file in a closed view: nothing to do."""


class Session:
    """One view of a model.

    Args:
        model: the model to show.
        send: a function that takes a message and its buffers; called from any thread, one call at a time.
        on_open: a function called with the model of a file that the page opens, and its title; default: `show`.
        answers: functions that answer questions about more than the model, by method.

    Attributes:
        model: the model that is shown.
        former: the model that was shown before, None where no other was.
        id: the id of the view, as the origin of its edits.
        summaries: statistics of the values of the runs since the last edit, by value id.
        deadline: seconds that a run may take, unless the page sets another limit; None for no limit.
    """

    def __init__(
        self, model: "Model", send: Send, on_open: Callable[["Model", str], None] | None = None,
        answers: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:  # fmt: skip
        self.id = uuid.uuid4().hex
        self.deadline: float | None = DEADLINE
        self.former: Model | None = None
        self._title, self._former_title, self._shown = model.name, "", 0
        self._outbox = Outbox(send, self._state_event)
        self._uploads = Uploads()
        self._on_open = on_open or self.show
        self._more = answers or {}
        self._attach(model)

    def _attach(self, model: "Model") -> None:
        """Follow a model, and answer questions about it."""
        self.model = model
        self.summaries: dict[int, Statistics] = {}
        self.overlay: Overlay | None = None
        self._hub = hub_of(model)
        self.editor = Editor(model, self._hub, self.id, self._uploads)
        self._ahead: tuple[int, float, tuple[JSON, bytes]] | None = None
        self.tensors = Tensors(model)
        self._runs = Runs(model)
        self._leave = self._hub.follow(self._commit, self._state_changed, self._diagnosed)
        self._answers: Mapping[str, Callable[..., tuple[JSON, list[bytes]] | JSON | None]] = {
            "hello": self._hello,
            "probe": self._probe,
            "snapshot": self._snapshot,
            "inspect": self._inspect,
            "doc": self._doc,
            "value": self._value,
            "explain": self._explain,
            **{name: getattr(self.editor, name) for name in EDITS},
            "history": self._hub.steps,
            "overlay": self._color,
            "format": self._hub.format,
            "check": self._hub.check,
            "operators": self._operators,
            "operator_doc": self._operator_doc,
            "targets": self._targets,
            "unsaved": self._unsaved,
            "save": self._save,
            "recover": self._hub.recover,
            "discard": self._hub.discard,
            "stop": self._stop,
            "tensor": self._tensor,
            "boxes": self._boxes,
            "pin": self._pin,
            **{name: partial(self._about_model, answer) for name, answer in ABOUT_MODEL.items()},
            "costs": self._costs,
            "blocks": self._blocks,
            "profile": self._profile,
            "open": self._open,
            **self._more,
        }

    def show(self, model: "Model", title: str = "") -> None:
        """Show another model in place of this one, which stays as it is; the page begins anew."""
        self._runs.stop_all()
        self._leave()
        self.former, self._former_title, self._title = self.model, self._title, title or model.name
        self._shown += 1
        self._attach(model)
        self._outbox.event("opened", {"title": self._title, "former": self._former_title})

    def _open(self, file: str | None, nodes: list[int] | None) -> JSON:
        if nodes:
            self._on_open(self.editor.part(nodes), f"part of {self._title}")
            return {"title": self._title, "former": self._former_title}
        upload = None if file is None else self._uploads.get(file)
        model = self.former if upload is None else file_offers.opened(upload)
        if model is None:
            raise ProtocolError("nothing", "This view showed no other model before.")
        self._on_open(model, self._former_title if upload is None else upload.name)
        return {"title": self._title, "former": self._former_title}

    @property
    def hierarchy(self) -> Hierarchy:
        """The groups that the page shows."""
        return self._hub.scene.hierarchy

    def receive(self, content: object) -> None:
        """Handle one message from the page; exactly one reply follows, for a run when the run ends."""
        try:
            request = messages.parse(content)
        except ProtocolError as refusal:
            self._outbox.reply(messages.error(refusal.request, refusal.code, str(refusal), refusal.hint))
            return
        try:
            if request.method == "run":
                self._run(request)
                return
            unkept = request.method in _LOOKS and self.tensors.is_left_unkept(request.params["value"])
            if unkept or request.method in _APART:
                threads.spawn(lambda: self._answer(request), f"onnxlab {request.method}")
                return
            self._answer(request)
        except Exception as error:
            self._outbox.reply(self._refusal(request.id, error))

    def _answer(self, request: Request) -> None:
        try:
            if request.method in _LOOKS:
                self.tensors.compute(request.params["value"], self.deadline)
            if request.method == "watches":
                self.model.watches.compute()
            answer = self._answers[request.method](**request.params)
            payload, buffers = answer if isinstance(answer, tuple) else (answer or {}, [])
            self._outbox.reply(messages.result(request.id, payload), buffers)
        except Exception as error:
            self._outbox.reply(self._refusal(request.id, error))

    def close(self) -> None:
        """End the view: stop runs, send the page "closed", stop following the model. Closing twice does no harm."""
        self._leave()
        self._runs.stop_all()
        self._outbox.event("closed", {})
        self._outbox.close()
        # references back to the session would keep it until Python next collects cycles, in a notebook after long
        self._answers, self._more, self._leave, self._on_open, self.former = {}, {}, _nothing, _shown_nowhere, None

    # -- questions ----------------------------------------------------------------------------------------

    def _hello(self) -> tuple[JSON, list[bytes]]:
        can = {"edit": True, "run": True, "save": self.model.path is not None, "compare": "compare" in self._more}
        answer: JSON = {"protocol": messages.PROTOCOL, "session": self.id, "can": can, "probe": list(PROBE)}
        return {**answer, "version": wire_version(self.model.version)}, [PROBE]

    def _probe(self, ok: bool) -> JSON:
        self._outbox.binary = ok
        return {}

    def prepare(self) -> None:
        """Make the answer to the page's first question in advance, before the page asks."""
        with self.model.graph.lock:
            self._ahead = self.model.version, time.monotonic() + FRESH, self._hub.scene.snapshot()

    def _scene(self) -> tuple[JSON, bytes]:
        ahead, self._ahead = self._ahead, None
        if ahead and ahead[0] == self.model.version and time.monotonic() < ahead[1]:
            return ahead[2]
        return self._hub.scene.snapshot()

    def _snapshot(self) -> tuple[JSON, list[bytes]]:
        model = self.model
        with model.graph.lock:
            content, buffer = self._scene()
            content["diagnostics"] = messages.diagnostics(self._hub.problems())
            content["version"] = wire_version(model.version)
            content["seq"] = self._outbox.seq
            content["overlay"] = self.overlay.on_wire() if self.overlay else None
            content["pinned"], content["shown"] = self.tensors.pinned(), self._shown
            content["former"] = self._former_title
        content["title"] = model.name
        return {**content, **self._hub.state()}, [buffer]

    def _inspect(self, node: int) -> JSON:
        with self.model.graph.lock:
            return self._hub.inspector.node(node, self._hub.problems())

    def _doc(self, node: int) -> JSON:
        with self.model.graph.lock:
            return self._hub.inspector.documentation(node)

    def _value(self, value: int) -> JSON:
        with self.model.graph.lock:
            return self._hub.inspector.value(value, self.summaries.get(value))

    def _explain(self, value: int, axis: int | None) -> JSON:
        return messages.explanation(self.model.explain(self.model.value(value), axis))

    # -- pictures and questions about edits ---------------------------------------------------------------

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Color the boxes by numbers, or, for None, by their categories again."""
        self.overlay = overlay
        empty: JSON = {"title": "", "unit": "", "nodes": [], "numbers": []}
        self._outbox.event("overlay", overlay.on_wire() if overlay else empty)

    def _color(self, by: str | None) -> JSON:
        self.show_overlay(measured(self.model, by, self.summaries, Limits(deadline=self.deadline)) if by else None)
        return {}

    def _profile(self) -> JSON:
        table, overlay = profile_table.measured(self.model, Limits(deadline=self.deadline))
        self.show_overlay(overlay)
        return table

    def _about_model(self, answer: Callable[..., JSON], **params: Any) -> JSON:
        with self.model.graph.lock:
            return answer(self.model, **params)

    def _operators(self, value: int | None) -> JSON:
        with self.model.graph.lock:
            return palette.operators(self.model.graph, self.model.fact(value) if value else None)

    def _operator_doc(self, op: str) -> JSON:
        with self.model.graph.lock:
            return palette.documentation_of(self.model.graph, op)

    def _targets(self, value: int, nodes: list[int]) -> JSON:
        with self.model.graph.lock:
            return palette.targets(self.model, value, nodes)

    def _unsaved(self) -> JSON:
        with self.model.graph.lock:
            return saver.unsaved(self.model)

    def _save(self, copy: bool | None, version: int | None) -> JSON:
        with self.model.graph.lock:
            # the saved state must be the one that the view showed
            self._hub.refuse_conflict(graph_version(version), None, self.id)
            return saver.save(self.model, bool(copy))

    # -- runs ---------------------------------------------------------------------------------------------

    def _run(self, request: Request) -> None:
        model, version = self.model, self.model.version

        def finish(started: float, results: Made | None, error: Exception | None) -> None:
            if error is not None or results is None or self.model is not model:
                self._outbox.reply(self._refusal(request.id, error or RunStopped("the run was stopped")))
                return
            with model.graph.lock:
                if model.version == version:  # results of a former state are shown once, and not kept
                    self.tensors.keep(results.arrays)
                    self.summaries.update(results.summaries)
                values = model.graph.values
                rows = [statistics_on_wire(values[vid], row) for vid, row in results.summaries.items() if vid in values]
            payload = {"run": request.id, "seconds": time.perf_counter() - started, "values": rows}
            self._outbox.reply(messages.result(request.id, payload))

        def progress(done: int, total: int, node: str) -> None:
            self._outbox.event("progress", {"run": request.id, "done": done, "total": total, "node": node})

        nodes, seed = request.params["nodes"], request.params["seed"] or 0
        inputs, sizes = request.params["inputs"], request.params["sizes"]
        seconds = request.params["deadline"]
        deadline = self.deadline if seconds is None else seconds or None

        def feeds() -> dict[str, Any]:
            return run_inputs.feeds(self.model, self.editor.uploads, inputs, sizes, seed)

        self._runs.start(request.id, nodes, seed, feeds, progress, finish, deadline)

    def _tensor(self, **params: Any) -> tuple[JSON, list[bytes]]:
        with self.model.graph.lock:
            return self.tensors.tensor(**params)

    def _boxes(self, **params: Any) -> JSON:
        with self.model.graph.lock:
            return detections.boxes(self.model, self.tensors, **params)

    def _blocks(self) -> JSON:
        with self.model.graph.lock:
            return self._hub.blocks()

    def _costs(self) -> JSON:
        with self.model.graph.lock:
            return self._hub.costs()

    def _pin(self, value: int, on: bool) -> JSON:
        with self.model.graph.lock:
            return self.tensors.pin(value, on)

    def _stop(self, run: int) -> JSON:
        return {"stopped": self._runs.stop(run)}

    # -- events -------------------------------------------------------------------------------------------

    def _commit(self, commit: "Commit", delta: JSON) -> None:
        self._ahead = None
        self.summaries.clear()
        self.tensors.made = {}
        about = {"version": wire_version(commit.version), "label": commit.label, "kind": commit.kind}
        origin = commit.origin if isinstance(commit.origin, str) else None
        self._outbox.event("commit", {**about, **delta, "origin": origin})

    def _diagnosed(self, payload: JSON) -> None:
        self._ahead = None
        self._outbox.event("diagnostics", payload)

    def _state_changed(self) -> None:
        self._outbox.event(*self._state_event())

    def _state_event(self) -> tuple[str, JSON]:
        return "history", self._hub.state()

    def _refusal(self, request: int, error: Exception) -> JSON:
        """The reply to a request that failed, in the words of the error."""
        match error:
            case ProtocolError():
                return messages.error(request, error.code, str(error), error.hint)
            case RunStopped():
                return messages.error(request, "stopped", str(error))
            case LimitError() if "Limits.deadline" in str(error):
                hint = "Give it more seconds in Inputs of the run (0: no end), or in Python: view.deadline = 600"
                return messages.error(request, "run", str(error), hint, self._node_called(error.node))
            case RunError():
                return messages.error(request, "run", str(error), node=self._node_called(error.node))
            case EditError():
                return messages.error(request, "refused", str(error))
            case NameLookupError():
                return messages.error(request, "gone", str(error))
            case SaveError():
                return messages.error(request, "save", str(error))
            case OnnxlabError():
                return messages.error(request, "failed", str(error))
        message = f"{type(error).__name__}: {error}"
        return messages.error(request, "internal", message, "This is a defect of onnxlab; please report it.")

    def _node_called(self, label: str | None) -> int:
        try:
            return self.model.graph.resolve_node(label) if label else 0
        except NameLookupError:
            return 0
