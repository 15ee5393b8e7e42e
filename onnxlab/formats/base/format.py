"""The protocol of a format: telling its files, reading and writing them, and reporting what they cannot hold."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import onnx

from onnxlab.printable import printable, printable_lines

HEAD: Final = 1 << 16
"""Bytes at the beginning of a file by which its format is recognized."""
_SHOWN: Final = 3
"""Losses of one kind that a printed report names."""


class Content:
    """The content of a file, or bytes without a file; more than the beginning is read only when a format asks for it.

    Attributes:
        path: the path of the file, None where there is none.
        size: in bytes.
        head: the first 64 KiB.
    """

    def __init__(self, head: bytes, size: int, path: Path | None, read: Callable[[], bytes]) -> None:
        self.head, self.size, self.path = head, size, path
        self._read = read

    @classmethod
    def of(cls, data: bytes, path: Path | None = None) -> "Content":
        """Bytes that are in memory."""
        return cls(data[:HEAD], len(data), path, lambda: data)

    @cached_property
    def data(self) -> bytes:
        """All bytes. Raises LoadError for 2 GiB or more, which no message of protobuf or FlatBuffers can have."""
        return self._read()

    @cached_property
    def tail(self) -> bytes:
        """The last 64 KiB, in which a zip archive lists its entries."""
        if self.path is None:
            return self.data[-HEAD:]
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            file.seek(max(0, self.size - HEAD))
            return file.read(HEAD)
        return b""

    @cached_property
    def beginning(self) -> str | None:
        """The beginning of a text after blanks and comments; None for bytes that are no text."""
        head = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()
        while head.startswith((b"#", b"//")):  # comments
            head = head.partition(b"\n")[2].lstrip()
        if not head[:1].isascii() or b"\0" in head:
            return None
        return head.decode("utf-8", "replace")

    @property
    def label(self) -> str:
        """The name of the content in messages."""
        return str(self.path or f"these {self.size} bytes")

    @property
    def suffix(self) -> str:
        """The end of the file's name, in lower case."""
        return self.path.suffix.lower() if self.path is not None else ""


@dataclass(frozen=True, slots=True)
class FormatLoss:
    """A part of a model that a format cannot hold.

    Attributes:
        what: the kind of part, such as "function", "name", "metadata", "type".
        where: its name or its path in the model.
        why: what becomes of the part.
        refused: whether the part prevents the model from being written.
    """

    what: str
    where: str
    why: str
    refused: bool = False

    def __str__(self) -> str:
        return printable(f"{'refused: ' if self.refused else ''}{self.what} {self.where}: {self.why}")


