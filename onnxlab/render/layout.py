"""Places of a picture's boxes: by Graphviz's `dot` where it is installed, else in plain rows.

Coordinates are in pixels with y downwards. Names never reach `dot`: it sees numbers and sizes.
"""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from onnxlab.graph.index.topology import topological_order
from onnxlab.render.picture import DrawnBox, Edge, Picture

Point = tuple[float, float]

LINE = 15.0
CHARACTER = 6.3
"""Pixels: height of a line and average width of a character at 11 px."""
LABEL = 110.0
"""Room for a label beside an edge."""
DOT_SECONDS = 5.0
GAP_ACROSS, GAP_DOWN = 18.0, 42.0
_POINTS = 72.0


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box or frame by its center and size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """An edge: the control points of its cubic splines, and where its label stands."""

    points: tuple[Point, ...]
    label: Point | None = None


@dataclass(slots=True)
class Layout:
    """Rectangles of boxes and frames by key, routes in the order of the picture's edges."""

    width: float
    height: float
    boxes: dict[int, Rectangle] = field(default_factory=dict)
    frames: dict[int, Rectangle] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)


def size(box: DrawnBox) -> tuple[float, float]:
    """Width and height that a box's text needs."""
    longest = max(len(box.title), len(box.subtitle))
    return max(56.0, CHARACTER * longest + 18), LINE * (2 if box.subtitle else 1) + 10


def layout(picture: Picture) -> Layout:
    """Lay out a picture: by `dot`, or, where it is missing or takes more than DOT_SECONDS, in rows."""
    if picture.boxes:
        with contextlib.suppress(ImportError, RuntimeError, OSError, subprocess.SubprocessError, ValueError, KeyError):
            return _read(picture, _ask(picture))
    return rows(picture)


# -- Graphviz ------------------------------------------------------------------------------------------------


def _ask(picture: Picture) -> str:
    from graphviz.backend import dot_command, execute

    words = ["-Gsplines=spline", "-Gnslimit=2", "-Gnslimit1=2", "-Gmclimit=0.5"]
    process = execute.run_check(
        [*dot_command.command("dot", "json0"), *words], input=source(picture), capture_output=True, encoding="utf-8",
        timeout=DOT_SECONDS, quiet=True,
    )  # fmt: skip
    return str(process.stdout)


def source(picture: Picture) -> str:
    """The picture in the DOT language: opaque numbers, no text of the model."""
    lines = ["digraph {", f"nodesep={GAP_ACROSS / _POINTS:.3f}; ranksep={GAP_DOWN / _POINTS:.3f};"]
    lines.append('node [shape=box, fixedsize=true, label=""]; edge [arrowhead=none];')
    inner: dict[int, list[int]] = {}
    for frame in picture.frames:
        inner.setdefault(frame.parent, []).append(frame.key)
    members: dict[int, list[DrawnBox]] = {}
    for box in picture.boxes:
        members.setdefault(box.frame, []).append(box)

    def write(frame: int) -> None:
        for box in members.get(frame, ()):
            width, height = size(box)
            lines.append(f"{box.key} [width={width / _POINTS:.3f}, height={height / _POINTS:.3f}];")
        for child in inner.get(frame, ()):
            lines.append(f'subgraph cluster_{child} {{ margin=8; label=" "; fontsize=9;')
            write(child)
            lines.append("}")

    write(0)
    for number, edge in enumerate(picture.edges):
        room = ""
        if edge.label:
            # dot keeps room for a label of this many digits; the text itself is written by svg.py
            room = f', label="{"0" * len(edge.label)}", fontsize=9'
        lines.append(f"{edge.source} -> {edge.target} [comment={number}{room}];")
    return "\n".join([*lines, "}"])


def _read(picture: Picture, answer: str) -> Layout:
    """Take dot's answer: its y runs upwards, in points."""
    drawing = json.loads(answer)
    _, _, width, height = (float(part) for part in drawing["bb"].split(","))

    def flip(text: str) -> Point:
        x, y = text.split(",")[-2:]
        return float(x), height - float(y)

    result = Layout(width, height, routes=[Route(())] * len(picture.edges))
    sizes = {box.key: size(box) for box in picture.boxes}
    for item in drawing.get("objects", ()):
        if item["name"].startswith("cluster_"):
            left, bottom, right, top = (float(part) for part in item["bb"].split(","))
            middle = (left + right) / 2, height - (bottom + top) / 2
            result.frames[int(item["name"][8:])] = Rectangle(*middle, right - left, top - bottom)
        else:
            key = int(item["name"])
            result.boxes[key] = Rectangle(*flip(item["pos"]), *sizes[key])
    for item in drawing.get("edges", ()):
        points = tuple(flip(point) for point in item["pos"].split() if not point.startswith(("e,", "s,")))
        result.routes[int(item["comment"])] = Route(points, flip(item["lp"]) if "lp" in item else None)
    _widen(picture, result)
    return result


