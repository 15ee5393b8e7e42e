"""The widget: a handful of synchronized traits, and a session to which every message goes."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import IPython.display
import traitlets

from onnxlab.errors import NameLookupError, OnnxlabError
from onnxlab.graph.handles.handles import Node
from onnxlab.model.differences import diff
from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff
from onnxlab.notebook.panels.overlay import Overlay
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.notebook.session import file_offers
from onnxlab.notebook.session.counterparts import Counterparts
from onnxlab.notebook.session.pair_session import PairSession
from onnxlab.notebook.session.session import Session
from onnxlab.notebook.session.view_runs import DEADLINE
from onnxlab.notebook.widgets import display, html_page
from onnxlab.notebook.widgets.bundled_widget import BundledWidget

if TYPE_CHECKING:
    from onnxlab.model import Commit, Model

HEIGHT = 560
"""Pixels."""


def _nothing() -> None:
    """The end of a closed view: nothing to do."""


class Selection(traitlets.TraitType[Any, Any]):
    """A tuple of Node handles. The trait accepts handles, names and ids, one or several; the page has ids."""

    info_text = "nodes of the model: handles, names or ids"
    default_value: tuple[Node, ...] = ()

    def validate(self, widget: "ModelWidget", value: Any) -> tuple[Node, ...]:
        """Turn names, ids and handles into handles of the widget's model."""
        if isinstance(value, str | int | Node) or not isinstance(value, Iterable):
            value = (value,)
        return tuple(dict.fromkeys(self._node(widget, key) for key in value))

    def _node(self, widget: "ModelWidget", key: Any) -> Node:
        if isinstance(key, Node):
            if key not in widget.model.nodes:
                raise NameLookupError(f"{key!r} is not a node of this view's model")
            return key
        return widget.model.node(key)


class Height(traitlets.Int[int, Any]):
    """A number of pixels, or "fill"."""

    info_text = 'an int, or "fill"'

    def validate(self, obj: Any, value: Any) -> Any:
        """Take "fill" beside integers."""
        return value if value == "fill" else super().validate(obj, value)


def _to_page(selection: tuple[Node, ...], widget: Any) -> list[int]:
    return [node.id for node in selection]


def _from_page(ids: Any, widget: "ModelWidget") -> tuple[Node, ...]:
    """The nodes of the page's ids, without those that were removed meanwhile."""
    known = widget.model.graph.nodes
    return tuple(widget.model.node(ident) for ident in ids if isinstance(ident, int) and ident in known)


