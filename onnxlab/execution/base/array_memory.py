"""Arrays that are kept: whether two are equal, what memory is behind them, and that nothing writes to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.ops.onnx.control.sequence import root

_GLANCE = (0, 1, 3)
_LITTLE = 1 << 13  # bytes that are compared at once
_MAPPED = (1 << 25) - (1 << 14)  # bytes of nearly the largest block from which glibc learns


@cache
def retain_freed() -> None:
    """Have the C library keep some megabytes of freed memory for the next values, instead of giving them back.

    Otherwise every run of a model that makes 50 MB of values has their pages mapped and cleared anew, which takes as
    long as computing them. glibc keeps twice the size of the largest block that it has unmapped, up to 64 MB.
    """
    with suppress(MemoryError):
        np.empty(_MAPPED, np.uint8)


def at_most(values: Collection[Any]) -> int:
    """Bytes of values as if no two of them shared a buffer: an upper bound that is faster than `buffers`."""
    sizes = [(value if value.base is None else root(value)).nbytes for value in values if type(value) is np.ndarray]
    others = (value for value in values if type(value) is not np.ndarray)
    return sum(sizes) + (0 if len(sizes) == len(values) else total(others))


def freeze(values: Iterable[Any]) -> None:
    """Make values read-only: they are kept and shared."""
    for value in values:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        elif isinstance(value, list):
            freeze(value)


SCALARS = frozenset((bool, int, float, str, bytes, type(None)))
"""Types of items that hold nothing more."""


def is_flat(value: Any) -> bool:
    """Whether a value is a list of maps of numbers or strings, as ZipMap makes them: no array stands behind it."""
    return (
        type(value) is list
        and {dict}.issuperset(map(type, value))
        and SCALARS.issuperset(map(type, chain.from_iterable(map(dict.values, value))))
    )


def buffers(values: Iterable[Any]) -> dict[int, int]:
    """{id: bytes} of the memory behind values, each buffer once."""
    sizes: dict[int, int] = {}
    for value in values:
        if isinstance(value, np.ndarray):
            value = root(value)
            sizes[id(value)] = value.nbytes
        elif isinstance(value, (list, dict)) and not is_flat(value):
            sizes.update(buffers(value if isinstance(value, list) else value.values()))
    return sizes


def nbytes(value: Any) -> int:
    """Bytes of a value, those of an array as if its buffer were not shared."""
    return value.nbytes if type(value) is np.ndarray else total((value,))


def total(values: Iterable[Any]) -> int:
    """Bytes of the memory behind values, each buffer counted once."""
    return sum(buffers(values).values())


def differs(old: Any, new: Any) -> bool:
    """Whether the first elements of two arrays show that they differ: most arrays that differ do so everywhere."""
    if type(old) is not np.ndarray or type(new) is not np.ndarray or old.size < 256 or new.size < 256:
        return False
    return any(  # 0.0 == -0.0, and NaN differs from itself
        a != b and (a == a or b == b) for a, b in ((old.item(place), new.item(place)) for place in _GLANCE)
    )


def same(old: Any, new: Any) -> bool:
    """Whether two values are equal bit by bit (NaN to NaN); sequences item by item."""
    if old is new:
        return True
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        is_alike = old.dtype == new.dtype and old.shape == new.shape
        return is_alike and (bool((old == new).all()) if old.dtype.char == "O" else _bits_equal(old, new))
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    return old == new if isinstance(old, dict) and isinstance(new, dict) else old is None and new is None


def _bits_equal(old: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> bool:
    """Compare elements as integers of the same size: a NaN equals itself, and integers compare faster than floats."""
    if old.nbytes <= _LITTLE:
        return old.tobytes() == new.tobytes()
    if differs(old, new) or (old.ndim and differs(old[len(old) // 2 :], new[len(new) // 2 :])):
        return False
    if old.itemsize in (1, 2, 4, 8):
        return bool((old.view(f"u{old.itemsize}") == new.view(f"u{new.itemsize}")).all())
    return old.tobytes() == new.tobytes()


def copied(value: Any) -> Any:
    """An array or a map as a caller may hold it, of its own memory; of a sequence, item by item.

    Raises:
        LimitError: there is no memory for it: a broadcast view of a few bytes may have the size of terabytes.
    """
    if isinstance(value, np.ndarray):
        try:
            return value.copy()
        except MemoryError as error:
            text = f"{value.dtype}[{','.join(map(str, value.shape))}]"
            raise LimitError(f"{text} has {value.nbytes} bytes, too many to be copied") from error
    return (
        [*map(dict.copy if is_flat(value) else copied, value)] if isinstance(value, list)
        else dict(value) if isinstance(value, dict) else value
    )  # fmt: skip


def own(value: Any, shown: set[int]) -> Any:
    """A value, or a copy where its memory may be shared; `shown` are the ids of feeds and earlier results."""
    writable = type(value) is np.ndarray and value.base is None and value.flags.writeable and id(value) not in shown
    shown.add(id(value))
    return value if writable else copied(value)
