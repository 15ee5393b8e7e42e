"""A line that says what is being loaded: large files take a while, above all from disks far away."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from onnxlab.limits import format_bytes
from onnxlab.printable import printable

LARGE = 50_000_000
"""Bytes of a file from which on the line is shown."""


def told(source: Any) -> AbstractContextManager[None]:
    """Show that a large file is being loaded, in the output of a notebook's cell or in a terminal."""
    line = _line(source)
    show = _shown_by() if line else None
    return nullcontext() if line is None or show is None else _shown(line, show)


@contextmanager
def _shown(line: str, show: Any) -> Iterator[None]:
    began = time.monotonic()
    end = show(f"loading {line} …")
    done = ""
    try:
        yield
        done = f"{line} loaded in {time.monotonic() - began:.1f} s"
    finally:
        end(done)


def _line(source: Any) -> str | None:
    """The name and size of a large file; None for anything else."""
    try:
        path = os.fspath(source)
        size = os.stat(path).st_size
    except (TypeError, OSError, ValueError):
        return None
    return f"{printable(os.path.basename(os.fsdecode(path)))}, {format_bytes(size)}" if size >= LARGE else None


def _shown_by() -> Any:
    """A function that shows a line and returns one that replaces it; None without notebook and terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if getattr(shell, "kernel", None) is not None:
        return _in_cell
    return _in_terminal if sys.stderr is not None and sys.stderr.isatty() else None


def _in_cell(line: str) -> Any:
    from IPython.display import display

    handle = display({"text/plain": line}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return lambda then: handle.update({"text/plain": then}, raw=True)


def _in_terminal(line: str) -> Any:
    print(line, end="", file=sys.stderr, flush=True)

    def end(_: str) -> None:
        print(f"\r{' ' * len(line)}\r", end="", file=sys.stderr, flush=True)

    return end
