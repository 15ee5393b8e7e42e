"""The kernel's side of a view of two models: a session for each, and what they know of each other."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff
from onnxlab.notebook.panels.pairing import Pairing
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.notebook.protocol.outbox import Send
from onnxlab.notebook.session.session import Session

if TYPE_CHECKING:
    from onnxlab.model import Model

SIDES = ("a", "b")


class PairSession:
    """One view of two models. Each of its messages has the side that it belongs to: `{side, message}`.

    Args:
        subject: the difference or the comparison that is shown.
        send: a function that takes a message and its buffers.
        names: what both models are called; default: their own names.

    Attributes:
        pairing: the shared state of both models' views.
        sides: a session for each model.
    """

    def __init__(self, subject: ModelDiff | ModelComparison, send: Send, names: tuple[str, str] | None = None) -> None:
        self.pairing = Pairing(subject, names)
        answers: dict[str, Callable[..., Any]] = {
            "pair": self.pairing.pair,
            "paired_tensor": self.pairing.tensor,
            "paired_nodes": self.pairing.nodes,
            "compare_values": self._compare_values,
            "stop_comparing": self.pairing.stop_comparing,
        }
        self._send = send
        self.sides = {
            side: Session(model, partial(self._from_side, side), _refuse, answers)
            for side, model in zip(SIDES, self.pairing.models, strict=True)
            if model is not None
        }

    def receive(self, content: Any) -> None:
        """Handle one message from the page; a message without a side is dropped."""
        if isinstance(content, dict) and (session := self.sides.get(str(content.get("side")))):
            session.receive(content.get("message"))

    def close(self) -> None:
        """End the view and its runs. Closing twice does no harm."""
        self.pairing.stop_comparing()
        for session in self.sides.values():
            session.close()

    def _compare_values(self, **params: Any) -> JSON:
        """Compare values on inputs that the first side's page chose."""
        return self.pairing.compare_values(self.sides["a"].editor.uploads, **params)

    def _from_side(self, side: str, content: JSON, buffers: list[bytes]) -> None:
        self._send({"side": side, "message": content}, buffers)


def _refuse(model: "Model", title: str) -> None:
    """Refuse to open a file in place of one of the two models."""
    raise ProtocolError(
        "refused", "This view compares two models.", "Open the file in a view of its own: onnxlab.show(path)"
    )
