"""Timing two sides of a comparison in one process, and the table that comes of it."""

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Action = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: seconds of both sides, and the promise that the ratio is held against.

    Attributes:
        promise: the most that ours ÷ theirs may be, None where nothing is promised.
    """

    what: str
    ours: float
    theirs: float
    against: str
    promise: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def kept(self) -> bool | None:
        return None if self.promise is None else self.ratio <= self.promise


def compare(
    what: str,
    ours: Action,
    theirs: Action,
    *,
    against: str,
    promise: float | None = None,
    repeats: int = 5,
    inner: int = 1,
) -> Row:
    """Time both sides in turn, `repeats` times each, and keep the fastest of each.

    In turn, so that a machine that slows down slows both; the fastest, because everything else on the machine can
    only add. `inner` calls of ours are timed as one where a single one is too short for the clock.
    """
    ours()
    theirs()
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        best[0] = min(best[0], timed(ours, inner))
        best[1] = min(best[1], timed(theirs))
    return Row(what, best[0], best[1], against, promise)


def timed(action: Action, inner: int = 1) -> float:
    """Seconds that one call takes, as the mean of `inner` calls."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(inner):
        action()
    return (time.perf_counter() - start) / inner


def table(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| what | onnxlab | against | takes | ours ÷ theirs | promised | kept |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        promise = "" if row.promise is None else f"≤ {row.promise:g}"
        kept = {None: "", True: "yes", False: "**no**"}[row.kept]
        cells = [row.what, seconds(row.ours), row.against, seconds(row.theirs), f"{row.ratio:.3g}", promise, kept]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def seconds(value: float) -> str:
    """A duration with three digits and a fitting unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
