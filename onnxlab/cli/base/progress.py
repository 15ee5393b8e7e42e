"""The progress of a command on standard error, where a terminal is there and it takes longer than a second."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from onnxlab.printable import printable

DELAY = 1.0
"""Seconds until the first message, and between two messages."""
_WIDTH = 79


@contextmanager
def ticking(words: str) -> Iterator[None]:
    """Say what is being done, and for how many seconds, on a line of the terminal that goes away again."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_tick, args=(printable(words), ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tick(words: str, ended: threading.Event) -> None:
    began, shown = time.monotonic(), False
    while not ended.wait(DELAY):
        text = f"{words} … {time.monotonic() - began:.0f} s"
        sys.stderr.write(f"\r{text[-_WIDTH:]:{_WIDTH}}")
        sys.stderr.flush()
        shown = True
    if shown:
        sys.stderr.write(f"\r{'':{_WIDTH}}\r")
        sys.stderr.flush()
