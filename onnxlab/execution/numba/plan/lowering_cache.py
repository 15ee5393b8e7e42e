"""Dependency-tracked memo of lowering: a later plan lowers again only the steps whose inputs an edit touched.

A step is a node, or several fused nodes. While a step is lowered, its `LoweringRecord` notes what the step reads from
the binder (values by name, their number of readers, which values leave the region …), what it writes, its records and
the memory that it asks for. A later plan reuses the `LoweringRecord` where the step is the same and everything that it
read is the same object.

When a step is lowered again, the steps after it can still be reused: it gets the same buffers as before where size and
layout are unchanged, and each value that it writes is replaced by the earlier object where both are alike.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np

from onnxlab.execution.numba.plan.builder import PlanPiece
from onnxlab.execution.numba.plan.elementwise_chains import Chain
from onnxlab.execution.numba.plan.quantized_view import QuantizedView
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Key

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
_COMPARED = 1 << 16  # bytes of arrays whose elements are compared


@dataclass(slots=True, eq=False)
class LoweringRecord:
    """The reads and effects of one step of lowering.

    Attributes:
        step: the step that was lowered.
        piece: the records of the step.
        reads, writes: {(number of a table, key): value}.
        packed, sources: what `weight_packing.Packed` remembers of the step.
        reusable: whether the step depends on nothing but its noted reads.
    """

    step: object
    piece: PlanPiece
    reads: dict[tuple[int, Any], Any] = field(default_factory=dict)
    writes: dict[tuple[int, Any], Any] = field(default_factory=dict)
    packed: dict[Key, View] = field(default_factory=dict)
    sources: dict[int, Array] = field(default_factory=dict)
    reusable: bool = True
    _flat: tuple[_Flat, _Flat] | None = None

    def flat(self) -> tuple[_Flat, _Flat]:
        """Reads and effects as flat tuples, made when first asked for: for loops that run in C."""
        flat = self._flat
        if flat is None or (len(flat[0][0]), len(flat[1][0])) != (len(self.reads), len(self.writes)):
            flat = self._flat = _flat(self.reads), _flat(self.writes)
        return flat


_Flat: TypeAlias = tuple[tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]  # numbers of tables, keys in them, values


def _flat(items: Mapping[tuple[int, Any], Any]) -> _Flat:
    return tuple([number for number, _ in items]), tuple([key for _, key in items]), tuple(items.values())


class TrackedDict(dict[K, V], Generic[K, V]):
    """A dict of the binder that notes each read and write on the record of the step that is being lowered."""

    def __init__(self, memo: LoweringMemo, items: Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(items)
        self._memo = memo
        self.number = memo.number(self)

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """The value of a key, noted as a read."""
        value = dict.get(self, key)
        record, place = self._memo.record, (self.number, key)
        if place not in record.writes:
            record.reads.setdefault(place, value)
        return default if value is None else value

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __setitem__(self, key: K, value: V) -> None:
        self._memo.record.writes[self.number, key] = value
        dict.__setitem__(self, key, value)


class LoweringMemo:
    """The records of a plan that is being made, and those of the one before it.

    Attributes:
        record: record of the step that is being lowered.
        made: {name of a step: its record}.
    """

    def __init__(self, before: Mapping[object, LoweringRecord]) -> None:
        self._before = dict(before)
        self._tables: list[TrackedDict[Any, Any]] = []
        self.made: dict[object, LoweringRecord] = {}
        self.record = LoweringRecord(None, PlanPiece())

    def close(self) -> None:
        """Drop the tables, which refer to this memo, once the plan is made."""
        self._tables.clear()

    def number(self, table: TrackedDict[Any, Any]) -> int:
        """Enter a table and return its number, which depends only on the order of these calls."""
        self._tables.append(table)
        return len(self._tables) - 1

    def begin(self, name: object, step: object) -> LoweringRecord | None:
        """Begin a step; returns the earlier record that can be reused as it is, None where there is none."""
        before, tables, set_item = self._before.get(name), self._tables, dict.__setitem__
        if before is not None and before.reusable and before.step == step and self._holds(before):
            self.record = self.made[name] = self._before.pop(name)
            numbers, keys, values = before.flat()[1]
            for number, key, value in zip(numbers, keys, values, strict=True):
                set_item(tables[number], key, value)
            return before
        self.record = self.made[name] = LoweringRecord(
            step, PlanPiece(before.piece.views if before is not None else ())
        )
        return None

    def _holds(self, record: LoweringRecord) -> bool:
        numbers, keys, answers = record.flat()[0]
        now = map(dict.get, map(self._tables.__getitem__, numbers), keys)
        return all(map(is_, now, answers))

    def end(self, name: object) -> None:
        """End a step that was lowered: values that it wrote give way to the earlier ones, where they are alike."""
        before = self._before.pop(name, None)
        if before is None:
            return
        for place, value in self.record.writes.items():
            known = before.writes.get(place)
            if known is not None and known is not value and alike(known, value):
                self.record.writes[place] = known
                dict.__setitem__(self._tables[place[0]], place[1], known)


def alike(value: Any, other: Any) -> bool:
    """Whether one value may replace another in all later steps."""
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    if isinstance(value, View):
        return value.buffer is other.buffer and _of_view(value) == _of_view(other)
    if isinstance(value, Chain):
        same = (value.operation, value.shape, value.truth, value.whole) == (
            other.operation, other.shape, other.truth, other.whole)  # fmt: skip
        return same and len(value.operands) == len(other.operands) and all(map(alike, value.operands, other.operands))
    if isinstance(value, QuantizedView):
        return all(alike(getattr(value, name), getattr(other, name)) for name in ("value", "zero", "scale"))
    if isinstance(value, float):
        return struct.pack("d", value) == struct.pack("d", other)
    if isinstance(value, np.ndarray):
        if (
            (value.shape, value.dtype) != (other.shape, other.dtype)
            or value.nbytes > _COMPARED
            or value.dtype.hasobject
        ):
            return False
        return bool(value.tobytes() == other.tobytes())
    return isinstance(value, (int, str, tuple)) and bool(value == other)


def _of_view(view: View) -> tuple[Any, ...]:
    return view.offset, view.shape, view.strides, view.dtype
