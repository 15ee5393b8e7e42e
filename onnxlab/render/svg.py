"""A model as a static SVG: what GitHub, nbconvert and `onnxlab svg` show.

Colors can be read on white and on black: boxes have their own light ground, everything else is gray. No text of the
model is markup: all texts are escaped, and ids are numbers.
"""

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.printable import printable
from onnxlab.render.layout import LINE, Layout, Rectangle, Route, layout
from onnxlab.render.picture import MAX_BOXES, DrawnBox, Picture, picture

if TYPE_CHECKING:
    from onnxlab.model import Model

MARGIN = 8.0
FONTS = "Helvetica, Arial, sans-serif"
_GRAY = "#808080"
_FILLS = {
    "convolution": "#bcd6f5",
    "matrix": "#c5cdf7",
    "recurrent": "#d3c7f5",
    "normalization": "#cfe8dc",
    "activation": "#f8cfc9",
    "pooling": "#c9e6ec",
    "reduction": "#f3d9ea",
    "shape": "#f6e7b8",
    "constant": "#e6e6e6",
    "quantization": "#e9d8c3",
    "control": "#f5c9e2",
    "function": "#dcd2ee",
    "custom": "#f9d5a7",
    "group": "#dfe5ec",
    "input": "#d5efc5",
    "output": "#d5efc5",
}
_OTHER = "#e2eadb"
_LONGEST = 2000


def render(model: "Model", max_boxes: int = MAX_BOXES, hierarchy: Hierarchy | None = None) -> str:
    """The main graph as an SVG document, folded until at most `max_boxes` boxes show; see `picture`."""
    drawn = picture(model, max_boxes, hierarchy)
    return draw(drawn, layout(drawn), title=model.name)


def draw(drawn: Picture, placed: Layout, title: str, fonts: str = FONTS) -> str:
    """Write a picture with its layout."""
    width, height = placed.width + 2 * MARGIN, placed.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{fonts}" font-size="11" '
        'data-onnxlab="picture">',
        f"<title>{_text(title)}</title>",
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
    ]
    frames = [frame for frame in drawn.frames if frame.key in placed.frames]
    parts += [_frame(placed.frames[frame.key], frame.title) for frame in frames]
    parts.append(f'<g fill="none" stroke="{_GRAY}">')
    for edge, route in zip(drawn.edges, placed.routes, strict=True):
        if route.points:
            parts.append(_path(route, edge.is_capture))
    parts.append(f'</g><g fill="{_GRAY}" font-size="9" text-anchor="middle">')
    for edge, route in zip(drawn.edges, placed.routes, strict=True):
        if edge.label and route.label:
            parts.append(f'<text x="{route.label[0]:.1f}" y="{route.label[1] + 3:.1f}">{_text(edge.label)}</text>')
    parts.append("</g>")
    parts += [_box(box, placed.boxes[box.key]) for box in drawn.boxes]
    return "".join([*parts, "</g></svg>"])


def fill(family: str) -> str:
    """The ground of a box, "#rrggbb"."""
    return _FILLS.get(family, _OTHER)


def _text(text: str) -> str:
    """Escaped text, cut where it is long, without the control characters that XML forbids."""
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return escape(printable(text), {'"': "&quot;"})


def _box(box: DrawnBox, at: Rectangle) -> str:
    left, top = at.x - at.width / 2, at.y - at.height / 2
    radius = at.height / 2 if box.family in ("input", "output") else 4
    ground = fill(box.family)
    dash = ' stroke-dasharray="4 2"' if box.family == "group" else ""
    lines = [(box.title, ' font-weight="bold"'), (box.subtitle, ' fill="#444"')] if box.subtitle else [(box.title, "")]
    first = at.y - LINE * (len(lines) - 1) / 2 + 4
    texts = "".join(
        f'<text x="{at.x:.1f}" y="{first + LINE * number:.1f}" text-anchor="middle"{style}>{_text(line)}</text>'
        for number, (line, style) in enumerate(lines)
    )
    return (
        f'<g fill="#111"><title>{_text(box.tip)}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{at.width:.1f}" height="{at.height:.1f}" rx="{radius:g}" '
        f'fill="{ground}" stroke="{_GRAY}"{dash}/>{texts}</g>'
    )


def _frame(at: Rectangle, title: str) -> str:
    left, top = at.x - at.width / 2, at.y - at.height / 2
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{at.width:.1f}" height="{at.height:.1f}" rx="6" '
        f'fill="{_GRAY}" fill-opacity="0.08" stroke="{_GRAY}" stroke-opacity="0.5"/>'
        f'<text x="{left + 6:.1f}" y="{top + 12:.1f}" font-size="9" fill="{_GRAY}">{_text(title)}</text>'
    )


def _path(route: Route, is_capture: bool) -> str:
    start, *rest = route.points
    curve = " ".join(f"{x:.1f} {y:.1f}" for x, y in rest)
    dash = ' stroke-dasharray="4 3"' if is_capture else ""
    return f'<path d="M{start[0]:.1f} {start[1]:.1f}C{curve}"{dash}/>'
