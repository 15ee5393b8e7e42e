"""Long lists in attributes as arrays: a forest has ten million entries, which as Python objects take gigabytes.

While the result of decoding an attribute is still referenced, decoding the attribute again gives the same object:
inference, a run and a view decode a list only once.
"""

import mmap
import reprlib
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np
import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from onnxlab.forking import fork_safe
from onnxlab.garbage_collection import give_back
from onnxlab.graph.protos.name_bytes import varint
from onnxlab.limits import claim

LONG = 4096
"""Most items of an attribute that is decoded to a plain list."""

_KIND = onnx.AttributeProto
_FIELDS = {_KIND.FLOATS: "floats", _KIND.INTS: "ints", _KIND.STRINGS: "strings"}
LISTS = frozenset(_FIELDS)
"""Types of attributes that are lists of numbers or strings."""
_TYPES: dict[str, Any] = {kind: number for number, kind in _FIELDS.items()}
_DTYPES: dict[str, Any] = {"floats": np.float32, "ints": np.int64}
_DECODED = {"floats": 4, "ints": 8, "strings": 64}
"""Bytes of an item of a decoded array; for strings, those of a short one, most of which is Python's object."""
_SHOWN = 3
_CHUNK = 1 << 16
_HUGE = 1 << 18
"""Items from which on returning memory to the system is worth its few milliseconds."""
_lock = fork_safe(threading.RLock())


class Items:
    """The items of a long list of an attribute: read in its message, and kept apart once that has other items.

    Attributes:
        attribute: the message that holds the items, None once the message has other items.
        kind: "floats", "ints" or "strings".
        name, count: name of the attribute, number of items.
    """

    __slots__ = ("__weakref__", "_stored", "attribute", "count", "kind", "name", "view")

    def __init__(self, attribute: onnx.AttributeProto, kind: str) -> None:
        self.attribute: onnx.AttributeProto | None = attribute
        self.kind = kind
        self.name = attribute.name
        self.count = len(getattr(attribute, kind))
        self.view: ref[LongList] | None = None
        self._stored: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes that are kept apart; 0 while the items are in their message."""
        stored = self._stored
        return 0 if stored is None else stored.nbytes

    def read(self, index: Any) -> Any:
        """An item or a list of them, strings as bytes."""
        with _lock:  # no other thread may give the message other items meanwhile
            if self.attribute is not None:
                return getattr(self.attribute, self.kind)[index]
            stored = self._stored[index]
            return stored.tolist() if isinstance(stored, np.ndarray | np.generic) else stored

    def array(self) -> "np.ndarray[Any, Any]":
        """All items: float32, int64 or, for strings, object."""
        with _lock:
            stored = self._stored if self.attribute is None else getattr(self.attribute, self.kind)
            claim(self.count * _DECODED[self.kind], f"the list of attribute {self.name!r:.200}, decoded,")
            if self.kind != "strings":
                return np.asarray(stored, _DTYPES[self.kind])
        stored = texts(stored[:])
        array = np.empty(self.count, object)
        array[:] = stored
        return array

    def let_go(self) -> None:
        """Keep the items in as few bytes as they take, since the message is about to get others."""
        with _lock:
            assert self.attribute is not None
            items = getattr(self.attribute, self.kind)
            is_text = self.kind == "strings"
            self._stored = _Strings(items) if is_text else _compact(np.asarray(items, _DTYPES[self.kind]))
            _made.pop(id(self.attribute), None)
            self.attribute = None
            view = self.view() if self.view is not None else None
            if view is not None:
                view.forget()  # decoded again if it is read again

    def come_back(self, attribute: onnx.AttributeProto) -> None:
        """Read them in a message again, which has just got them."""
        if self.attribute is None:
            self.attribute, self._stored = attribute, None
            _made[id(attribute)] = self

    def message(self) -> onnx.AttributeProto:
        """An attribute with these items, not to be changed: a new one where its own has others by now."""
        with _lock:
            if self.attribute is not None:
                return self.attribute
            attribute = onnx.AttributeProto(name=self.name, type=_TYPES[self.kind])
            if self.kind == "floats":
                attribute.MergeFromString(packed(self._stored))
            elif self.kind == "strings":
                attribute.strings[:] = self._stored[:]
            else:
                attribute.ints.extend(self._stored.tolist())
            return attribute


class LongList(Sequence[Any]):
    """The items of an attribute, to be read as those of a list, and by NumPy as a read-only array of its own.

    Items are int, float or str (bytes where they are no UTF-8), and decoded on first access. A LongList equals any
    list, tuple or array with equal items.
    """

    __slots__ = ("__weakref__", "_array", "items")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, items: Items) -> None:
        self.items = items
        self._array: Any = None

    @property
    def array(self) -> "np.ndarray[Any, Any]":
        """All items, read-only: float32, int64 or, for strings, object."""
        array = self._array
        if array is None:
            self._array = array = self.items.array().view()
            array.flags.writeable = False
        return array  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Drop the array, which is made again when it is asked for."""
        self._array = None

    def __len__(self) -> int:
        return self.items.count

    def __getitem__(self, index: Any) -> Any:
        items = self.items.read(index)
        if self.items.kind == "strings":
            return texts(items) if isinstance(index, slice) else text(items)
        return items

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _CHUNK):
            yield from self[start : start + _CHUNK]

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
            return bool(np.array_equal(self.array, np.asarray(other, object if self.items.kind == "strings" else None)))
        except ValueError:  # lists of different lengths within
            return False

    def __repr__(self) -> str:
        """The first items, and how many there are: never all of them."""
        first = ", ".join(map(reprlib.repr, self[:_SHOWN]))
        return f"[{first}, … {len(self):,} items]"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class _Strings:
    """Many strings of which few are different: their places in a table."""

    def __init__(self, items: Sequence[bytes]) -> None:
        known: dict[bytes, int] = {}
        places = np.empty(len(items), np.int64)
        for start in range(0, len(items), _CHUNK):  # reading an item creates an object: in chunks, few live at a time
            piece = items[start : start + _CHUNK]
            places[start : start + _CHUNK] = [known.setdefault(item, len(known)) for item in piece]
        self._places = _compact(places)
        self._table = list(known)
        self.nbytes = self._places.nbytes + sum(map(sys.getsizeof, known))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(map(self._table.__getitem__, self._places[index].tolist()))
        return self._table[self._places[index]]


