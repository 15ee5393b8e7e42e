"""What else a Model does with files: reports before it is saved, weights, and edits that were never saved."""

from collections.abc import Callable
from typing import Any

from onnxlab.errors import EditError
from onnxlab.formats import saving
from onnxlab.formats.base.format import LossReport
from onnxlab.formats.journals import recovery
from onnxlab.formats.journals.recovery import Recovery
from onnxlab.formats.ort import required_operators
from onnxlab.formats.ort.required_operators import RequiredOperators
from onnxlab.formats.report import FieldChange
from onnxlab.model.weights import WeightFiles


class Files(WeightFiles):
    """What else a model does with files than being loaded and saved: `model.files`."""

    __slots__ = ()

    @property
    def unsaved(self) -> list[str]:
        """What the edits are called that were made, or taken back, since it was loaded or saved last."""
        return self._model.graph.history.since(self._model._saved_state)

    @property
    def format(self) -> str:
        """The name of the format of its file, as `save` and `loss_report` take it."""
        return self._model._source.form

    @property
    def extra(self) -> Any:
        """What the format of its file holds besides the model, such as runtime optimizations; None for most."""
        return self._model._source.extra

    @property
    def on_save(self) -> list[Callable[[], Any]]:
        """What is called, without arguments, after each save; append to it."""
        return self._model._on_save

    @property
    def recoverable(self) -> tuple[Recovery, ...]:
        """Edits of the file that were never saved, from processes that are gone.

        Last is the newest of those that may be nowhere else, because they were made by hand or their process died
        (`urgent`).
        """
        return self._model._recoverable

    def save_report(self) -> list[FieldChange]:
        """The fields that differ from what was loaded or last saved: path in the proto, old, new.

        Raises:
            SaveError: it was made from a proto, or its file was changed by somebody else.
        """
        with self._model.graph.lock:
            return saving.pending_changes(self._model.graph.proto, self._model._source)

    def loss_report(self, format: str) -> LossReport:  # noqa: A002  as in `save`
        """What a format would not hold of the model, found out without writing: functions, names, metadata, types.

        Example:
            >>> print(onnxlab.load().files.loss_report("json"))
            JSON holds all of this model

        Args:
            format: its name or a suffix of its files.

        Raises:
            LookupError: there is no such format.
        """
        with self._model.graph.lock:
            return saving.loss_report(self._model.graph.proto, self._model._source, format)

    def required_operators(self) -> RequiredOperators:
        """The operators that a build of ONNX Runtime needs for the model; as text a required_operators.config.

        Example:
            >>> print(onnxlab.load().files.required_operators())
            ai.onnx;11;Conv
            ai.onnx;12;MaxPool
            ai.onnx;13;Flatten,Gemm,Softmax
            ai.onnx;14;Relu,Reshape
        """
        with self._model.graph.lock:
            return required_operators.required(self._model.graph.proto)

    def recover(self, which: Recovery | None = None) -> int:
        """Make the edits again that were never saved, each as an undoable step; returns how many steps were made.

        Args:
            which: one of `recoverable`; default: the last.

        Raises:
            EditError: there is nothing to recover, this model was edited already, or an edit does not fit.
        """
        if which is None and not self._model._recoverable:
            raise EditError("no edits of this file are waiting to be recovered")
        chosen = which or self._model._recoverable[-1]
        steps = recovery.replay(self._model.graph, chosen)
        if self._model._journal.is_whole:  # it has them all now
            self.discard(chosen)
        return steps

    def discard(self, which: Recovery | None = None) -> None:
        """Forget edits that could be recovered: one entry of `recoverable`, by default all."""
        for entry in self._model._recoverable if which is None else (which,):
            recovery.discard(entry)
            self._model._recoverable = tuple(other for other in self._model._recoverable if other != entry)
