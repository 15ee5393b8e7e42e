"""Ctrl-C waits while a change is half made.

Python raises KeyboardInterrupt between any two instructions of the main thread. Between two changes, a transaction
takes back those already made; in the middle of a change there is no inverse yet.
"""

import importlib
import signal
import threading
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any

from onnxlab.forking import in_child

# the C module behind `signal`, whose own functions look every handler up in an enum, which takes 10 µs
_signal: Any = importlib.import_module("_signal")
_getsignal, _setsignal = _signal.getsignal, _signal.signal
SIGINT = int(signal.SIGINT)


class Uninterrupted:
    """`with UNINTERRUPTED:` holds SIGINT back until the end of the outermost such block, in the main thread.

    In other threads Python raises no KeyboardInterrupt, and a block does nothing. A block costs less than 5 µs, and a
    fifth of that between `arm` and `disarm`, which leave the handler in place from one block to the next.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._armed = 0
        self._hook = self._note
        self._handler: Any = None  # the handler that the hook replaces
        self._pending: tuple[int, FrameType | None] | None = None
        self._note_main()
        in_child(self._note_main)  # after a fork the thread that forked is the main one

    def _note_main(self) -> None:
        self._main = threading.main_thread().ident

    def arm(self) -> None:
        """Expect several blocks: the handler stays between them, and lets through what comes there."""
        if get_ident() == self._main:
            self._armed += 1

    def disarm(self) -> None:
        """Expect no more blocks since the call of `arm`; to be called in the last one."""
        if get_ident() == self._main:
            self._armed -= 1

    def __enter__(self) -> None:
        self.hold()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def hold(self) -> None:
        """Begin a block, where `with` takes too long; `release` must end it, whatever happens."""
        if get_ident() != self._main:
            return
        if not self._depth and _getsignal(SIGINT) is not self._hook:
            self._take_over()
        self._depth += 1

    def release(self) -> None:
        """End a block."""
        if get_ident() != self._main:
            return
        self._depth -= 1
        if not self._depth and (self._pending is not None or not self._armed) and self._handler is not None:
            self._let_go()

    def _take_over(self) -> None:
        """Stand in for the handler that there is."""
        handler = _getsignal(SIGINT)
        if callable(handler):
            _setsignal(SIGINT, self._hook)
            self._handler = handler

    def _let_go(self) -> None:
        """Give way to the handler that ours stands in for, unless more blocks are expected, and call it if need be."""
        handler = self._handler
        if not self._armed:
            self._handler = None
            _setsignal(SIGINT, handler)
        pending, self._pending = self._pending, None
        if pending is not None:
            handler(*pending)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._depth == 0 and self._handler is not None:
            self._handler(number, frame)
        else:
            self._pending = (number, frame)


UNINTERRUPTED = Uninterrupted()
