"""Which widget shows which model."""

import weakref
from typing import Any

from onnxlab.model import Model
from onnxlab.notebook.display import StaticView
from onnxlab.notebook.widget import ModelWidget

_last: "weakref.WeakKeyDictionary[Model, weakref.ref[ModelWidget]]" = weakref.WeakKeyDictionary()


def open_view(model: Model, *, new: bool = False, static: bool = False, **options: Any) -> Any:
    """The widget made last on a model, with the options set; a new one where there is none, or `new` is true."""
    if static:
        return StaticView(model)
    reference = _last.get(model)
    widget = reference() if reference else None
    if widget is None or not widget.is_open or new:
        widget = ModelWidget(model, **options)
        _last[model] = weakref.ref(widget)
    else:
        for name, value in options.items():
            setattr(widget, name, value)
    return widget
