"""Values on the command line: inputs out of files, and answers in lines or in JSON."""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from onnxlab.errors import LoadError
from onnxlab.printable import printable


def feeds_of(words: Sequence[str]) -> dict[str, Any]:
    """Arrays from `name=file.npy` and `file.npz` words.

    Raises:
        LoadError: a file is missing, is no array, or holds pickled objects.
    """
    import numpy as np

    from onnxlab.formats.arrays import read_arrays

    feeds: dict[str, Any] = {}
    for word in words:
        name, separator, path = word.rpartition("=")
        try:
            with open(path if separator else word, "rb") as file:
                read = read_arrays(file, word)
        except (LoadError, OSError, ValueError) as error:
            raise LoadError(f"cannot read the inputs {word!r}: {error}; give name=array.npy or arrays.npz") from None
        if isinstance(read, np.ndarray):
            if not separator:
                raise LoadError(f"{word!r} is one array: say which input it is for, as in name={word}")
            feeds[name] = read
        else:
            feeds.update(read)
    return feeds


def row(item: Any) -> dict[str, Any]:
    """Statistics of an array for JSON."""
    from onnxlab.notebook.protocol.messages import number

    names = ("minimum", "maximum", "mean", "std", "nan", "inf", "zeros")
    numbers = {name: number(getattr(item, name)) for name in names}
    return {"dtype": item.dtype, "shape": list(item.shape), "count": item.count, **numbers}


def line(name: str, item: Any) -> str:
    """Statistics of an array in a line."""
    shape = ",".join(str(dim) for dim in item.shape)
    parts = [f"{name}: {item.dtype}[{shape}]"]
    if item.minimum is not None:
        parts.append(f"min {item.minimum:.6g} max {item.maximum:.6g}")
    if item.mean is not None:
        parts.append(f"mean {item.mean:.6g} std {item.std:.6g}")
    if item.nan or item.inf:
        parts.append(f"{item.nan} NaN {item.inf} infinite")
    return "  ".join(parts)


def answer(options: argparse.Namespace, rows: Callable[[], Any], words: Callable[[], str]) -> None:
    """Print an answer: as JSON where that is asked for, else in words."""
    print(json_text(rows()) if options.json else words())


def json_text(answer: Any) -> str:
    """JSON in UTF-8, but for what a terminal would obey or not show."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
    if printable(text) == text:
        return text
    return "".join(char if printable(char) == char else json.dumps(char)[1:-1] for char in text)
