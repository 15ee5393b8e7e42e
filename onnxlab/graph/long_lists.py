"""Long lists in attributes as arrays: a forest has ten million entries, which as Python objects take gigabytes.

Whoever decodes an attribute while somebody still holds what was made of it before gets the same object: inference, a
run and a view decode a list once between them.
"""

import reprlib
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import onnx

LONG = 4096
"""The most items of a list that is no LongList."""

_KIND = onnx.AttributeProto
_FIELDS = {_KIND.FLOATS: "floats", _KIND.INTS: "ints", _KIND.STRINGS: "strings"}
_DTYPES: dict[str, Any] = {"floats": np.float32, "ints": np.int64}
_SHOWN = 3
_CHUNK = 1 << 16


class LongList(Sequence[Any]):
    """The items of an attribute, to be read as those of a list, and by NumPy as a read-only array of its own.

    Items are int, float or str (bytes where they are no UTF-8). Nothing is decoded before it is asked for. Equal to any
    list, tuple or array with equal items.

    Attributes:
        attribute: the message; it is never changed, only replaced.
        kind: "floats", "ints" or "strings".
    """

    __slots__ = ("__weakref__", "_array", "_items", "attribute", "kind")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, attribute: onnx.AttributeProto, kind: str) -> None:
        self.attribute, self.kind = attribute, kind
        self._items = getattr(attribute, kind)
        self._array: Any = None

    @property
    def array(self) -> "np.ndarray[Any, Any]":
        """All items, read-only: float32, int64 or, for strings, object."""
        if self._array is None:
            if self.kind == "strings":
                made = np.empty(len(self._items), object)
                made[:] = texts(self._items)
            else:
                made = np.array(self._items, _DTYPES[self.kind])
            made.flags.writeable = False
            self._array = made
        return self._array  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._plain(self._items[index])
        return self._plain([self._items[index]])[0]

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self._items), _CHUNK):
            yield from self._plain(self._items[start : start + _CHUNK])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        array = self.array
        return array.astype(array.dtype if dtype is None else dtype, copy=bool(copy))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | bytes) or not isinstance(other, Sequence | np.ndarray):
            return NotImplemented
        if self is other:
            return True
        if len(self) != len(other):
            return False
        try:
            return bool(np.array_equal(self.array, np.asarray(other, object if self.kind == "strings" else None)))
        except ValueError:  # lists of different lengths within
            return False

    def __repr__(self) -> str:
        """The first items, and how many there are: never all of them."""
        first = ", ".join(map(reprlib.repr, self[:_SHOWN]))
        return f"[{first}, … {len(self):,} items]"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def _plain(self, items: Sequence[Any]) -> list[Any]:
        return texts(items) if self.kind == "strings" else list(items)


def long_list(attribute: onnx.AttributeProto) -> LongList | None:
    """The items of an attribute as a LongList; None where it holds no list, or not a long one."""
    kind = _FIELDS.get(attribute.type)
    if kind is None or attribute.ref_attr_name or len(getattr(attribute, kind)) <= LONG:
        return None
    made = _made.get(id(attribute))
    if made is None or made.attribute is not attribute or made.kind != kind:
        made = _made[id(attribute)] = LongList(attribute, kind)
    return made


_made: WeakValueDictionary[int, LongList] = WeakValueDictionary()
"""By the id of the message, which lives as long as what was made of it."""


def text(data: bytes) -> str | bytes:
    """Decode a string of the model; bytes that are not UTF-8 stay bytes, so that nothing is lost."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def texts(items: Sequence[bytes]) -> list[str | bytes]:
    """Decode many strings, of which few are different."""
    items = items[:]
    known = {item: text(item) for item in set(items)}
    return list(map(known.__getitem__, items))


def outline(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    """An attribute with no more than the first item of a long list, for whoever asks no more of it than its type."""
    if (found := long_list(attribute)) is None:
        return attribute
    short = onnx.AttributeProto(name=attribute.name, type=attribute.type)
    getattr(short, found.kind).append(getattr(attribute, found.kind)[0])
    return short
