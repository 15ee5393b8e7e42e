"""A progress bar in the terminal, for runs of more than a second: tqdm's, where that is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.execution.program.call import Progress

DELAY = 1.0
"""Seconds after which the bar shows: shorter runs need none."""


@contextmanager
def bar(description: str = "run", unit: str = " nodes") -> Iterator[Progress | None]:
    """A progress function that draws a bar on standard error; None without a terminal or without tqdm."""
    try:
        tqdm: Any = importlib.import_module("tqdm").tqdm if sys.stderr.isatty() else None
    except ImportError:
        tqdm = None
    if tqdm is None:
        yield None
        return
    with tqdm(desc=description, unit=unit, delay=DELAY, leave=False, file=sys.stderr) as drawn:

        def progress(done: int, total: int, label: str) -> None:
            drawn.total = total
            drawn.set_postfix_str(printable(label), refresh=False)
            drawn.update(done - drawn.n)

        yield progress