def _compact(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """A copy in memory of its own, which goes back to the system with it; integers as narrow as they can be."""
    dtype = array.dtype
    if dtype.kind == "i" and array.size:
        narrow = np.promote_types(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
        dtype = dtype if narrow.kind == "f" else narrow  # "f": negative numbers beside large uint64
    compact = np.frombuffer(mmap.mmap(-1, max(1, array.size * dtype.itemsize)), dtype, array.size)
    compact[:] = array
    return compact


def overwrite(old: onnx.AttributeProto, new: "onnx.AttributeProto | Items") -> Items | None:
    """Give an attribute the long list of another where it stands, and return what it held.

    protobuf frees no memory before the whole model is freed: a new message would take more memory with each edit, undo
    and redo. Does nothing and returns None where an attribute has no long list, or where the two differ in
    more than the list.
    """
    held, kind = items_of(old), new.kind if isinstance(new, Items) else _kind_of_long(new)
    if held is None or held is new or held.kind != kind or not _is_bare(old):
        return None
    source = new.message() if isinstance(new, Items) else new
    if not _is_bare(source) or source.name != old.name:
        return None
    held.let_go()
    with _lock:
        _replace_items(getattr(old, kind), getattr(source, kind), kind == "strings")
        if isinstance(new, Items):
            new.come_back(old)
    if held.count > _HUGE:
        give_back()
    return held


def serialized(attribute: onnx.AttributeProto) -> bytes:
    """An attribute as bytes; floats in one piece, which takes less memory and time, where there are many."""
    if _kind_of_long(attribute) != "floats" or not _is_bare(attribute):
        return attribute.SerializePartialToString()
    head = onnx.AttributeProto(name=attribute.name, type=attribute.type).SerializePartialToString()
    return packed(np.asarray(attribute.floats, np.float32), head)


def _replace_items(field: Any, source: Any, are_strings: bool) -> None:
    if not are_strings:
        del field[:]
        field.MergeFrom(source)
        return
    common = min(len(field), len(source))
    for start in range(0, common, _CHUNK):  # setting a string takes memory that protobuf never frees
        after = source[start : start + _CHUNK]
        for place, before in enumerate(field[start : min(start + _CHUNK, common)]):
            if before != after[place]:
                field[start + place] = after[place]
    del field[common:]
    if len(source) > common:
        field[common:] = source[common:]


def _is_bare(attribute: onnx.AttributeProto) -> bool:
    """Whether an attribute has a name, a type and a list, and nothing else."""
    return len(attribute.ListFields()) == 3 and not len(UnknownFieldSet(attribute))


def _kind_of_long(attribute: onnx.AttributeProto) -> str:
    """The field of an attribute's long list: "floats", "ints" or "strings"; "" where it has none."""
    kind = _FIELDS.get(attribute.type, "")
    return kind if kind and len(getattr(attribute, kind)) > LONG and not attribute.ref_attr_name else ""


def items_of(attribute: onnx.AttributeProto) -> Items | None:
    """The items of an attribute with a long list; the same object for as long as it is referenced."""
    if not (kind := _kind_of_long(attribute)):
        return None
    items = _made.get(id(attribute))
    if items is None or items.attribute is not attribute or items.kind != kind:
        items = _made[id(attribute)] = Items(attribute, kind)
    return items


def long_list(attribute: onnx.AttributeProto) -> LongList | None:
    """The items of an attribute as a LongList; None where it holds no list, or not a long one."""
    items = items_of(attribute)
    if items is None:
        return None
    view = items.view() if items.view is not None else None
    if view is None:
        view = LongList(items)
        items.view = ref(view)
    return view


_made: WeakValueDictionary[int, Items] = WeakValueDictionary()
"""Items by the id of their message, which lives at least as long as its Items."""


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
    """An attribute with no more than the first item of a long list, for callers that need only its type."""
    if not (kind := _kind_of_long(attribute)):
        return attribute
    short = onnx.AttributeProto(name=attribute.name, type=attribute.type)
    getattr(short, kind).append(getattr(attribute, kind)[0])
    return short


def packed(array: "np.ndarray[Any, Any]", before: bytes = b"") -> bytes:
    """The field `floats` of an attribute, serialized in one piece, which protobuf takes for any list of numbers."""
    data = np.ascontiguousarray(array, "<f4")
    number: int = onnx.AttributeProto.DESCRIPTOR.fields_by_name["floats"].number
    return b"".join((before, varint(number << 3 | 2), varint(data.nbytes), data.data))
