"""Saving a Model, and recovery of edits that were not saved."""

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from onnxlab.argument_types import expect
from onnxlab.errors import SaveError
from onnxlab.formats import foreign, saving, textual
from onnxlab.formats.journals.journal import Journal
from onnxlab.formats.journals.recovery import Recovery
from onnxlab.formats.source import Source
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.spelling import Spelled


class Saving(Spelled):
    """Saving a Model, and the state of its file."""

    __slots__ = ("_journal", "_on_save", "_recoverable", "_saved_state", "_source")

    graph: ModelGraph
    _source: Source
    _on_save: list[Callable[[], Any]]
    _recoverable: tuple[Recovery, ...]
    _journal: Journal
    _saved_state: int

    @property
    def path(self) -> Path | None:
        """The file that the model was loaded from or last saved to, None where there is none.

        Examples:
            >>> model.path is None
            True
        """
        return self._source.path

    @property
    def name(self) -> str:
        """File name, else the graph's name, for titles.

        Examples:
            >>> model.name
            'digits'
        """
        return self.path.name if self.path else self.graph.proto.graph.name or "model"

    @property
    def dirty(self) -> bool:
        """Whether there are edits that are not saved.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> model.dirty
            True
        """
        return self.graph.history.state != self._saved_state

    def save(
        self,
        path: str | PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        external_data: bool | str | None = None,
        shard_bytes: int | None = None,
        format: str | None = None,  # noqa: A002  as in the command line
    ) -> Path:
        """Write the model, by default to where it came from.

        Without a net edit the bytes are those that were loaded. The file and its data files are replaced as a whole or
        not at all, and data that did not change is not written again. A file in another folder takes along only the
        external data that the model uses; this model may go on reading its own from where it was.

        Args:
            path: where to. The file that was loaded, and others of its suffix, keep the format that was read. Else the
                suffix decides: .textproto, .pbtxt and .txtpb are protobuf's text, .json its JSON, .onnxtxt the language
                of onnx.parser; those of other formats are refused, all others are .onnx. A SaveWarning says what a
                format does not carry (`files.loss_report` says it before), and that a hard link keeps the old content.
            overwrite: replace the file even if another program changed it since it was loaded.
            external_data: True or a file name puts initializers of 1 KiB or more into a data file, and leaves what data
                files hold that the model does not use any more; False takes all external data into the model's file.
                None: everything stays where it is, unless the file would have 2 GiB or more; then its initializers go
                to a data file, with a SaveWarning.
            shard_bytes: the most bytes of one data file; more go into several.
            format: the format to write, whatever the name of the file: "onnx", "textproto", "json", "onnxtxt", …

        Returns:
            Path: where it was written.

        Raises:
            SaveError: there is no path, or the file cannot be written; the old file is untouched.

        Examples:
            >>> model.save("model.onnx").name, model.dirty
            ('model.onnx', False)
        """
        target = saving.where(path) if path is not None else self.path
        if target is None:
            raise SaveError("this model was not loaded from a file: say where to save it, model.save('model.onnx')")
        shard_bytes = expect(shard_bytes, (int, type(None)), "shard_bytes", "a number of bytes, or None")
        if shard_bytes is not None and shard_bytes < 1:
            raise SaveError(f"shard_bytes is {shard_bytes}: expected a number of bytes from 1 on")
        expect(external_data, (bool, str, type(None)), "external_data", "True, False, None or the name of a data file")
        expect(format, (str, type(None)), "format", "the name of a format, as 'onnx', or None")
        options = saving.SaveOptions(overwrite, external_data, shard_bytes, format)
        with self.graph.lock:
            form = saving.file_format(target, self._source, options)
            original = self._original(form.name) if options.as_it_is else None
            announce = self._journal.announce
            self._source = saving.write(self.graph.proto, target, self._source, original, options, announce)
            self._journal.begin(self._source)
            self.graph.base_dir = self._source.base_dir  # the external data went along
            self._saved_state = self.graph.history.state
        for follower in list(self._on_save):
            follower()
        return target if path is None else Path(os.fsdecode(path))

    def to_bytes(self) -> bytes:
        """Serialize the model as it would be saved (external data apart).

        Returns:
            bytes: of an .onnx file; without a net edit those that were loaded.

        Examples:
            >>> onnx.load_model_from_string(model.to_bytes()) == model.proto
            True
        """
        with self.graph.lock:
            original = self._original("onnx")
            if original is not None:
                return original
            return foreign.restored(self.graph.proto.SerializeToString(), self._source.strings)

    def to_text(self, suffix: str = ".onnxtxt") -> str:
        """Write the model as text for people.

        Args:
            suffix: of the format: ".onnxtxt" is the language of onnx.parser; ".textproto" and ".json" are protobuf's.

        Returns:
            str: the text.

        Raises:
            TextError: no textual format has this suffix, or the format cannot hold the model.

        Examples:
            >>> model.to_text(".json")[:1]
            '{'
        """
        with self.graph.lock:
            return textual.text_of(self.graph.proto, suffix)

    def _original(self, form: str) -> bytes | None:
        """The bytes as loaded, where they are in this format, there is no net edit, and they are still in memory."""
        if self.graph.history.state != 0 or self._source.origin_format != form:
            return None
        return self._source.original()
