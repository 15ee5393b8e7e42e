"""Open widgets by model."""

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import EllipsisType
from typing import Any

from traitlets import TraitError

from onnxlab.argument_types import plain
from onnxlab.errors import OnnxlabError
from onnxlab.model import Model
from onnxlab.notebook.widgets.display import StaticView
from onnxlab.notebook.widgets.widget import ModelWidget

_last: "weakref.WeakKeyDictionary[Model, weakref.ref[ModelWidget]]" = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """Options of a view, new or shown again: see `onnxlab.show`. None, and ... for `deadline`, change nothing."""

    title: str | None = None
    height: int | str | None = None
    selection: Any = None
    bookmarks: Any = None
    flow: str | None = None
    columns: bool | None = None
    deadline: float | EllipsisType | None = ...
    layout: Any = None

    def given(self) -> dict[str, Any]:
        """The options that are set, by name."""
        options = {field.name: plain(getattr(self, field.name)) for field in fields(self) if field.name != "deadline"}
        stated = {name: value for name, value in options.items() if value is not None}
        return stated if self.deadline is ... else {**stated, "deadline": self.deadline}


def open_view(model: Model, options: ViewOptions = ViewOptions(), *, new: bool = False, static: bool = False) -> Any:
    """The widget made last on a model, with the options set; a new widget where there is none, or `new` is true.

    Raises:
        OnnxlabError: an option cannot have this value.
    """
    if static:
        return StaticView(model)
    reference = _last.get(model)
    widget = reference() if reference else None
    if widget is None or not widget.is_open or widget.model is not model or new:
        with _in_words():
            widget = ModelWidget(model, **options.given())
        _last[model] = weakref.ref(widget)
    else:
        with _in_words():
            for name, value in options.given().items():
                setattr(widget, name, value)
    return widget


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Turn an error of traitlets into an OnnxlabError."""
    try:
        yield
    except TraitError as error:
        raise OnnxlabError(f"the view cannot be shown so: {error}") from None
