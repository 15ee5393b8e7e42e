"""A picture of a model as PNG: the SVG of `svg.py`, drawn by resvg with a font that comes along.

Nothing has to be installed beside the package, and the picture is the same on every machine; only letters that the font
does not have are taken from the machine's own.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from onnxlab.errors import OnnxlabError
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.render import svg
from onnxlab.render.layout import layout
from onnxlab.render.picture import MAX_BOXES, picture

if TYPE_CHECKING:
    from onnxlab.model import Model

SCALE = 2.0
"""Pixels of the image for each of the picture."""
MOST_PIXELS = 1 << 27
"""Pixels of the largest image; what would have more is drawn smaller."""
FONT, FAMILY = Path(__file__).parents[1] / "data" / "sans.ttf", "Onnxlab Sans"


def render(model: "Model", max_boxes: int = MAX_BOXES, hierarchy: Hierarchy | None = None) -> bytes:
    """The main graph as a PNG file on white, folded until at most `max_boxes` boxes show.

    Raises:
        OnnxlabError: resvg is not installed, or failed.
    """
    drawn = picture(model, max_boxes, hierarchy)
    placed = layout(drawn)
    pixels = (placed.width + 2 * svg.MARGIN) * (placed.height + 2 * svg.MARGIN)
    scale = min(SCALE, math.sqrt(MOST_PIXELS / max(pixels, 1.0)))
    return rasterized(svg.draw(drawn, placed, model.name, f"{FAMILY}, {svg.FONTS}"), scale)


def rasterized(drawing: str, scale: float = SCALE) -> bytes:
    """An SVG document as a PNG file on white.

    Raises:
        OnnxlabError: resvg is not installed, or cannot draw it.
    """
    try:
        import resvg_py
    except ImportError:
        hint = "pip install resvg-py, or write an SVG instead"
        raise OnnxlabError(f"a PNG is drawn by resvg, which is not installed here: {hint}") from None
    try:
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=drawing, zoom=scale, background="#ffffff", font_files=[str(FONT)], sans_serif_family=FAMILY
            )
        )
    except ValueError as error:
        raise OnnxlabError(f"the picture cannot be drawn as PNG: {error}; write an SVG instead") from error
