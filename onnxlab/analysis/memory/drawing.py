"""A curve of bytes as text and as SVG."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from xml.sax.saxutils import escape

from onnxlab.limits import format_bytes
from onnxlab.printable import printable

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 72
_SIZE = (720.0, 180.0)
_MARGIN = (64.0, 22.0, 12.0, 22.0)  # left, top, right, bottom
_LONGEST = 120
_COLUMNS = 1440  # of the picture: more steps than this are drawn by the largest of several

# The colors are readable on white and on black, as those of the pictures of models.
_GRAY, _LINE, _FILL, _PEAK = "#808080", "#4a90d9", "#4a90d9", "#d9534a"


def condensed(curve: Sequence[int], width: int) -> list[int]:
    """At most `width` numbers, each the largest of those it stands for."""
    if len(curve) <= width:
        return list(curve)
    ends = [len(curve) * place // width for place in range(width + 1)]
    return [max(curve[start:end]) for start, end in itertools.pairwise(ends)]


def sparkline(curve: Sequence[int]) -> str:
    """The curve in one line of text."""
    columns = condensed(curve, _WIDTH)
    top = max(columns, default=0) or 1
    return "".join(_BARS[min(number * len(_BARS) // top, len(_BARS) - 1)] for number in columns)


def area(curve: Sequence[int], labels: Sequence[str], peak: int, caption: str) -> str:
    """The curve as an SVG document.

    Args:
        labels: labels of the steps, shown where the pointer rests.
        peak: position of the step that is marked.
        caption: stands above it.
    """
    left, top, right, bottom = _MARGIN
    width, height = _SIZE[0] - left - right, _SIZE[1] - top - bottom
    columns = condensed(curve, _COLUMNS)
    most, count = max(columns, default=0) or 1, max(len(columns), 1)
    base = top + height

    def place(column: float) -> float:
        return left + width * column / count

    def level(number: int) -> float:
        return base - height * number / most

    points = [f"M{left:.1f} {base:.1f}"]
    points += [f"V{level(number):.1f}H{place(column + 1):.1f}" for column, number in enumerate(columns)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SIZE[0]:.0f}" height="{_SIZE[1]:.0f}" '
        f'viewBox="0 0 {_SIZE[0]:.0f} {_SIZE[1]:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="11" '
        'data-onnxlab="memory">',
        f"<title>{_text(caption)}</title>",
    ]
    for share in (0.0, 0.5, 1.0):
        at = level(round(most * share))
        parts.append(f'<path d="M{left:.1f} {at:.1f}H{left + width:.1f}" stroke="{_GRAY}" stroke-opacity=".35"/>')
        size = format_bytes(round(most * share))
        parts.append(f'<text x="{left - 6:.1f}" y="{at + 4:.1f}" text-anchor="end" fill="{_GRAY}">{size}</text>')
    if columns:
        parts.append(
            f'<path d="{"".join(points)}V{base:.1f}Z" fill="{_FILL}" fill-opacity=".3" stroke="{_LINE}" '
            'stroke-linejoin="round"/>'
        )
        parts += _marked_peak(place(peak * count / len(curve)), place((peak + 1) * count / len(curve)), top, caption)
    parts += _tips(curve, labels, place, top, height)
    parts.append(
        f'<text x="{left:.1f}" y="{base + 15:.1f}" fill="{_GRAY}">first node</text>'
        f'<text x="{left + width:.1f}" y="{base + 15:.1f}" text-anchor="end" fill="{_GRAY}">'
        f"last of {len(curve):,}</text></svg>"
    )
    return "".join(parts)


def _marked_peak(start: float, end: float, top: float, caption: str) -> list[str]:
    center = (start + end) / 2
    side = "start" if center < _SIZE[0] * 0.33 else "end" if center > _SIZE[0] * 0.66 else "middle"
    return [
        f'<circle cx="{center:.1f}" cy="{top:.1f}" r="3.5" fill="{_PEAK}"/>',
        f'<text x="{center:.1f}" y="{top - 8:.1f}" text-anchor="{side}" fill="{_PEAK}">{_text(caption)}</text>',
    ]


def _tips(curve: Sequence[int], labels: Sequence[str], place: object, top: float, height: float) -> list[str]:
    """Unseen rectangles that name their node; none where there are more than can be pointed at."""
    if len(curve) > _SIZE[0] or not callable(place):
        return []
    return [
        f'<rect x="{place(column):.1f}" y="{top:.1f}" width="{place(1) - place(0):.1f}" height="{height:.1f}" '
        f'fill="transparent"><title>{_text(label)}: {format_bytes(number)}</title></rect>'
        for column, (number, label) in enumerate(zip(curve, labels, strict=True))
    ]


def _text(text: str) -> str:
    return escape(printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"))
