"""Models in a notebook: the widget, what a cell shows of a model, and `%onnx_show`.

Nothing here imports ipywidgets or anywidget until a view is asked for.

Files:
    edits/     Edits made by hand: each with its parameters, what it does, and its line of Python.
    panels/    What the panels of the page show: inspector, tensors, palette, overlay, scene.
    protocol/  Messages between kernel and page, how they are sent, and files that arrive from the page.
    session/   The kernel's side of a view: sessions, runs, edits, and what views of one model share.
    widgets/   The widget, the magics, what a cell's output holds, and exported pages.
"""

from os import PathLike
from pathlib import Path
from typing import Any

from onnxlab.model import Model, ModelSource, load

__all__ = ["mimebundle", "publish", "show", "view"]


def show(model: "Model | ModelSource | None" = None, *, new: bool = True, **options: Any) -> Any:
    """A new `ModelWidget` on a model, or on what `onnxlab.load` takes: a path, bytes, a ModelProto.

    Args:
        new: False shows the view of the model that was made last, where there is one.
        options: `height` in pixels, `title`, `selection` (nodes by handle, name or id), `static` (no
            widget, the picture that is shown where no kernel runs).

    Raises:
        LoadError: the file is missing, or is no ONNX model.
        OnnxlabError: a view has no such option, or it cannot have this value.
    """
    from onnxlab.notebook.widgets.open_views import open_view

    return open_view(model if isinstance(model, Model) else load(model), new=new, **options)


def view(model: Model, **options: Any) -> Any:
    """The `ModelWidget` that was made last on a model, or a new one; options as for `show`."""
    from onnxlab.notebook.widgets.open_views import open_view

    return open_view(model, **options)


def write_page(model: Model, path: str | PathLike[str]) -> Path:
    """Write a model as one HTML page; see `Model.to_html`."""
    from onnxlab.notebook.widgets.widget import write_page as write

    return write(model, path)


def mimebundle(model: Model, **options: Any) -> Any:
    """What a cell that ends with a model shows: the widget, and beside it a picture and a text."""
    from onnxlab.notebook.widgets.open_views import open_view

    return open_view(model)._repr_mimebundle_(**options)


def publish(model: Model) -> None:
    """Show a model in the output of the cell that runs: the widget, and a picture for where no kernel runs."""
    from onnxlab.notebook.widgets.open_views import open_view

    open_view(model)._ipython_display_()
