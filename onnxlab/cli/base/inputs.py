"""Inputs of commands: models out of files or standard input, arrays, sizes and lists of names."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onnxlab.cli.base.answers import STDOUT
from onnxlab.cli.base.exits import UsageError
from onnxlab.errors import LoadError

if TYPE_CHECKING:
    from onnxlab.model import Model

Number = TypeVar("Number", int, float)

_COMMA: Final = re.compile(r"(?<!\\),")
_SIZE: Final = re.compile(r"\d{1,20}")  # 20 digits are more than an int64 has


def open_model(options: argparse.Namespace, path: str | None = None) -> "Model":
    """The model that a command is about, out of a file or, for "-", of standard input.

    Raises:
        LoadError: the file is missing, or is no model.
    """
    from onnxlab.model import load

    path = options.model if path is None else path
    source = sys.stdin.buffer.read() if path == STDOUT else path
    if not source:
        raise LoadError("there is no model on standard input" if path == STDOUT else "the path of a model is empty")
    if isinstance(source, str) and "=" in source and not Path(source).exists():
        raise UsageError(f"{source!r} is no file: the model comes first, as in onnxlab {options.verb} MODEL {source}")
    return load(source, trust=getattr(options, "trust", False), inputs=getattr(options, "input", ()))


def open_two(options: argparse.Namespace) -> "tuple[Model | Path, Model | Path]":
    """Two models, of which one may come from standard input; a folder stays a path."""
    refuse_two_pipes(options.a, options.b)
    first, second = (
        Path(path) if Path(path).is_dir() else open_model(options, path) for path in (options.a, options.b)
    )
    return first, second


def refuse_two_pipes(first: str, second: str) -> None:
    """Raise UsageError where two models would both come from standard input."""
    if first == second == STDOUT:
        raise UsageError("standard input holds one model: only one of the two can be -")


def feeds_of(words: Sequence[str], model: "Model | Path") -> dict[str, Any]:
    """Arrays from `name=file.npy` and `file.npz` words, bit patterns in the types of a model's inputs.

    Raises:
        LoadError: a file is missing, is no array, or holds pickled objects.
    """
    import numpy as np

    from onnxlab.formats.arrays import read_arrays, with_type

    feeds: dict[str, Any] = {}
    for word in words:
        name, path = _named_file(word)
        file_name = Path(path)
        if file_name.exists() and not file_name.is_file():  # a pipe would wait, and a device has no end
            raise LoadError(
                f"cannot read the inputs {word!r}: it is no regular file; give name=array.npy or arrays.npz"
            )
        try:
            with file_name.open("rb") as file:
                read = read_arrays(file, word)
        except FileNotFoundError:
            raise LoadError(
                f"cannot read the inputs {word!r}: there is no file {path!r}; give arrays in files, "
                "as name=array.npy or arrays.npz"
            ) from None
        except (LoadError, OSError, ValueError) as error:
            raise LoadError(f"cannot read the inputs {word!r}: {error}; give name=array.npy or arrays.npz") from None
        if isinstance(read, np.ndarray):
            if not name:
                raise LoadError(f"{word!r} is one array: say which input it is for, as in name={word}")
            feeds[name] = read
        else:
            feeds.update(read)
    types = {} if isinstance(model, Path) else {value.name: model.fact(value.id).dtype for value in model.inputs}
    return {name: with_type(array, types.get(name)) for name, array in feeds.items()}


def dims_of(words: Sequence[str]) -> dict[str, int]:
    """Sizes from `symbol=size` words.

    Raises:
        UsageError: a word is no such pair.
    """
    dims = {}
    for word in words:
        name, separator, size = word.rpartition("=")
        if not separator or not _SIZE.fullmatch(size):
            raise UsageError(f"{word!r} gives no size: write symbol=size, as in batch=8")
        dims[name] = int(size)
    return dims


def names_of(words: str | None) -> list[str] | None:
    r"""A list out of comma-separated names, None without any; `\,` is a comma in a name."""
    return [name.replace("\\,", ",") for name in _COMMA.split(words)] if words else None


def files_of(words: Sequence[str]) -> list[Path]:
    """The files that words of inputs name."""
    return [Path(_named_file(word)[1]) for word in words]


def _named_file(word: str) -> tuple[str, str]:
    """Name and path of an input: they stand before and behind the last = that a file follows; a name may be absent."""
    places = [at for at, character in enumerate(word) if character == "="]
    splits = ((word[:at], word[at + 1 :]) for at in reversed(places))
    name, _, path = word.rpartition("=")
    return next((split for split in chain(splits, [("", word)]) if exists(split[1])), (name, path))


def bytes_of(word: str) -> int:
    """A number of bytes: 500000, 512MB, 2GiB.

    Raises:
        argparse.ArgumentTypeError: the word is no number of bytes.
    """
    from onnxlab.limits import parse_bytes

    try:
        return parse_bytes(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole(word: str) -> int:
    """A whole number.

    Raises:
        argparse.ArgumentTypeError: the word is none.
    """
    return _read(int, word, "whole number")


def number(word: str) -> float:
    """A number; NaN is none: every comparison with it is false.

    Raises:
        argparse.ArgumentTypeError: the word is none.
    """
    result = _read(float, word, "number")
    if result != result:
        raise argparse.ArgumentTypeError(f"{word!r} is no number")
    return result


def _read(kind: Callable[[str], Number], word: str, expected: str) -> Number:
    try:
        return kind(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is no {expected}") from None


def seconds_of(word: str) -> float:
    """A number of seconds above 0.

    Raises:
        argparse.ArgumentTypeError: the word is no such number.
    """
    seconds = number(word)
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of seconds above 0")
    return seconds