def _widen(picture: Picture, result: Layout) -> None:
    """Widen frames to hold the labels of the edges in them: dot fits its clusters to boxes alone."""
    parents = {frame.key: frame.parent for frame in picture.frames}
    frames_of: dict[int, list[int]] = {}
    for box in picture.boxes:
        frames_of[box.key], frame = [], box.frame
        while frame:
            frames_of[box.key].append(frame)
            frame = parents[frame]
    for edge, route in zip(picture.edges, result.routes, strict=True):
        if route.label is None or not edge.label:
            continue
        half = len(edge.label) * CHARACTER * 0.4 + 6
        for frame in set(frames_of[edge.source]).intersection(frames_of[edge.target]):
            at = result.frames[frame]
            left = min(at.x - at.width / 2, route.label[0] - half)
            right = max(at.x + at.width / 2, route.label[0] + half)
            result.frames[frame] = Rectangle((left + right) / 2, at.y, right - left, at.height)
            result.width = max(result.width, right)


# -- without Graphviz ----------------------------------------------------------------------------------------


def rows(picture: Picture) -> Layout:
    """Lay out in rows by the longest path; within a row near the middle of what each box reads. Frames are left out."""
    ranks = _ranks(picture)
    rows_of: dict[int, list[DrawnBox]] = {}
    for box in picture.boxes:
        rows_of.setdefault(ranks[box.key], []).append(box)
    sources: dict[int, list[int]] = {}
    for edge in picture.edges:
        sources.setdefault(edge.target, []).append(edge.source)
    result = Layout(0.0, 0.0)
    top = 0.0
    for rank in sorted(rows_of):
        height = max(size(box)[1] for box in rows_of[rank])
        targets = [(_middle(sources.get(box.key, ()), result), box) for box in rows_of[rank]]
        targets.sort(key=lambda pair: pair[0])
        _place(targets, top + height / 2, result)
        top += height + GAP_DOWN
    _normalize(result, top - GAP_DOWN)
    result.routes = [
        _beside(edge, result) if ranks[edge.target] > ranks[edge.source] + 1 else _down(edge, result)
        for edge in picture.edges
    ]
    ends = [x for route in result.routes for x, _ in route.points]
    result.width = max([result.width, *(x + LABEL for x in ends)])
    return result


def _ranks(picture: Picture) -> dict[int, int]:
    sources: dict[int, list[int]] = {box.key: [] for box in picture.boxes}
    for edge in picture.edges:
        sources[edge.target].append(edge.source)
    ranks: dict[int, int] = {}
    for key in topological_order([box.key for box in picture.boxes], sources.__getitem__):
        ranks[key] = 1 + max((ranks.get(other, 0) for other in sources[key]), default=-1)
    return ranks


def _middle(sources: Sequence[int], placed: Layout) -> float:
    known = [placed.boxes[key].x for key in sources if key in placed.boxes]
    return sum(known) / len(known) if known else 0.0


def _place(targets: Sequence[tuple[float, DrawnBox]], y: float, result: Layout) -> None:
    """Put a row's boxes where they want to be, pushed apart to the right, the row's average kept."""
    left, placed = float("-inf"), []
    for x, box in targets:
        width, height = size(box)
        x = max(x, left + width / 2)
        placed.append((box.key, Rectangle(x, y, width, height)))
        left = x + width / 2 + GAP_ACROSS
    shift = sum(x for x, _ in targets) / len(targets) - sum(rectangle.x for _, rectangle in placed) / len(placed)
    for key, rectangle in placed:
        result.boxes[key] = Rectangle(rectangle.x + shift, y, rectangle.width, rectangle.height)


def _normalize(result: Layout, height: float) -> None:
    """Move everything to the right of 0."""
    left = min((box.x - box.width / 2 for box in result.boxes.values()), default=0.0)
    right = max((box.x + box.width / 2 for box in result.boxes.values()), default=0.0)
    for key, box in result.boxes.items():
        result.boxes[key] = Rectangle(box.x - left, box.y, box.width, box.height)
    result.width, result.height = right - left, max(height, 0.0)


def _down(edge: Edge, result: Layout) -> Route:
    """An S between the lower side of one box and the upper side of the one in the next row."""
    start, end = _ends(edge, result)
    bend = (end[1] - start[1]) / 2
    points = (start, (start[0], start[1] + bend), (end[0], end[1] - bend), end)
    label = _label(edge, (start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    return Route(points, label)


def _beside(edge: Edge, result: Layout) -> Route:
    """A bow to the right of every box in the rows that it passes."""
    start, end = _ends(edge, result)
    passed = [box for box in result.boxes.values() if start[1] < box.y < end[1]]
    side = max([start[0], end[0], *(box.x + box.width / 2 for box in passed)]) + GAP_ACROSS
    turn = GAP_DOWN / 2
    points = (
        start, (start[0], start[1] + turn), (side, start[1]), (side, start[1] + 2 * turn),
        (side, start[1] + 2 * turn), (side, end[1] - 2 * turn), (side, end[1] - 2 * turn),
        (side, end[1]), (end[0], end[1] - turn), end,
    )  # fmt: skip
    return Route(points, _label(edge, side, (start[1] + end[1]) / 2))


def _label(edge: Edge, x: float, y: float) -> Point | None:
    """The middle of a label that begins right of a point of its edge."""
    return (x + 5 + len(edge.label) * CHARACTER * 0.4, y) if edge.label else None


def _ends(edge: Edge, result: Layout) -> tuple[Point, Point]:
    above, below = result.boxes[edge.source], result.boxes[edge.target]
    return (above.x, above.y + above.height / 2), (below.x, below.y - below.height / 2)
