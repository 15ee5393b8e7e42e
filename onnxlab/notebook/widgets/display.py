"""Outputs of cells: the widget for where a kernel runs, a picture and a text for where none does.

They are two outputs. In one, JupyterLab and nbconvert prefer the widget, and show nothing but an error where no kernel
has its model; so the picture comes first, by itself, and the widget hides it while it lives (`stand_in.ts`).

There is no text/html in them: it would win over the picture on GitHub and in nbconvert, and be shown there
without tags.
"""

from typing import TYPE_CHECKING, Any

from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.render import svg, text

if TYPE_CHECKING:
    from onnxlab.model import Model

MAX_BOXES = 20
"""Boxes of the picture beside the widget: it is made with every output, so it must take little time."""
WIDGET = "application/vnd.jupyter.widget-view+json"


def bundle(
    model: "Model",
    model_id: str | None = None,
    hierarchy: Hierarchy | None = None,
    include: Any = None,
    exclude: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """The representations of a model by MIME type, the widget's only where `model_id` names one.

    Args:
        hierarchy: groups that are up to date, where the caller has them.
        include, exclude: MIME types to make, or to leave out, as IPython asks for them.
    """
    makers: dict[str, Any] = {
        "text/plain": lambda: text.summary(model),
        "image/svg+xml": lambda: svg.render(model, MAX_BOXES, hierarchy),
    }
    if model_id is not None:
        makers[WIDGET] = lambda: {"version_major": 2, "version_minor": 1, "model_id": model_id}
    kinds = {kind for kind in makers if not include or kind in include} - set(exclude or ())
    return {kind: make() for kind, make in makers.items() if kind in kinds}


def publish(model: "Model", model_id: str, hierarchy: Hierarchy | None = None) -> None:
    """Show a view in the output of the cell that runs: the picture and the text, then the widget."""
    from IPython.display import publish_display_data

    shown = bundle(model, model_id, hierarchy)
    # The empty text keeps readers that know no widgets from complaining that there is nothing they can show.
    widget = {WIDGET: shown.pop(WIDGET), "text/plain": ""}
    publish_display_data(shown)  # type: ignore[no-untyped-call]
    publish_display_data(widget)  # type: ignore[no-untyped-call]


class StaticView:
    """A model as a picture, made anew each time it is shown."""

    def __init__(self, model: "Model") -> None:
        self.model = model

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return bundle(self.model, include=include, exclude=exclude)

    def __repr__(self) -> str:
        return text.summary(self.model)
