"""Outputs of commands: models and reports, whole or not at all, and over nothing but their own kind."""

import argparse
import io
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from onnxlab.cli.base.answers import STDOUT, deliver
from onnxlab.cli.base.exits import UsageError
from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.formats.kinds import FileKind
    from onnxlab.model import Model


def refuse_both(options: argparse.Namespace) -> None:
    """Raise UsageError where JSON and a file would both go to standard output."""
    if options.json and getattr(options, "output", None) == STDOUT:
        raise UsageError("--json and a file cannot both go to standard output: name a file with -o")


def check_model(path: str | None, inputs: Iterable[Path | None]) -> None:
    """Say before anything is done that a model cannot go to a path.

    Raises:
        SaveError: the path is an input, a file that is no model, or no place to write to.
    """
    from onnxlab.formats import output

    if path is not None and path != STDOUT:
        output.check_model(path, inputs)


def save_model(
    model: "Model", path: str, inputs: Iterable[Path | None], form: str | None = None, external: bool | None = None
) -> None:
    """Write a model to a file, or for "-" to standard output, in a format or that of the name.

    Args:
        external: whether large weights go to a data file; None: they stay where they are.

    Raises:
        UsageError: a data file is wanted beside standard output.
    """
    if path != STDOUT:
        check_model(path, inputs)
        model.save(path, format=form, external_data=external)
        return
    if external:
        raise UsageError("standard output has no data file beside it: name a file, or leave --external-data away")
    from onnxlab.formats import external_data_copies

    with tempfile.TemporaryDirectory(prefix="onnxlab-") as folder:
        file = Path(folder) / "model"
        if external_data_copies.mentioned(model.proto):  # a piped model has no files beside it
            external = False
        model.save(file, format=form or "onnx", external_data=external)
        deliver(file.read_bytes())


def outcome(path: str | None, dry_run: bool = False) -> str:
    """The last line of an answer in words: where the model was written, or that it was not."""
    if dry_run:
        return "nothing was written, as --dry-run says"
    if path:
        return f"written to {'standard output' if path == STDOUT else printable(path)}"
    return "nothing was written; -o FILE writes it"


def write(
    path: str, content: bytes | Callable[[IO[bytes]], object], kind: "FileKind", inputs: Iterable[Path | None] = ()
) -> None:
    """Write what is made of a model to a file, or for "-" to standard output."""
    from onnxlab.formats import output

    if path != STDOUT:
        output.write(path, content, kind, inputs)
        return
    if not isinstance(content, bytes):
        file = io.BytesIO()
        content(file)
        content = file.getvalue()
    deliver(content)
