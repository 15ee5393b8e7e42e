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
from dataclasses import dataclass, field, fields
from operator import is_
from typing import Any, Generic, TypeVar

import numpy as np

from onnxlab.execution.numba.plan.builder import PlanPiece
from onnxlab.execution.numba.plan.elementwise_chains import Chain, QuantizedView
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Key

K = TypeVar("K")
V = TypeVar("V")
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


class TrackedDict(Generic[K, V]):
    """A table of the binder's values that notes each read and write on the record of the step that is being lowered."""

    def __init__(self, memo: LoweringMemo, items: Iterable[tuple[K, V]] = ()) -> None:
        self._memo = memo
        self.number = memo.tables = memo.tables + 1  # the same for each plan: it depends on the order of these calls
        memo.values.update(((self.number, key), value) for key, value in items)

    def get(self, key: K) -> V | None:
        """The value of a key, noted as a read."""
        memo, place = self._memo, (self.number, key)
        value: V | None = memo.values.get(place)
        if place not in memo.record.writes:
            memo.record.reads.setdefault(place, value)
        return value

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: K, value: V) -> None:
        self._memo.record.writes[self.number, key] = self._memo.values[self.number, key] = value

    def has(self, key: K) -> bool:
        """Whether a key is there by now, which is not noted."""
        return (self.number, key) in self._memo.values


class LoweringMemo:
    """The records of a plan that is being made, and those of the one before it.

    Attributes:
        record: record of the step that is being lowered.
        made: {name of a step: its record}.
        values: {(number of a table, key): value} of all tables; `tables` is their number.
    """

    def __init__(self, before: Mapping[object, LoweringRecord]) -> None:
        self._before = dict(before)
        self.tables = 0
        self.values: dict[tuple[int, Any], Any] = {}
        self.made: dict[object, LoweringRecord] = {}
        self.record = LoweringRecord(None, PlanPiece())

    def begin(self, name: object, step: object) -> LoweringRecord | None:
        """Begin a step; returns the earlier record that can be reused as it is, None where there is none."""
        before = self._before.get(name)
        if before is not None and before.reusable and before.step == step:
            now = map(self.values.get, before.reads)
            if all(map(is_, now, before.reads.values())):
                self.record = self.made[name] = self._before.pop(name)
                self.values.update(before.writes)
                return before
        views = () if before is None else before.piece.views
        self.record = self.made[name] = LoweringRecord(step, PlanPiece(views))
        return None

    def end(self, name: object) -> None:
        """End a step that was lowered: values that it wrote give way to the earlier ones, where they are alike."""
        before = self._before.pop(name, None)
        if before is None:
            return
        for place, value in self.record.writes.items():
            known = before.writes.get(place)
            if known is not None and alike(known, value):
                self.record.writes[place] = self.values[place] = known


def alike(value: Any, other: Any) -> bool:
    """Whether one value may replace another in all later steps."""
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    if isinstance(value, (View, Chain, QuantizedView)):
        return all(alike(getattr(value, item.name), getattr(other, item.name)) for item in fields(value))
    if isinstance(value, tuple):
        return len(value) == len(other) and all(map(alike, value, other))
    if isinstance(value, float):
        return struct.pack("d", value) == struct.pack("d", other)
    if isinstance(value, np.ndarray):
        small = value.nbytes <= _COMPARED and not value.dtype.hasobject
        like = (value.shape, value.dtype) == (other.shape, other.dtype)
        return small and like and bool(value.tobytes() == other.tobytes())
    return isinstance(value, (int, str, np.dtype)) and bool(value == other)
