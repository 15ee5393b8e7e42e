"""Measures of the picture: layouts against dagre, elk and dot, the groups of big models, sizes on the wire.

Layouts are those of flat graphs, without groups and with every line drawn to its end, so that all engines draw the
same boxes and arcs with the same gaps.
"""

import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import graphs, page
from bench.measure import Figure, Line, Row
from onnxlab.errors import OnnxlabError

WIDGETS = Path(__file__).parent.parent / "widgets"
SECONDS = 1500
"""Most that the engines may take together."""

Result = dict[str, Any]


def rows() -> Iterator[Line]:
    """Layouts first; they need Node and dot. Then the widget in a page, which needs JupyterLab and Chromium."""
    yield from layouts()
    yield from page.rows()


def layouts() -> Iterator[Line]:
    """Crossings, lengths and overlaps over all graphs; time at 1,000 boxes."""
    timed = {**graphs.transformer(34), "engines": ["ours"], "timed": True}
    drawings = drawn([*graphs.models(), *graphs.random_dags(), timed])
    thousand = drawings.pop()
    crossings = {
        engine: _mean([1 + drawing[engine]["crossings"] for drawing in drawings]) for engine in ("ours", "dagre", "elk")
    }
    best = min(crossings["dagre"], crossings["elk"])
    against = f"geometric mean of 1 + crossings; dagre {crossings['dagre']:.3g}, elk {crossings['elk']:.3g}"
    yield Figure(f"crossings, {len(drawings)} graphs", crossings["ours"], at_most=best, note=against)
    done = [drawing for drawing in drawings if drawing["dot"]]
    stretch = _mean([drawing["ours"]["length"] / drawing["dot"]["length"] for drawing in done])
    yield Figure(f"length of lines ÷ dot's, {len(done)} graphs", stretch, at_most=1.6, note="geometric mean")
    overlaps = sum(drawing["ours"]["overlaps"] for drawing in drawings)
    yield Figure("boxes that overlap", overlaps, at_most=0)
    times = thousand["timed"]
    name = f"layout, {thousand['boxes']} boxes"
    yield Row(name, times["ours"] / 1000, times["dagre"] / 1000, "dagre", promise=0.1)


def drawn(problems: list[graphs.Graph]) -> list[Result]:
    """The measures of widgets/bench/layout.ts for each graph.

    Raises:
        OnnxlabError: node is not there, or the script failed.
    """
    node = shutil.which("node")
    if node is None:
        raise OnnxlabError("the layouts are compared by a script: install Node.js 20 or newer")
    text = json.dumps(problems)
    command = [node, "bench.mjs", "layout"]
    run = subprocess.run(command, cwd=WIDGETS, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if run.returncode:
        raise OnnxlabError(f"widgets/bench/layout.ts failed; is `npm ci` done in widgets/?\n{run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def _mean(numbers: list[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers))
