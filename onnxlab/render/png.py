"""A picture of a model as PNG, drawn by Graphviz where `layout.py` put the boxes.

Text of the model reaches `neato` only as escaped labels; ids are numbers, and HTML labels and file names never occur.
"""

import shutil
import subprocess
from typing import TYPE_CHECKING

from onnxlab.errors import OnnxlabError
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.printable import printable_lines
from onnxlab.render.layout import Layout, Rectangle, layout
from onnxlab.render.picture import MAX_BOXES, Box, Picture, picture
from onnxlab.render.svg import fill

if TYPE_CHECKING:
    from onnxlab.model import Model

SCALE = 2.0
"""Pixels of the image for each of the picture."""
SECONDS = 60.0
_POINTS = 72.0
_GRAY = "#808080"


def render(model: "Model", max_boxes: int = MAX_BOXES, hierarchy: Hierarchy | None = None) -> bytes:
    """The main graph as a PNG file on white, folded until at most `max_boxes` boxes show.

    Raises:
        OnnxlabError: Graphviz is not installed, or failed.
    """
    neato = shutil.which("neato")
    if neato is None:
        hint = "install Graphviz (Debian: apt-get install graphviz), or write an SVG instead"
        raise OnnxlabError(f"a PNG is drawn by Graphviz, and there is no `neato` on the PATH: {hint}")
    drawn = picture(model, max_boxes, hierarchy)
    command = [neato, "-n2", "-Tpng", f"-Gdpi={_POINTS * SCALE:g}"]
    text = source(drawn, layout(drawn)).encode()
    try:
        return subprocess.run(command, input=text, capture_output=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise OnnxlabError(f"Graphviz could not draw {model.name}: {error}; write an SVG instead") from error


def source(drawn: Picture, placed: Layout) -> str:
    """The picture in the DOT language, everything at its place; y runs upwards there."""
    lines = [
        'digraph { bgcolor="white"; outputorder=edgesfirst; pad=0.1;',
        'node [fixedsize=true, fontname="Helvetica", fontsize=10, style="filled,rounded", color="#808080"];',
        'edge [arrowsize=0.5, color="#808080", fontname="Helvetica", fontsize=8, fontcolor="#606060"];',
    ]
    for frame in drawn.frames:
        if frame.key in placed.frames:
            look = f'style="rounded", color="#b0b0b0", fontsize=9, fontcolor="{_GRAY}", labelloc=t'
            lines.append(_node(f"f{frame.key}", placed.frames[frame.key], placed.height, frame.title, look))
    for box in drawn.boxes:
        look = f'fillcolor="{fill(box.family)}", shape={"box" if box.family not in ("input", "output") else "oval"}'
        lines.append(_node(str(box.key), placed.boxes[box.key], placed.height, _words(box), look))
    for edge, route in zip(drawn.edges, placed.routes, strict=True):
        if route.points:
            points = " ".join(f"{x:.1f},{placed.height - y:.1f}" for x, y in route.points)
            words = (
                f', label={quoted(edge.label)}, lp="{route.label[0]:.1f},{placed.height - route.label[1]:.1f}"'
                if (edge.label and route.label)
                else ""
            )
            dash = ", style=dashed" if edge.is_capture else ""
            lines.append(f'{edge.source} -> {edge.target} [pos="{points}", arrowhead=none{dash}{words}];')
    return "\n".join([*lines, "}"])


def quoted(text: str) -> str:
    """A text as a string of the DOT language that shows as it is: no escapes, no HTML."""
    plain = printable_lines(text.split("\n"))
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _words(box: Box) -> str:
    return f"{box.title}\n{box.subtitle}" if box.subtitle else box.title


def _node(key: str, at: Rectangle, height: float, words: str, look: str) -> str:
    size = f"width={at.width / _POINTS:.3f}, height={at.height / _POINTS:.3f}"
    return f'{key} [shape=box, pos="{at.x:.1f},{height - at.y:.1f}", {size}, label={quoted(words)}, {look}];'
