"""Files of a Model: reports before it is saved, weights, and edits that were never saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from onnxlab.argument_types import expect
from onnxlab.errors import EditError
from onnxlab.formats import saving
from onnxlab.formats.base.format import About, LossReport
from onnxlab.formats.journals import recovery
from onnxlab.formats.journals.recovery import Recovery
from onnxlab.formats.report import FieldChange
from onnxlab.model.weights import WeightFiles

if TYPE_CHECKING:
    from onnxlab.formats.ort.required_operators import RequiredOperators


class Files(WeightFiles):
    """Files of a model, apart from loading and saving: `model.files`.

    Before saving: unsaved (labels of edits), save_report (fields that differ), loss_report (what a format cannot hold)
    The file: format, extra, about, notes, required_operators
    Weights: load_weights, save_weights
    After a crash: recoverable, recover, discard
    on_save: functions that are called after each save.

    Examples:
        >>> model.nodes[0].name = "first"
        >>> model.files.unsaved
        ['rename /stem/conv/Conv to first']
    """

    __slots__ = ()

    @property
    def unsaved(self) -> list[str]:
        """Labels of the edits that were made, or taken back, since the model was loaded or last saved.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> model.files.unsaved
            ['rename /stem/conv/Conv to first']
        """
        return self._model.graph.history.since(self._model._saved_state)

    @property
    def format(self) -> str:
        """The name of the format of the model's file, as `save` and `loss_report` take it.

        Examples:
            >>> model.files.format
            'onnx'
        """
        return self._model._source.form

    @property
    def extra(self) -> Any:
        """The content of the model's file besides the model, such as runtime optimizations; None for most.

        Examples:
            >>> model.files.extra is None
            True
        """
        return self._model._source.extra

    @property
    def on_save(self) -> list[Callable[[], Any]]:
        """Functions that are called, without arguments, after each save; append to it.

        Examples:
            >>> model.files.on_save.append(lambda: print("saved"))
            >>> path = model.save("model.onnx")
            saved
        """
        return self._model._on_save

    @property
    def recoverable(self) -> tuple[Recovery, ...]:
        """Edits of the file that were never saved, from processes that are gone.

        The last entry is the newest whose edits may exist nowhere else, because they were made by hand or their process
        died (`urgent`).

        Examples:
            >>> model.files.recoverable
            ()
        """
        return self._model._recoverable

    def save_report(self) -> list[FieldChange]:
        """List the fields that differ from what was loaded or last saved.

        Returns:
            list[FieldChange]: path in the proto, old and new value.

        Raises:
            SaveError: the model was made from a proto, or another program changed its file.

        Examples:
            >>> path = model.save("model.onnx")
            >>> model.nodes[0].name = "first"
            >>> print(model.files.save_report()[0])
            graph.node[0].name: '/stem/conv/Conv' → 'first'
        """
        with self._model.graph.lock:
            return saving.pending_changes(self._model.graph.proto, self._model._source)

    def loss_report(self, format: str) -> LossReport:  # noqa: A002  as in `save`
        """Tell what a format would not hold of the model, without writing: functions, names, metadata, types.

        Args:
            format: name of the format, or a suffix of its files.

        Returns:
            LossReport: print it; empty where the format holds all.

        Raises:
            NameLookupError: there is no such format.

        Examples:
            >>> print(model.files.loss_report("json"))
            JSON holds all of this model
        """
        with self._model.graph.lock:
            return saving.loss_report(self._model.graph.proto, self._model._source, format)

    def required_operators(self) -> RequiredOperators:
        """List the operators that a build of ONNX Runtime needs for the model.

        Returns:
            RequiredOperators: by domain and version; as text a required_operators.config.

        Examples:
            >>> print(model.files.required_operators())
            ai.onnx;11;Conv
            ai.onnx;12;MaxPool
            ai.onnx;13;Concat,Gemm,Softmax
            ai.onnx;14;Add,Relu
            ai.onnx;15;BatchNormalization
            ai.onnx;19;Reshape,Shape
        """
        from onnxlab.formats.ort import required_operators

        with self._model.graph.lock:
            return required_operators.required(self._model.graph.proto)

    def notes(self, message: Any) -> Mapping[str, str]:
        """Tell what the format of the file says of a node or an initializer besides ONNX, as the inspector shows it.

        Args:
            message: the NodeProto, or the TensorProto of an initializer.

        Returns:
            Mapping[str, str]: texts by subject; empty for most formats.

        Examples:
            >>> model.files.notes(model.nodes[0].proto)
            {}
        """
        return saving.notes_of(self._model._source, message)

    def about(self) -> About:
        """Tell what the format of the file says of the whole model besides ONNX, as the page shows it.

        Returns:
            About: title, the reason where nothing is inferred, and a table, such as the parameters of a checkpoint or
            the partitions of a model in Glow's dialect.

        Examples:
            >>> print(model.files.about())
            ONNX
        """
        with self._model.graph.lock:
            return saving.about(self._model._source, self._model.graph.proto)

    def recover(self, which: Recovery | None = None) -> int:
        """Make the edits again that were never saved, each as an undoable step.

        Args:
            which: one of `recoverable`; default: the last.

        Returns:
            int: how many steps were made.

        Raises:
            EditError: there is nothing to recover, this model was edited already, or an edit does not fit.

        Examples:
            >>> if model.files.recoverable:
            ...     model.files.recover()
        """
        if which is None and not self._model._recoverable:
            raise EditError("no edits of this file are waiting to be recovered")
        expect(which, (Recovery, type(None)), "which", "one of model.files.recoverable, or None")
        chosen = which or self._model._recoverable[-1]
        strings = recovery.strings(chosen)
        with self._model._journal.bringing(strings):
            steps = recovery.replay(self._model.graph, chosen)
        self._model._source = self._model._source.with_strings(strings)
        if self._model._journal.is_whole:  # the journal has all edits now
            self.discard(chosen)
        return steps

    def discard(self, which: Recovery | None = None) -> None:
        """Forget edits that could be recovered.

        Args:
            which: one of `recoverable`; default: all.

        Examples:
            >>> model.files.discard()
            >>> model.files.recoverable
            ()
        """
        for entry in self._model._recoverable if which is None else (which,):
            recovery.discard(entry)
            self._model._recoverable = tuple(other for other in self._model._recoverable if other != entry)
