"""The widget of two models side by side: a difference, or a comparison of values."""

from typing import Any

import IPython.display
import traitlets

from onnxlab.errors import OnnxlabError
from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff
from onnxlab.notebook.session.pair_session import PairSession
from onnxlab.notebook.widgets.bundled_widget import BundledWidget

HEIGHT = 860
"""Pixels."""


class PairWidget(BundledWidget):
    """A view of two models: both graphs with differences in colors, and changes or errors below.

    Folding, selection and position of one graph are taken over in the other.

    Attributes:
        height: the height of the view in pixels.
        subject: the difference or the comparison that is shown.
    """

    _anywidget_id = traitlets.Unicode("onnxlab.notebook.widgets.pair_widget.PairWidget").tag(sync=True)
    height = traitlets.Int(HEIGHT, min=360, max=10_000).tag(sync=True)
    sides = traitlets.Int(2, read_only=True).tag(sync=True)

    def __init__(self, subject: ModelDiff | ModelComparison, height: int | None = None) -> None:
        self.subject = subject
        self._session: PairSession | None = PairSession(subject, self._send_message)
        self.set_trait("sides", len(self._session.sides))
        super().__init__(**({} if height is None else {"height": height}))
        self.on_msg(self._receive)

    def _send_message(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        self.send(content, buffers)

    def _receive(self, widget: Any, content: Any, buffers: Any) -> None:
        if self._session is not None and not self.answer_loader(content):
            self._session.receive(content)

    def close(self) -> None:
        """Remove the view from the page and stop following both models. Closing twice does no harm."""
        if self._session is not None:
            self._session.close()
            self._session = None
            self.on_msg(self._receive, remove=True)
        super().close()

    @property
    def is_open(self) -> bool:
        """Whether the view still follows the models."""
        return self._session is not None

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and the text for readers without a kernel."""
        if self._session is None:
            return {"text/plain": str(self.subject)}
        shown = super()._repr_mimebundle_(**options)
        data = shown[0] if isinstance(shown, tuple) else shown
        return {**(data or {}), "text/plain": str(self.subject)}


def open_pair(subject: ModelDiff | ModelComparison, height: int | None = None) -> PairWidget:
    """Make the view of a difference or a comparison.

    Raises:
        OnnxlabError: the height is out of range.
    """
    try:
        return PairWidget(subject, height)
    except traitlets.TraitError as error:
        raise OnnxlabError(f"the view cannot be shown so: {error}") from None


def publish(subject: ModelDiff | ModelComparison) -> None:
    """Show the view in the output of the running cell."""
    IPython.display.display(open_pair(subject))  # type: ignore[no-untyped-call]
