"""Sends replies and numbered events, one at a time, and not more than a front end takes.

Jupyter drops messages beyond about 1,000 a second. When events come in a burst, as from a cell that edits in a loop,
some are numbered but not sent: the page sees the gap when the next event comes, and requests a snapshot.
"""

import threading
import time
from collections.abc import Callable, Sequence

from onnxlab import threads
from onnxlab.notebook.protocol.messages import JSON, to_base64

Send = Callable[[JSON, list[bytes]], None]

BURST = 100
"""Events that may be sent at once …"""
RATE = 50.0
"""… and events a second after that."""
QUIET = 0.1
"""Seconds after which the event that shows a gap is sent."""


def _nowhere(message: JSON, buffers: list[bytes]) -> None:
    """The destination of a closed outbox."""


def _nothing() -> None:
    """The cancellation of work that is not scheduled: nothing to do."""


def _no_event() -> tuple[str, JSON]:
    return "", {}


class Outbox:
    """The outgoing messages of one session.

    Args:
        send: a function that takes a message and its buffers.
        state_event: a function that returns (name, payload) of a small event, sent after a gap.

    Attributes:
        seq: the number of the last event.
        binary: whether buffers arrive as they are; otherwise they go as base64 in the message.
    """

    def __init__(self, send: Send, state_event: Callable[[], tuple[str, JSON]]) -> None:
        self.seq = 0
        self.binary = True
        self._send = send
        self._state_event = state_event
        self._lock = threading.RLock()
        self._open = True
        self._allowance = float(BURST)
        self._since = time.monotonic()
        self._is_mending = False
        self._cancel: threads.Work = _nothing

    def reply(self, message: JSON, buffers: Sequence[bytes] = ()) -> None:
        """Send the reply to a request."""
        with self._lock:
            if not self._open:
                return
            if buffers and not self.binary:
                self._send({**message, "b64": to_base64(buffers)}, [])
            else:
                self._send(message, list(buffers))

    def event(self, name: str, payload: JSON) -> None:
        """Send the next event, or only number it where too many were sent."""
        with self._lock:
            if not self._open:
                return
            self.seq += 1
            now = time.monotonic()
            self._allowance = min(BURST, self._allowance + RATE * (now - self._since))
            self._since = now
            if self._allowance >= 1 and not self._is_mending:
                self._allowance -= 1
                self._send({"event": name, "seq": self.seq, **payload}, [])
            elif not self._is_mending:
                self._mend_later()

    def _mend_later(self) -> None:
        self._is_mending = True
        self._cancel = threads.later(QUIET, self._mend)

    def _mend(self) -> None:
        """Send an event whose number shows the page that it missed others."""
        name, payload = self._state_event()
        with self._lock:
            self._is_mending = False
            if self._open:
                self.seq += 1
                self._send({"event": name, "seq": self.seq, **payload}, [])

    def close(self) -> None:
        """Drop all further messages."""
        with self._lock:
            self._open = False
            self._send, self._state_event = _nowhere, _no_event
            self._cancel()
            self._cancel = _nothing
