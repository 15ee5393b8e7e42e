"""Models in a notebook: the widget, what a cell shows of a model, and `%onnx_show`.

Nothing here imports ipywidgets or anywidget until a view is asked for.

Files:
    edits/     Edits that the page asks for: the table of edits with parameters as JSON has them.
    panels/    Contents of the page's panels: inspector, tensors, palette, overlay, scene.
    protocol/  Messages between kernel and page, how they are sent, and files that arrive from the page.
    session/   The kernel's side of a view: sessions, runs, edits, and what views of one model share.
    widgets/   The widget, the magics, what a cell's output holds, and exported pages.
"""

from os import PathLike
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal

from onnxlab.graph.handles.model_lookup import NodeKeys
from onnxlab.model import Model, ModelSource, load

__all__ = ["mimebundle", "publish", "show", "view"]


def show(
    model: Model | ModelSource | None = None,
    *,
    new: bool = True,
    static: bool = False,
    title: str | None = None,
    height: int | Literal["fill"] | None = None,
    selection: NodeKeys | None = None,
    bookmarks: NodeKeys | None = None,
    flow: Literal["auto", "down", "right"] | None = None,
    columns: bool | None = None,
    deadline: float | EllipsisType | None = ...,
    layout: Any = None,
) -> Any:
    """Show a model in a notebook: make a new `ModelWidget` on it.

    Args:
        model: a Model, or what `onnxlab.load` takes: a path, bytes, a ModelProto; None for a small model of onnxlab.
        new: False returns the view of the model that was made last, where there is one, with the options set.
        static: whether to return, instead of a widget, the picture that is shown where no kernel runs.
        title: the title above the picture; default: the name of the model.
        height: the height of the view in pixels; "fill" for the height of its container.
        selection: nodes to select, as positions, names or handles.
        bookmarks: nodes to come back to with the key N.
        flow: the direction of the layout; "auto" chooses by the shape of the view.
        columns: whether a picture much longer than wide is drawn in columns, as in a newspaper.
        deadline: seconds that a run from the page may take, unless the page sets another limit; None for no limit.
        layout: an ipywidgets Layout of the whole view.

    Returns:
        ModelWidget: the view, shown at the end of a cell; its `selection` follows the clicks, and can be set.

    Raises:
        LoadError: the file is missing, or is no ONNX model.
        OnnxlabError: an option cannot have this value.

    Examples:
        >>> view = onnxlab.show(model, height=300, selection="/stem/conv/Conv")
        >>> view.selection
        (<Node '/stem/conv/Conv': Conv>,)
    """
    from onnxlab.notebook.widgets.open_views import ViewOptions, open_view

    options = ViewOptions(title, height, selection, bookmarks, flow, columns, deadline, layout)
    return open_view(model if isinstance(model, Model) else load(model), options, new=new, static=static)


def view(model: Model, *, new: bool = False, static: bool = False, **options: Any) -> Any:
    """The `ModelWidget` that was made last on a model, or a new one; `Model.view` documents the options."""
    from onnxlab.notebook.widgets.open_views import ViewOptions, open_view

    return open_view(model, ViewOptions(**options), new=new, static=static)


def write_page(model: Model, path: str | PathLike[str]) -> Path:
    """Write a model as one HTML page; see `Model.to_html`."""
    from onnxlab.notebook.widgets.html_page import write

    return write(model, path)


def view_pair(subject: Any, *, height: int | None = None) -> Any:
    """The view of a difference or a comparison of two models, for its `view`."""
    from onnxlab.notebook.widgets.pair_widget import open_pair

    return open_pair(subject, height)


def write_pair_page(subject: Any, path: str | PathLike[str]) -> Path:
    """Write a difference or a comparison as one HTML page; see its `to_html`."""
    from onnxlab.notebook.widgets.pair_page import write

    return write(subject, path)


def publish_pair(subject: Any) -> None:
    """Show a difference or a comparison in the output of the running cell."""
    from onnxlab.notebook.widgets.pair_widget import publish as show_it

    show_it(subject)


def mimebundle(model: Model, **options: Any) -> Any:
    """The output of a cell that ends with a model: the widget, and beside it a picture and a text."""
    from onnxlab.notebook.widgets.open_views import open_view

    return open_view(model)._repr_mimebundle_(**options)


def publish(model: Model) -> None:
    """Show a model in the output of the running cell: the widget, and a picture for readers without a kernel."""
    from onnxlab.notebook.widgets.open_views import open_view

    open_view(model)._ipython_display_()
