"""How a Model is saved, and what was not saved comes back."""

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from onnxlab.errors import EditError, SaveError
from onnxlab.formats import foreign, recovery, saving, textual
from onnxlab.formats.base.format import LossReport
from onnxlab.formats.journal import Journal
from onnxlab.formats.recovery import Recovery
from onnxlab.formats.report import FieldChange
from onnxlab.formats.source import Source
from onnxlab.graph.edit.model_graph import ModelGraph


class Saving:
    """What a Model does with files.

    Attributes:
        on_save: called, without arguments, after each save.
        recoverable: edits of the file that were never saved, from processes that are gone; last the newest of those
            that may be nowhere else, because they were made by hand or their process died (`urgent`).
    """

    graph: ModelGraph
    source: Source
    on_save: list[Callable[[], Any]]
    recoverable: tuple[Recovery, ...]
    _journal: Journal
    _saved_state: int

    @property
    def path(self) -> Path | None:
        """The file it was loaded from or saved to last."""
        return self.source.path

    @property
    def name(self) -> str:
        """File name, else the graph's name, for titles."""
        return self.path.name if self.path else self.graph.proto.graph.name or "model"

    @property
    def dirty(self) -> bool:
        """Whether there are edits that are not saved."""
        return self.graph.history.state != self._saved_state

    @property
    def unsaved(self) -> list[str]:
        """What the edits are called that were made, or taken back, since it was loaded or saved last."""
        return self.graph.history.since(self._saved_state)

    def save(
        self,
        path: str | PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        external_data: bool | str | None = None,
        shard_bytes: int | None = None,
        format: str | None = None,  # noqa: A002  as in the command line
    ) -> Path:
        """Write the model, by default to where it came from; returns the path.

        Without a net edit the bytes are those that were loaded. The file and its data files are replaced as a whole or
        not at all, and data that did not change is not written again. Into another folder only external data that the
        model uses goes along; it goes on reading its own from where it was.

        Args:
            path: where to. The file that was loaded, and others of its suffix, keep the format that was read. Else the
                suffix decides: .textproto, .pbtxt and .txtpb are protobuf's text, .json its JSON, .onnxtxt the language
                of onnx.parser; those of other formats are refused, all others are .onnx. A SaveWarning says what a
                format does not carry (`loss_report` says it before), and that a hard link keeps the old content.
            overwrite: also where somebody else changed the file since it was loaded.
            external_data: True or a file name puts initializers of 1 KiB or more into a data file, and leaves what data
                files hold that the model does not use any more; False takes all external data into the model's file.
                None: everything stays where it is, unless the file would have 2 GiB or more; then its initializers go
                to a data file, with a SaveWarning.
            shard_bytes: the most bytes of one data file; more go into several.
            format: the format to write, whatever the name of the file: "onnx", "textproto", "json", "onnxtxt", …

        Raises:
            SaveError: there is no path, or it cannot be written; the old file is untouched.
        """
        target = saving.where(path) if path is not None else self.path
        if target is None:
            raise SaveError("this model was not loaded from a file: say where to save it, model.save('model.onnx')")
        options = saving.Options(overwrite, external_data, shard_bytes, format)
        with self.graph.lock:
            form = saving.file_format(target, self.source, options)
            original = self._original(form.name) if options.as_it_is else None
            announce = self._journal.announce
            self.source = saving.write(self.graph.proto, target, self.source, original, options, announce)
            self._journal.begin(self.source)
            self.graph.base_dir = self.source.base_dir  # the external data went along
            self._saved_state = self.graph.history.state
        for follower in list(self.on_save):
            follower()
        return target if path is None else Path(os.fsdecode(path))

    def save_report(self) -> list[FieldChange]:
        """The fields that differ from what was loaded or last saved: path in the proto, old, new.

        Raises:
            SaveError: it was made from a proto, or its file was changed by somebody else.
        """
        with self.graph.lock:
            return saving.pending_changes(self.graph.proto, self.source)

    def loss_report(self, format: str) -> LossReport:  # noqa: A002  as in `save`
        """What a format would not hold of the model, found out without writing: functions, names, metadata, types.

        Example:
            >>> print(onnxlab.load().loss_report("json"))
            JSON holds all of this model

        Args:
            format: its name or a suffix of its files.

        Raises:
            LookupError: there is no such format.
        """
        with self.graph.lock:
            return saving.loss_report(self.graph.proto, self.source, format)

    def recover(self, which: Recovery | None = None) -> int:
        """Make the edits again that were never saved, each as an undoable step; returns how many steps were made.

        Args:
            which: one of `recoverable`; default: the last.

        Raises:
            EditError: there is nothing to recover, this model was edited already, or an edit does not fit.
        """
        if which is None and not self.recoverable:
            raise EditError("no edits of this file are waiting to be recovered")
        chosen = which or self.recoverable[-1]
        steps = recovery.replay(self.graph, chosen)
        if self._journal.is_whole:  # it has them all now
            self.discard(chosen)
        return steps

    def discard(self, which: Recovery | None = None) -> None:
        """Forget edits that could be recovered: one entry of `recoverable`, by default all."""
        for entry in self.recoverable if which is None else (which,):
            recovery.discard(entry)
            self.recoverable = tuple(other for other in self.recoverable if other != entry)

    def to_bytes(self) -> bytes:
        """The model as it would be saved (external data apart)."""
        with self.graph.lock:
            original = self._original("onnx")
            if original is not None:
                return original
            return foreign.restored(self.graph.proto.SerializeToString(), self.source.strings)

    def to_text(self, suffix: str = ".onnxtxt") -> str:
        """The model as text for people: in the language of onnx.parser, or as ".textproto" or ".json".

        Raises:
            TextError: no textual format has this suffix, or it cannot hold the model.
        """
        with self.graph.lock:
            return textual.text_of(self.graph.proto, suffix)

    def _original(self, form: str) -> bytes | None:
        """The bytes as loaded, where they are in this format, there is no net edit, and somebody still has them."""
        if self.graph.history.state != 0 or self.source.origin_format != form:
            return None
        return self.source.original()
