"""Known values: small tensors whose elements are known, symbolic, or unknown one by one.

Known values let Shape → Gather → Concat → Reshape chains resolve during inference. An element is an int, float or
bool, an `Expr` (exact, also in float tensors, where its coefficients may be fractions), or None where nothing
is known.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from onnxlab.printable import printable
from onnxlab.shapes.expressions import Expr
from onnxlab.shapes.interning import Interned

Element: TypeAlias = "int | float | bool | Expr | None"

MAX_ELEMENTS: Final = 512
"""Larger tensors are not tracked: shapes and index lists are small, and hostile models could double sizes per node."""

_KINDS: Final = {"i": int, "u": int, "b": bool, "f": float}


class KnownValue:
    """A tensor of at most MAX_ELEMENTS elements, interned: equal values, compared bit by bit, are one object.

    Attributes:
        kind: "i" for integers, "f" for floats, "b" for booleans.
        shape: its dims, all ints.
        items: the elements in row-major order.
        complete: whether every element is a number.
    """

    __slots__ = ("__weakref__", "complete", "items", "kind", "shape")

    kind: str
    shape: tuple[int, ...]
    items: tuple[Element, ...]
    complete: bool

    def __new__(cls, kind: str, shape: tuple[int, ...], items: tuple[Element, ...]) -> KnownValue:
        """Raises ValueError where the number of items does not fit the shape."""
        key = (kind, shape, items if kind != "f" else _bits(items))
        ref = _interned.get(key)
        known_value: KnownValue = (ref and ref()) or _interned.keep(key, _value(kind, shape, items))
        return known_value

    def __reduce__(self) -> Any:
        return KnownValue, (self.kind, self.shape, self.items)

    def __repr__(self) -> str:
        return f"<KnownValue {self}>"

    def __str__(self) -> str:
        shown = ", ".join("?" if item is None else str(item) for item in self.items[:8])
        more = ", …" if len(self.items) > 8 else ""
        return printable(f"[{shown}{more}]" if self.shape else shown)

    def array(self) -> np.ndarray[Any, Any] | None:
        """The elements in int64, float64 or bool when all are numbers, else None."""
        if not self.complete:
            return None
        return np.array(self.items, dtype={"i": np.int64, "f": np.float64, "b": np.bool_}[self.kind]).reshape(
            self.shape
        )

    def objects(self) -> np.ndarray[Any, Any]:
        """The elements as an object array of the value's shape, for indexing, slicing and concatenation."""
        array = np.empty(len(self.items), dtype=object)
        array[:] = self.items
        return array.reshape(self.shape)


_interned = Interned()


_NO_NUMBERS = frozenset((type(None), Expr))


def _value(kind: str, shape: tuple[int, ...], items: tuple[Element, ...]) -> KnownValue:
    if len(items) != prod(shape):
        raise ValueError(f"{len(items)} items do not fill shape {shape}")
    known_value = object.__new__(KnownValue)
    known_value.kind = kind
    known_value.shape = shape
    known_value.items = items
    known_value.complete = _NO_NUMBERS.isdisjoint(map(type, items))
    return known_value


def _bits(items: tuple[Element, ...]) -> object:
    """Floats by their bits, so that a NaN equals itself and -0.0 is not 0.0; the rest as it is."""
    try:
        return struct.pack(f"{len(items)}d", *items)
    except struct.error:  # some are expressions, or not known
        return tuple([struct.pack("d", item) if isinstance(item, (int, float)) else item for item in items])


def known(array: Any) -> KnownValue | None:
    """The known value of a NumPy array (object arrays hold elements); None for strings and large ones."""
    array = np.asarray(array)
    if array.size > MAX_ELEMENTS or not is_addressable(array.shape):
        return None
    if array.dtype == object:
        return from_items(array.shape, array.ravel().tolist())
    kind = array.dtype.kind
    if kind == "V" or kind not in _KINDS:  # ml_dtypes' types have kind "V": their values never steer shapes
        return None
    return KnownValue("i" if kind == "u" else kind, array.shape, tuple(array.ravel().tolist()))


def is_addressable(shape: tuple[int, ...]) -> bool:
    """Whether there are arrays of this shape: no dim is below 0, and NumPy counts an empty one without its zeros."""
    least = min(shape) if shape else 1
    return least > 0 or (least == 0 and prod(dim for dim in shape if dim) < 1 << 48)


def from_items(shape: tuple[int, ...], items: Sequence[Element], kind: str = "i") -> KnownValue | None:
    """A known value of these elements; None where there are too many or every one is unknown."""
    if len(items) > MAX_ELEMENTS or not is_addressable(shape) or (items and all(item is None for item in items)):
        return None
    return KnownValue(kind, shape, tuple(items))
