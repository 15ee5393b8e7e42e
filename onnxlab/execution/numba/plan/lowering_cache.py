"""Dependency-tracked memo of lowering: a later plan lowers again only the steps whose inputs an edit touched.

A step is a node, or several that are one together. While it is lowered, its `Tape` notes what it asked of the binder
(values by name, how many read them, what leaves the region …), what it said, its records and the memory that it
asked for. A later plan takes all that over where the step is the same and everything that it asked has the same
answer: the same object. So that what follows a step that was lowered again may be taken over too, the memory that it
asks for is what it got before, where size and layout are those of before, and what it says is replaced by what it said
before, where that is alike.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np

from onnxlab.execution.numba.plan.elementwise_chains import Chain
from onnxlab.execution.numba.plan.pieces import Piece
from onnxlab.execution.numba.plan.quantized_view import QuantizedView
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Key

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
_COMPARED = 1 << 16
"""Bytes of arrays whose elements are compared."""


@dataclass(slots=True, eq=False)
class Tape:
    """The reads and effects of one step of lowering.

    Attributes:
        step: what it is of.
        piece: its records.
        asked, said: by the number of a table and a key in it.
        packed, sources: what `packing.Packed` remembers of it.
        lasting: whether it depends on nothing but what it asked.
    """

    step: object
    piece: Piece
    asked: dict[tuple[int, Any], Any] = field(default_factory=dict)
    said: dict[tuple[int, Any], Any] = field(default_factory=dict)
    packed: dict[Key, View] = field(default_factory=dict)
    sources: dict[int, Array] = field(default_factory=dict)
    lasting: bool = True
    _flat: tuple[_Flat, _Flat] | None = None

    def flat(self) -> tuple[_Flat, _Flat]:
        """Reads and effects as flat tuples, made when first asked for: for loops that run in C."""
        found = self._flat
        if found is None or (len(found[0][0]), len(found[1][0])) != (len(self.asked), len(self.said)):
            found = self._flat = _flat(self.asked), _flat(self.said)
        return found


_Flat: TypeAlias = tuple[tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]
"""Numbers of tables, keys in them, values."""


def _flat(items: Mapping[tuple[int, Any], Any]) -> _Flat:
    return tuple([number for number, _ in items]), tuple([key for _, key in items]), tuple(items.values())


class Table(dict[K, V], Generic[K, V]):
    """A dict of the binder's, whose every use by its keys is noted on the tape of the step that is being lowered."""

    def __init__(self, tapes: Tapes, items: Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(items)
        self._tapes = tapes
        self._number = tapes.number(self)

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """The value of a key, noted on the tape as one that was read."""
        found = dict.get(self, key)
        tape, place = self._tapes.tape, (self._number, key)
        if place not in tape.said:
            tape.asked.setdefault(place, found)
        return default if found is None else found

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __setitem__(self, key: K, value: V) -> None:
        self._tapes.tape.said[self._number, key] = value
        dict.__setitem__(self, key, value)


class Tapes:
    """The tapes of a plan that is being made, and those of the one before it.

    Attributes:
        tape: of the step that is being lowered.
        made: {name of a step: its tape}.
    """

    def __init__(self, before: Mapping[object, Tape]) -> None:
        self._before = dict(before)
        self._tables: list[Table[Any, Any]] = []
        self.made: dict[object, Tape] = {}
        self.tape = Tape(None, Piece())

    def close(self) -> None:
        """The plan is made: the tables, which refer to this, are asked no more."""
        self._tables.clear()

    def number(self, table: Table[Any, Any]) -> int:
        """Enter a table; its number, which depends on the order of these calls alone."""
        self._tables.append(table)
        return len(self._tables) - 1

    def begin(self, name: object, step: object) -> Tape | None:
        """Begin a step; the tape of before that may be taken over as it is, None where there is none."""
        before, tables, set_item = self._before.get(name), self._tables, dict.__setitem__
        if before is not None and before.lasting and before.step == step and self._holds(before):
            self.tape = self.made[name] = self._before.pop(name)
            numbers, keys, values = before.flat()[1]
            for number, key, value in zip(numbers, keys, values, strict=True):
                set_item(tables[number], key, value)
            return before
        self.tape = self.made[name] = Tape(step, Piece(before.piece.views if before is not None else ()))
        return None

    def _holds(self, tape: Tape) -> bool:
        numbers, keys, answers = tape.flat()[0]
        found = map(dict.get, map(self._tables.__getitem__, numbers), keys)
        return all(map(is_, found, answers))

    def end(self, name: object) -> None:
        """End a step that was lowered: what it said becomes what it said before, where that is alike."""
        before = self._before.pop(name, None)
        if before is None:
            return
        for place, value in self.tape.said.items():
            known = before.said.get(place)
            if known is not None and known is not value and alike(known, value):
                self.tape.said[place] = known
                dict.__setitem__(self._tables[place[0]], place[1], known)


def alike(one: Any, other: Any) -> bool:
    """Whether one value may stand for another in all that follows."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, View):
        return one.buffer is other.buffer and _of_view(one) == _of_view(other)
    if isinstance(one, Chain):
        same = (one.operation, one.shape, one.truth, one.whole) == (
            other.operation, other.shape, other.truth, other.whole)  # fmt: skip
        return same and len(one.operands) == len(other.operands) and all(map(alike, one.operands, other.operands))
    if isinstance(one, QuantizedView):
        return all(alike(getattr(one, name), getattr(other, name)) for name in ("value", "zero", "scale"))
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, np.ndarray):
        if (one.shape, one.dtype) != (other.shape, other.dtype) or one.nbytes > _COMPARED or one.dtype.hasobject:
            return False
        return bool(one.tobytes() == other.tobytes())
    return isinstance(one, (int, str, tuple)) and bool(one == other)


def _of_view(view: View) -> tuple[Any, ...]:
    return view.offset, view.shape, view.strides, view.dtype
