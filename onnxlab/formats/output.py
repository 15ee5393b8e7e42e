"""Files that are made of models, such as pictures and pages: written as a whole, over nothing but their own kind."""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from onnxlab.errors import SaveError, SaveWarning
from onnxlab.formats import identify, registry
from onnxlab.formats.atomic import Replacement, left_behind, other_names, real_target
from onnxlab.formats.base.format import Content
from onnxlab.formats.kinds import HEAD, FileKind
from onnxlab.formats.paths import PathProblem, absolute


def check(path: Any, kind: FileKind, inputs: Iterable[Path | None] = ()) -> Path:
    """The file that writing to `path` replaces.

    Args:
        path: the path to write to, as a user gives it.
        kind: the kind of the file that is about to be written.
        inputs: files that it is made from, which must not be replaced, also under other names or by links.

    Raises:
        SaveError: the suffix is of another kind, one of the inputs or a file of another kind is at the path, or the
            path cannot be written to.
    """
    with _in_words(path):
        chosen = absolute(path)
        suffix = chosen.suffix.lower()
        if suffix and suffix not in kind.suffixes:
            suffixes = " or ".join(kind.suffixes)
            raise SaveError(f"cannot write to {chosen}: this is {kind.name}, whose name ends in {suffixes}")
        return _checked(chosen, kind.fits, kind.name, inputs)


def check_model(path: Any, inputs: Iterable[Path | None] = ()) -> Path:
    """The file that writing a model to `path` replaces, where its name may be of any format.

    Args:
        path: the path to write to, as a user gives it.
        inputs: files that the model is made from, which must not be replaced, also under other names or by links.

    Raises:
        SaveError: one of the inputs or a file that is no model is at the path, or the path cannot be written to.
    """
    with _in_words(path):
        return _checked(absolute(path), _begins_a_model, "a model", inputs)


def _checked(chosen: Path, fits: Callable[[bytes], bool], name: str, inputs: Iterable[Path | None]) -> Path:
    """The path that is replaced; raises SaveError where it is one of the inputs, or a file of another kind."""
    target = real_target(chosen)
    for entry in inputs:
        if entry is not None and _is_same(entry, target):
            raise SaveError(f"cannot write to {chosen}: {entry.name} is read from there; give another name")
    if not _may_go(target, fits):
        reason = f"a file is there that is not {name}"
        raise SaveError(f"cannot write to {chosen}: {reason}; remove it, or give another name")
    return target


def _begins_a_model(head: bytes) -> bool:
    """Whether a file that begins so is in a format of models; for ONNX, if it has the fields of a ModelProto."""
    form = registry.by_content(Content.of(head))
    if form is None or form.name != "onnx":
        return form is not None
    return all(part.fits and part.state != "invalid" for part in identify.walk(head))


def write(
    path: Any, content: bytes | Callable[[IO[bytes]], object], kind: FileKind, inputs: Iterable[Path | None] = ()
) -> Path:
    """Write a file as a whole or not at all, where `check` accepts its path; returns its path.

    Args:
        content: the bytes, or a function that writes them to an open file.

    Raises:
        SaveError: see `check`; or the file cannot be written, and then the former file stays.
    """
    target = check(path, kind, inputs)
    with _in_words(path):
        links = other_names(target)
        with Replacement() as files:
            if isinstance(content, bytes):
                files.write(target, content)
            else:
                with files.open(target) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
                    content(file)
    if links:
        warnings.warn(left_behind(target.name, links), SaveWarning, stacklevel=3)
    return absolute(path)


@contextlib.contextmanager
def _in_words(path: Any) -> Iterator[None]:
    """Turn an error of the file system into a SaveError."""
    try:
        yield
    except SaveError:
        raise
    except (PathProblem, OSError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise SaveError(f"cannot write to {str(path)!r:.1000}: {why}; nothing was changed") from error


def _may_go(target: Path, fits: Callable[[bytes], bool]) -> bool:
    """Whether a file may be replaced: its beginning fits, it is empty, or there is none."""
    with contextlib.suppress(FileNotFoundError), target.open("rb") as file:
        head = file.read(HEAD)
        return not head or fits(head)
    return True


def _is_same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return path.samefile(other)
    return False
