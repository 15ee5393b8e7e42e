"""Which widget shows which model."""

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from traitlets import TraitError

from onnxlab.errors import OnnxlabError
from onnxlab.model import Model
from onnxlab.notebook.widgets.display import StaticView
from onnxlab.notebook.widgets.widget import ModelWidget

_last: "weakref.WeakKeyDictionary[Model, weakref.ref[ModelWidget]]" = weakref.WeakKeyDictionary()

NO_OPTIONS = frozenset(("bundle", "comm", "keys", "log", "session"))
"""Traits of a view that are not the user's to set."""


def open_view(model: Model, *, new: bool = False, static: bool = False, **options: Any) -> Any:
    """The widget made last on a model, with the options set; a new one where there is none, or `new` is true.

    Raises:
        OnnxlabError: a view has no such option, or it cannot have this value.
    """
    known = [name for name in ModelWidget.class_trait_names() if not name.startswith("_") and name not in NO_OPTIONS]
    if unknown := [name for name in options if name not in known]:
        raise OnnxlabError(f"a view has no option {unknown[0]!r}; there are new, static, {', '.join(sorted(known))}")
    if static:
        return StaticView(model)
    reference = _last.get(model)
    widget = reference() if reference else None
    if widget is None or not widget.is_open or new:
        with _in_words():
            widget = ModelWidget(model, **options)
        _last[model] = weakref.ref(widget)
    else:
        with _in_words():
            for name, value in options.items():
                setattr(widget, name, value)
    return widget


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Turn what traitlets says of a value into an error of ours."""
    try:
        yield
    except TraitError as error:
        raise OnnxlabError(f"the view cannot be shown so: {error}") from None
