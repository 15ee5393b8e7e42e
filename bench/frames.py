"""Frames of the widget alone: a few minutes of what `widget` measures, for an idle machine."""

from collections.abc import Iterator

from bench import page
from bench.measure import Line


def rows() -> Iterator[Line]:
    """First frames of 1,000 to 100,000 nodes; panning and zooming over 10,000 boxes."""
    with page.opened_lab() as lab:
        yield from page.first_frames(lab)
        yield from page.moves(lab, (10_000,))
