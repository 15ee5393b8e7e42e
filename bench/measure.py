"""Timing two sides of a comparison in one process, and the table that comes of it."""

import contextlib
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Action = Callable[[], Any]
Clock = Callable[[], float]


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
        """Our time divided by theirs."""
        return self.ours / self.theirs

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept, None where nothing was promised."""
        return None if self.promise is None else self.ratio <= self.promise

    def cells(self) -> list[str]:
        """The cells of the row in the printed table."""
        promise = "" if self.promise is None else f"≤ {self.promise:g}"
        return [self.what, seconds(self.ours), self.against, seconds(self.theirs), f"{self.ratio:.3g}", promise]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table that has no other side: a count, a share or a size, held against a limit.

    Attributes:
        found: what was measured, in `unit`.
        at_most, at_least: the promise; None where there is none.
        note: what `found` counts, or against what it was checked.
    """

    what: str
    found: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept, None where nothing was promised."""
        if self.at_most is None and self.at_least is None:
            return None
        below = self.at_most is None or self.found <= self.at_most
        return below and (self.at_least is None or self.found >= self.at_least)

    def cells(self) -> list[str]:
        """The cells of the row in the printed table."""
        both = (("≤", self.at_most), ("≥", self.at_least))
        limits = [f"{sign} {limit:g}" for sign, limit in both if limit is not None]
        value = seconds(self.found) if self.unit == "s" else f"{self.found:.6g} {self.unit}".strip()
        return [self.what, value, self.note, "", "", " and ".join(limits)]


Line = Row | Figure


def compare(
    label: str,
    ours: Action,
    theirs: Action,
    *,
    against: str,
    promise: float | None = None,
    repeats: int = 5,
    inner: int = 1,
    clock: Clock = time.perf_counter,
    before: Action | None = None,
) -> Row:
    """Time both sides in turn, `repeats` times each, and keep the fastest of each.

    In turn, so that a machine that slows down slows both; the fastest, because everything else on the machine can
    only add. `inner` calls of ours are timed as one where a single one is too short for the clock; `before` is called
    ahead of each turn and not timed.
    """
    ours()
    theirs()
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        if before:
            before()
        best[0] = min(best[0], timed(ours, inner, clock))
        best[1] = min(best[1], timed(theirs, clock=clock))
    return Row(label, best[0], best[1], against, promise)


def timed(action: Action, inner: int = 1, clock: Clock = time.perf_counter) -> float:
    """Seconds that one call takes, as the mean of `inner` calls; by another clock those of the processor."""
    gc.collect()
    start = clock()
    for _ in range(inner):
        action()
    return (clock() - start) / inner


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """Keep all threads of this process to one processor, where the system lets us: for what one thread does.

    Our runs have a thread of their own, others' are in the caller's. Of a virtual machine's processors one may be
    slower than another by a third for seconds, which would then be one side's alone.
    """
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    _keep_to({max(before)})
    try:
        yield
    finally:
        _keep_to(before)


def _keep_to(processors: set[int]) -> None:
    for thread in os.listdir("/proc/self/task"):  # threads started later take over the setting
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), processors)


@contextlib.contextmanager
def scratch_state() -> Iterator[None]:
    """Let journals of edits, of processes started meanwhile too, go to a folder that is removed at the end."""
    before = os.environ.get("ONNXLAB_STATE_HOME")
    with tempfile.TemporaryDirectory(prefix="onnxlab-bench-") as folder:
        os.environ["ONNXLAB_STATE_HOME"] = folder
        try:
            yield
        finally:
            del os.environ["ONNXLAB_STATE_HOME"]
            if before is not None:
                os.environ["ONNXLAB_STATE_HOME"] = before


def table(rows: Iterable[Line]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| what | onnxlab | against | takes | ours ÷ theirs | promised | kept |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        verdict = {None: "", True: "yes", False: "**no**"}[row.kept]
        lines.append("| " + " | ".join([*row.cells(), verdict]) + " |")
    return "\n".join(lines)


def seconds(value: float) -> str:
    """A duration with three digits and a fitting unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def with_bytecode() -> dict[str, str]:
    """The environment of a process with bytecode on disk, as installed packages have it, wherever they may write."""
    outer = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return outer | {"PYTHONPYCACHEPREFIX": f"{tempfile.gettempdir()}/onnxlab-bench-bytecode"}