class ModelWidget(BundledWidget):
    """A view of a model, in a notebook.

    Several views of one model show the same, since all of them follow its commits.

    Attributes:
        selection: the selected nodes, set by clicks and from Python, also by names and ids.
        bookmarks: nodes to come back to, set by the page and from Python: B marks a node, N goes to the next one.
        flow: the direction of the layout, "down" or "right"; "auto" chooses by the shape of the view.
        columns: whether a picture much longer than wide is drawn in columns, as in a newspaper.
        height: the height in pixels, or "fill" for the height of the view's container.
        title: the title above the picture.
        deadline: seconds that a run from the page may take, unless the page sets another limit; None for no limit.
        model: the model that is shown; `show_model` shows another one.
        sides: number of the models that stand side by side in the place of the model, 0 for none; see `show_pair`.
    """

    _anywidget_id = traitlets.Unicode("onnxlab.notebook.widgets.widget.ModelWidget").tag(sync=True)

    selection = Selection().tag(sync=True, to_json=_to_page, from_json=_from_page)
    bookmarks = Selection().tag(sync=True, to_json=_to_page, from_json=_from_page)
    flow = traitlets.Enum(["auto", "down", "right"], "auto").tag(sync=True)
    columns = traitlets.Bool(True).tag(sync=True)
    height = Height(HEIGHT, min=120, max=10_000).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    deadline = traitlets.Float(DEADLINE, min=0, allow_none=True)
    session = traitlets.Unicode("", read_only=True).tag(sync=True)
    sides = traitlets.Int(0, min=0, max=2).tag(sync=True)

    def __init__(self, model: "Model", **options: Any) -> None:
        self.model = model
        self._unsubscribe: Callable[[], None] = _nothing
        self._counterparts = Counterparts()
        self._pair: PairSession | None = None
        answers: dict[str, Callable[..., Any]] = {
            "counterparts": lambda: self._counterparts.listed(self.model),
            "compare": self._compare,
        }
        self._session: Session | None = Session(model, self._send_message, self.show_model, answers)
        options.setdefault("title", model.name)
        selection, bookmarks = options.pop("selection", ()), options.pop("bookmarks", ())
        self.set_trait("session", self._session.id)
        self._owns_layout = "layout" not in options
        try:
            # Widget and session have one id, by which the page finds the view's output in its notebook.
            super().__init__(model_id=self._session.id, **options)
            self.selection, self.bookmarks = selection, bookmarks
        except BaseException:
            self.close()  # else the session would follow the model forever
            raise
        self._unsubscribe = model.subscribe(self._drop_removed)
        self.on_msg(self._receive)

    @traitlets.observe("deadline")
    def _set_deadline(self, change: Any) -> None:
        if self._session is not None:
            self._session.deadline = change["new"]

    def _send_message(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        self.send(content, buffers)

    def _receive(self, widget: Any, content: Any, buffers: Any) -> None:
        if self._session is None:
            return
        if self.answer_loader(content):
            return
        if self._pair is not None and isinstance(content, dict) and "side" in content:
            self._pair.receive(content)
        else:
            self._session.receive(content)

    def _drop_removed(self, commit: "Commit") -> None:
        left = tuple(node for node in self.selection if node in self.model.nodes)
        if len(left) < len(self.selection):
            self.selection = left
        present = tuple(node for node in self.bookmarks if node in self.model.nodes)
        if len(present) < len(self.bookmarks):
            self.bookmarks = present

    def overlay(
        self, numbers: "Mapping[Node | str | int, float | str] | None", title: str = "", unit: str = ""
    ) -> None:
        """Color boxes by a number for each of some nodes (by handle, name or id), largest strongest; None ends it.

        Texts instead of numbers are kinds: each text has a color of its own.

        Raises:
            NameLookupError: the model has no such node.
        """
        if self._session is None:
            raise OnnxlabError("this view is closed; show the model again")
        if numbers is None:
            self._session.show_overlay(None)
            return
        by_node = {self._node(key).id: value for key, value in numbers.items()}
        kinds = tuple(dict.fromkeys(value for value in by_node.values() if isinstance(value, str)))
        places = {
            node: float(kinds.index(value) if isinstance(value, str) else value) for node, value in by_node.items()
        }
        self._session.show_overlay(Overlay(title or "overlay", unit, places, kinds))

    def _node(self, key: "Node | str | int") -> Node:
        if isinstance(key, str):
            return Node(self.model.graph, self.model.graph.resolve_node(key))
        return key if isinstance(key, Node) else self.model.node(key)

    def show_model(self, model: "Model", title: str = "") -> None:
        """Show another model in place of this one, as opening a dropped file does; the page can go back.

        Args:
            model: a Model; `onnxlab.load` opens one.
            title: the title above the picture; default: the name of the model.

        Raises:
            OnnxlabError: this view is closed.

        Examples:
            >>> view = onnxlab.show(model)
            >>> view.show_model(onnxlab.load())
            >>> view.model is model
            False
        """
        if self._session is None:
            raise OnnxlabError("this view is closed; show the model again")
        self.sides = 0
        self._unsubscribe()
        self.model = model
        self.title, self.selection, self.bookmarks = title or model.name, (), ()
        self._unsubscribe = model.subscribe(self._drop_removed)
        self._session.show(model, title)

    def show_pair(self, subject: ModelDiff | ModelComparison | None, names: tuple[str, str] | None = None) -> None:
        """Show two models side by side in the place of the model, as comparing in the page does.

        Args:
            subject: what `onnxlab.diff` or `onnxlab.compare` returns; None shows the model again.
            names: what both models are called above their pictures; default: their own names.

        Raises:
            OnnxlabError: this view is closed.

        Examples:
            >>> view = onnxlab.show(model)
            >>> view.show_pair(onnxlab.diff(model, onnxlab.load()))
            >>> view.sides
            2
            >>> view.show_pair(None)
        """
        if self._session is None:
            raise OnnxlabError("this view is closed; show the model again")
        self.sides = 0
        if subject is not None:
            self._pair = PairSession(subject, self._send_message, names)
            self.sides = len(self._pair.sides)

    @traitlets.validate("sides")
    def _shown_sides(self, proposal: Any) -> int:
        """The page may end a comparison, and only Python begins one."""
        sides = proposal["value"]
        if sides != 0 and (self._pair is None or sides != len(self._pair.sides)):
            raise traitlets.TraitError("sides is set by show_pair; 0 ends it")
        return int(sides)

    @traitlets.observe("sides")
    def _end_pair(self, change: Any) -> None:
        if change["new"] == 0 and self._pair is not None:
            self._pair.close()
            self._pair = None

    def _compare(self, counterpart: str | None, file: str | None) -> JSON:
        """Show the model beside another that the page chose: a counterpart, or a file that it sent."""
        if self._session is None or (counterpart is None) == (file is None):
            raise ProtocolError("malformed", "compare: give the id of a counterpart, or the id of a file")
        ours, title = self.model, self.title or self.model.name
        if file is not None:
            upload = self._session.editor.uploads.get(file)
            self.show_pair(diff(ours, file_offers.opened(upload)), (title, upload.name))
            return {}
        chosen = self._counterparts.chosen(counterpart or "")
        other = chosen.opened()
        if chosen.kind == "state":
            self.show_pair(diff(other, ours), (chosen.title, title))
        else:
            self.show_pair(diff(ours, other), (title, chosen.title))
        return {}

    def to_html(self, path: "str | PathLike[str]") -> Path:
        """Write the model as one page that needs neither kernel nor network; see `Model.to_html`."""
        return html_page.write(self.model, path)

    def close(self) -> None:
        """Remove the view from the page, stop its runs and stop following the model. Closing twice does no harm."""
        if self._session is not None:
            self.sides = 0
            self._unsubscribe()
            self._session.close()
            self._session = None
            # references back to the widget would keep it until Python next collects cycles, in a notebook after long
            self._unsubscribe = _nothing
            self.on_msg(self._receive, remove=True)
        layout = self.layout if self._owns_layout else None
        super().close()
        if layout is not None:  # ipywidgets does not close it, in the kernel or on the page
            layout.close()

    @property
    def is_open(self) -> bool:
        """Whether the view still follows the model."""
        return self._session is not None

    def _ipython_display_(self) -> None:
        """Show a picture for readers without a kernel, and the widget, which replaces it where a kernel runs."""
        if self._session is None:
            IPython.display.display(display.StaticView(self.model))  # type: ignore[no-untyped-call]
        else:
            display.publish(self.model, self.model_id, self._session.hierarchy)
            self._session.prepare()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, the picture and the text as one bundle."""
        if self._session is None:
            return display.bundle(self.model, **options)
        return display.bundle(self.model, self.model_id, self._session.hierarchy, **options)
