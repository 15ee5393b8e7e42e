"""Arrays on the command line: inputs out of files, and outputs in a line or in JSON."""

from collections.abc import Sequence
from typing import Any

from onnxlab.errors import LoadError


def feeds_of(given: Sequence[str]) -> dict[str, Any]:
    """Arrays from `name=file.npy` and `file.npz` words.

    Raises:
        LoadError: a file is missing, is no array, or holds pickled objects.
    """
    import numpy as np

    from onnxlab.formats.arrays import read_arrays

    feeds: dict[str, Any] = {}
    for word in given:
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
