"""A picture of a model as PNG: the SVG of `svg.py`, drawn by resvg with a font that comes along.

Nothing has to be installed beside the package, and the picture is the same on every machine; only letters that the font
does not have are taken from the machine's own.
"""

import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from onnxlab.errors import OnnxlabError
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.render import svg
from onnxlab.render.layout import Layout, layout
from onnxlab.render.picture import MAX_BOXES, Picture, picture

if TYPE_CHECKING:
    from onnxlab.model import Model

SCALE = 2.0
"""Pixels of the image for each pixel of the picture."""
MOST_PIXELS = 1 << 27
"""Pixels of the largest image; a picture that would have more is drawn at a smaller scale."""
_OWN_LETTERS = "×…"
"""Letters beyond ASCII that drawings have besides those of a model; the font has them."""
FONT, FAMILY = Path(__file__).parents[1] / "data" / "sans.ttf", "Onnxlab Sans"


def render(model: "Model", max_boxes: int = MAX_BOXES, hierarchy: Hierarchy | None = None) -> bytes:
    """The main graph as a PNG file on white, folded until at most `max_boxes` boxes show.

    Raises:
        OnnxlabError: resvg is not installed, or failed.
    """
    drawn = picture(model, max_boxes, hierarchy)
    return draw(drawn, layout(drawn), model.name)


def draw(drawn: Picture, placed: Layout, title: str, scale: float = SCALE, most_pixels: int = MOST_PIXELS) -> bytes:
    """Draw a picture with its layout, smaller than `scale` where it would have more than `most_pixels`.

    Raises:
        OnnxlabError: resvg is not installed, or failed.
    """
    pixels = (placed.width + 2 * svg.MARGIN) * (placed.height + 2 * svg.MARGIN)
    scale = min(scale, math.sqrt(most_pixels / max(pixels, 1.0)))
    return rasterized(svg.draw(drawn, placed, title, f"{FAMILY}, {svg.FONTS}"), scale)


def size(image: bytes) -> tuple[int, int]:
    """Width and height of a PNG file, as its header says."""
    width, height = struct.unpack(">II", image[16:24])
    return width, height


def needs_other_fonts(drawing: str) -> bool:
    """Whether a drawing may have letters that the font lacks: the machine's own take tens of milliseconds to find."""
    return not drawing.translate(dict.fromkeys(map(ord, _OWN_LETTERS))).isascii()


def rasterized(drawing: str, scale: float = SCALE) -> bytes:
    """An SVG document as a PNG file on white.

    Raises:
        OnnxlabError: resvg is not installed, or cannot draw the document.
    """
    try:
        import resvg_py
    except ImportError:
        hint = "pip install resvg-py, or write an SVG instead"
        raise OnnxlabError(f"a PNG is drawn by resvg, which is not installed here: {hint}") from None
    try:
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=drawing,
                zoom=scale,
                background="#ffffff",
                font_files=[str(FONT)],
                sans_serif_family=FAMILY,
                skip_system_fonts=not needs_other_fonts(drawing),
            )
        )
    except ValueError as error:
        raise OnnxlabError(f"the picture cannot be drawn as PNG: {error}; write an SVG instead") from error
