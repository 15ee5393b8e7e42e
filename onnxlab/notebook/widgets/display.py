"""Outputs of cells: the widget for where a kernel runs, a picture and a text for where none does.

Picture and widget are two outputs. Of one output with both, JupyterLab and nbconvert show the widget, or only an error
where no kernel has its model. So the picture comes first, by itself, and an active widget hides it (`stand_in.ts`).

The picture is stored as SVG and as PNG, since JupyterLab shows no SVG in a notebook that it does not trust, and trusts
only notebooks that its user ran.

Neither output has text/html: GitHub and nbconvert would prefer it to the picture, and show it without its tags.
"""

import base64
import contextlib
from typing import TYPE_CHECKING, Any

from onnxlab.errors import OnnxlabError
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.render import png, svg, text
from onnxlab.render.layout import layout
from onnxlab.render.picture import picture

if TYPE_CHECKING:
    from onnxlab.model import Model

MAX_BOXES = 20
"""Boxes of the picture beside the widget, which is made with every output and so must take little time."""
WIDGET, SVG, PNG = "application/vnd.jupyter.widget-view+json", "image/svg+xml", "image/png"
SCALE, MOST_PIXELS = 1.5, 500_000
"""Scale and most pixels of the PNG, which must take little time too."""


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
    makes = {"text/plain", SVG, PNG} | ({WIDGET} if model_id is not None else set())
    kinds = {kind for kind in makes if not include or kind in include} - set(exclude or ())
    shown: dict[str, Any] = {}
    if WIDGET in kinds:
        shown[WIDGET] = {"version_major": 2, "version_minor": 1, "model_id": model_id}
    if kinds & {SVG, PNG}:
        shown |= _pictures(model, hierarchy, kinds)
    if "text/plain" in kinds:
        shown["text/plain"] = text.summary(model)
    return shown


def _pictures(model: "Model", hierarchy: Hierarchy | None, kinds: set[str]) -> dict[str, str]:
    drawn = picture(model, MAX_BOXES, hierarchy)
    placed = layout(drawn)
    pictures = {SVG: svg.draw(drawn, placed, model.name)} if SVG in kinds else {}
    if PNG in kinds:
        with contextlib.suppress(OnnxlabError):  # a browser's Python has no resvg: there the SVG is the picture
            pictures[PNG] = base64.b64encode(png.draw(drawn, placed, model.name, SCALE, MOST_PIXELS)).decode()
    return pictures


def sizes(shown: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a bundle: the size at which the PNG, which has more pixels, is shown."""
    if PNG not in shown:
        return {}
    width, height = png.size(base64.b64decode(shown[PNG]))
    return {PNG: {"width": round(width / SCALE), "height": round(height / SCALE)}}


def publish(model: "Model", model_id: str, hierarchy: Hierarchy | None = None) -> None:
    """Show a view in the output of the running cell: the picture and the text, then the widget."""
    from IPython.display import publish_display_data

    shown = bundle(model, model_id, hierarchy)
    # The empty text keeps readers without widgets from reporting an output that they cannot show.
    widget = {WIDGET: shown.pop(WIDGET), "text/plain": ""}
    publish_display_data(shown, sizes(shown))  # type: ignore[no-untyped-call]
    publish_display_data(widget)  # type: ignore[no-untyped-call]


class StaticView:
    """A model as a picture, made anew each time it is shown."""

    def __init__(self, model: "Model") -> None:
        self.model = model

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        shown = bundle(self.model, include=include, exclude=exclude)
        return shown, sizes(shown)

    def __repr__(self) -> str:
        return text.summary(self.model)
