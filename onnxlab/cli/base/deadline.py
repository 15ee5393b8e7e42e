"""The end of a command that takes too long."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable

from onnxlab.cli.base.exits import FAILED, is_expected

GRACE = 5.0
"""Seconds that a command gets to end by itself after it was interrupted."""

AGAIN = 2.0
"""Seconds after which it is interrupted once more: Python drops an interrupt in the callback of an import's lock."""


class TimedOut(Exception):
    """A command took longer than --timeout."""


class Deadline:
    """`with Deadline(seconds):` interrupts what takes longer; None lets it go on for ever.

    Code that cannot be interrupted ends with the process. Files are written whole or not at all, so that none is left
    half written.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._passed = False
        self._timers: list[threading.Timer] = []

    def __enter__(self) -> None:
        if self._seconds is not None:
            for wait, function in ((0, self._interrupt), (AGAIN, self._interrupt), (GRACE, self._end)):
                self._after(self._seconds + wait, function)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        for timer in self._timers:
            timer.cancel()
        # an import that is interrupted may raise something else
        if self._passed and error is not None and (isinstance(error, KeyboardInterrupt) or not is_expected(error)):
            raise TimedOut(self._words()) from None

    def _after(self, seconds: float, function: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, function)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _interrupt(self) -> None:
        self._passed = True
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # wakes a blocking system call
        else:
            _thread.interrupt_main()

    def _end(self) -> None:
        print(f"onnxlab: {self._words()}", file=sys.stderr, flush=True)
        os._exit(FAILED)

    def _words(self) -> str:
        return f"it took longer than the {self._seconds:g} s of --timeout"