@dataclass(frozen=True, slots=True)
class LossReport(Sequence[FormatLoss]):
    """The losses of writing a model in a format, known before anything is written; empty where there are none.

    Attributes:
        format: the name of the format.
        losses: what is lost.
    """

    format: str
    losses: tuple[FormatLoss, ...] = ()

    @property
    def refused(self) -> tuple[FormatLoss, ...]:
        """The reasons why the model cannot be written at all."""
        return tuple(loss for loss in self.losses if loss.refused)

    def __getitem__(self, index: Any) -> Any:
        return self.losses[index]

    def __iter__(self) -> Iterator[FormatLoss]:
        return iter(self.losses)

    def __len__(self) -> int:
        return len(self.losses)

    def __str__(self) -> str:
        if not self.losses:
            return f"{self.format} holds all of this model"
        head = f"{self.format} cannot hold this model" if self.refused else f"{self.format} does not hold"
        return printable_lines([f"{head}:", *self._lines()])

    def _lines(self) -> Iterator[str]:
        """The losses; of many that differ by a name alone, the first few and how many there are."""
        alike: dict[tuple[str, str, str], list[FormatLoss]] = {}
        for loss in self.losses:
            kind = re.split("['\"]", loss.where, maxsplit=1)[0]
            alike.setdefault((loss.what, kind, loss.why), []).append(loss)
        for losses in alike.values():
            yield from (f"  {loss}" for loss in losses[:_SHOWN])
            if len(losses) > _SHOWN:
                yield f"  and {len(losses) - _SHOWN} more like the last"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """The result of reading: a model, further content of its file, and why it must not be edited, "" where it may."""

    model: onnx.ModelProto
    extra: Any = None
    read_only: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """The bytes of a file, and a sentence on the parts of the model that they lack, "" where they lack none."""

    data: bytes
    lost: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The statements of a format on a whole model, besides ONNX.

    Attributes:
        title: the title of the format.
        uninferred: why inference does not run on its models, "" where it does.
        pairs: {subject: text}.
        columns, rows: a table of texts, empty for most formats.
    """

    title: str
    uninferred: str = ""
    pairs: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()

    def __str__(self) -> str:
        pairs = [f"{name}: {text}" for name, text in self.pairs.items()]
        table = [row for row in (self.columns, *self.rows) if row]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        rows = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        return printable_lines([self.title, *filter(None, [self.uninferred]), *pairs, *rows])


Losses = Callable[[onnx.ModelProto, Any], Sequence[FormatLoss]]


Notes = Callable[[Any, Any], Mapping[str, str]]


def _no_notes(extra: Any, message: Any) -> Mapping[str, str]:
    return {}


def _nothing(extra: Any) -> tuple[Mapping[str, str], tuple[str, ...], Sequence[tuple[str, ...]]]:
    return {}, (), ()


def _no_losses(model: onnx.ModelProto, extra: Any) -> Sequence[FormatLoss]:
    return ()


@dataclass(frozen=True, slots=True)
class Format:
    """One format of files.

    Attributes:
        name: the name by which users ask for the format: "onnx", "json".
        title: the name of the format in messages.
        suffixes: suffixes of its files; none for a format that is written on request only.
        recognizes: a function that tells by the content whether a file is of this format; it must not raise.
        read: a function that makes a model of a file; raises LoadError with a sentence that begins with "it". None
            for a format that is not read.
        write: a function that makes bytes of a model and of the `extra` that `read` returned; raises SaveError, or
            ValueError with the reason. None for a format that is not written.
        losses: a function that lists the parts of a model that the format cannot hold.
        rank: formats are tried by rank, lowest first; a dialect has a lower rank than the format that it builds on.
        text: for a textual format, a function that returns the text of a model, without a check of what the text lacks.
        holds_external_data: whether its files may refer to data files; else all data is taken into the file.
        notes: a function that returns {title: text} on a NodeProto or an initializer for the inspector, made of the
            `extra` that `read` returned.
        convert: a function that converts a file to ONNX, given the types of its inputs, by a program that runs code of
            the file, so only where users trust the file; raises LoadError. None for most formats.
        table: a function that returns (pairs, columns, rows) on the whole model, made of the `extra` that `read`
            returned.
        uninferred: a sentence on why inference does not run on its models; "" where it does.
        instead: what to do instead, for the refusal to write a format that is only read.
        weights: whether its files hold weights without a graph, which `model.files.load_weights` takes.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    recognizes: Callable[[Content], bool]
    read: Callable[[Content], OpenedFile] | None = None
    write: Callable[[onnx.ModelProto, Any], Written] | None = None
    losses: Losses = field(default=_no_losses)
    rank: int = 50
    text: Callable[[onnx.ModelProto], str] | None = None
    holds_external_data: bool = True
    notes: Notes = field(default=_no_notes)
    convert: Callable[[Content, Sequence[Any]], bytes] | None = None
    table: Callable[[Any], tuple[Mapping[str, str], tuple[str, ...], Sequence[tuple[str, ...]]]] = field(
        default=_nothing
    )
    uninferred: str = ""
    instead: str = "save it as .onnx"
    weights: bool = False


def is_model(model: onnx.ModelProto) -> bool:
    """Tell a model from other bytes that happen to parse: nearly any short string is some protobuf message."""
    if not model.HasField("graph"):
        return False
    graph = model.graph
    return bool(
        model.ir_version > 0 or model.opset_import or graph.node or graph.input or graph.output or graph.initializer
    )
