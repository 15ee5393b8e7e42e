"""Elementwise chains: expressions that wait until their elements are needed, then one record for all of them.

A quantized value q of int8 or uint8 with scale s and zero point z stands for (q - z) * s. Regions hold the levels
q - z, as int16: padding is then zero, one kernel serves every mix of dtypes, and int8, uint8 or float32 elements are
made only where a reader needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from onnxlab import dtypes
from onnxlab.execution.numba.machine.records import (
    BOOL,
    BRAIN,
    BYTE,
    FLOAT,
    HALF,
    INT,
    OPERAND_WORDS,
    REGISTERS,
    SHORT,
    TILE,
    UBYTE,
)
from onnxlab.execution.numba.machine.vector_operations import CODE
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.views import View, constant_view, merged

Operand: TypeAlias = "Chain | View | float"
_BFLOAT16 = dtypes.to_numpy(dtypes.BFLOAT16)
MAX_OPERANDS = 10
MAX_STEPS = 24
_KINDS = {
    np.dtype(np.float32): FLOAT, np.dtype(np.bool_): BOOL, np.dtype(np.float16): HALF, np.dtype(np.int16): SHORT,
    np.dtype(np.int8): BYTE, np.dtype(np.uint8): UBYTE, np.dtype(np.int32): INT, _BFLOAT16: BRAIN,
}  # fmt: skip
SMALL_FLOATS = (np.dtype(np.float16), _BFLOAT16)
"""Element types that are held as float32 inside of regions."""
_DIMS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """An operation of the vector machine on operands that broadcast to `shape`; `truth` if it makes booleans.

    `whole` is the dtype of integers that it makes, which must fit: int16, int8 or uint8.
    """

    operation: str
    operands: tuple[Operand, ...]
    shape: tuple[int, ...]
    truth: bool = False
    whole: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the result."""
        return np.dtype(self.whole or (np.bool_ if self.truth else np.float32))

    @property
    def steps(self) -> int:
        """The number of operations of the chain, those of its operands included."""
        return 1 + sum(operand.steps for operand in self.operands if isinstance(operand, Chain))

    def leaves(self) -> list[View]:
        """The views that it reads."""
        views: dict[int, View] = {}
        for operand in self.operands:
            if isinstance(operand, Chain):
                views.update((id(view), view) for view in operand.leaves())
            elif isinstance(operand, View):
                views[id(operand)] = operand
        return list(views.values())


Zero: TypeAlias = "int | str | None"
"""A zero point: the number, the name of the value that holds it, or None where there are several."""


@dataclass(frozen=True, eq=False, slots=True)
class QuantizedView:
    """A quantized value, or the floats that it stands for: levels, scale and zero point.

    Attributes:
        value: the levels: a view of int16, or a chain that makes them.
        zero: zero point of the levels.
        scale: scale of all levels; None where it is not a single known number.
    """

    value: View | Chain
    zero: Zero
    scale: float | None


def limits(dtype: np.dtype[np.generic], zero: int) -> tuple[float, float]:
    """The least and the greatest level of a dtype of integers."""
    info = np.iinfo(dtype)  # type: ignore[type-var]
    return float(info.min - zero), float(info.max - zero)


def chain(operation: str, *operands: Operand, dtype: object = None) -> Chain:
    """An elementwise operation; of integers where a dtype is given."""
    shapes = [operand.shape for operand in operands if not isinstance(operand, float)]
    return Chain(operation, operands, tuple(np.broadcast_shapes(*shapes)), whole=dtype)


def rounded(x: Operand, scale: Operand, low: Operand, high: Operand) -> Chain:
    """The levels of floats: divided by the scale, rounded to even, and clamped; NaN becomes the lowest."""
    return chain("quantize", chain("div", x, scale), low, high, dtype=np.int16)


def supports(dtype: np.dtype[np.generic]) -> bool:
    """Whether chains compute with elements of this type."""
    return dtype in _KINDS


class _Program:
    """The instructions of a chain, with registers given out and taken back."""

    def __init__(self, chain: Chain) -> None:
        self.views: list[View] = []
        self._index: dict[object, int] = {}
        self._collect(chain)
        self.instructions: list[int] = []
        self._free = list(range(REGISTERS - 1, len(self.views) - 1, -1))
        self._emit(chain)

    def _collect(self, chain: Chain) -> None:
        for operand in chain.operands:
            if isinstance(operand, Chain):
                self._collect(operand)
            elif (key := _key(operand)) not in self._index:
                self._index[key] = len(self.views)
                number = constant_view(np.array(operand, np.float32)) if isinstance(operand, float) else operand
                self.views.append(number)

    def _emit(self, chain: Chain) -> int:
        registers = [
            self._emit(operand) if isinstance(operand, Chain) else self._index[_key(operand)]
            for operand in chain.operands
        ]
        for register in registers:
            if register >= len(self.views):
                self._free.append(register)
        target = self._free.pop()
        a, b, c = [*registers, *[registers[0]] * (3 - len(registers))]
        self.instructions += [CODE[chain.operation], target, a, b, c]
        return target


def _key(operand: View | float) -> object:
    return ("number", operand) if isinstance(operand, float) else id(operand)


def emit_chain(builder: PlanBuilder, chain: Chain, target: View) -> View:
    """Append the record that computes a chain into `target`."""
    program = _Program(chain)
    layouts = [view.broadcast(target.shape) for view in program.views]
    order = sorted(range(len(target.shape)), key=lambda axis: -target.strides[axis])
    shape = [target.shape[axis] for axis in order]
    sizes, strides = merged(shape, [[view.strides[axis] for axis in order] for view in (target, *layouts)])
    if sizes and strides[0][-1] != target.dtype.itemsize:  # one column of something wider: a record's columns are dense
        sizes, strides = [*sizes, 1], [[*steps, 0] for steps in strides]
    _emit_dims(builder, program, sizes, strides, [view.where for view in (target, *layouts)], target, layouts)
    return target


def _emit_dims(
    builder: PlanBuilder, program: _Program, sizes: list[int], strides: list[list[int]],
    places: Sequence[tuple[Word, ...]] | Sequence[Word], target: View, layouts: list[View],
) -> None:  # fmt: skip
    """Emit over these dims, one record for each index of dims beyond what a record holds."""
    if len(sizes) > _DIMS:
        for index in range(sizes[0]):
            moved = [
                (place[0], place[1] + index * steps[0])  # type: ignore[index, operator]
                for place, steps in zip(places, strides, strict=True)
            ]
            _emit_dims(builder, program, sizes[1:], [s[1:] for s in strides], moved, target, layouts)  # type: ignore[arg-type]
        return
    fill = _DIMS - len(sizes)
    sizes = [1] * fill + sizes
    strides = [[0] * fill + list(steps) for steps in strides]
    to, *reads = strides
    rows, columns = sizes[3], sizes[4]
    tile_rows, tile_columns = (1, TILE) if columns > TILE // 2 else (min(rows, TILE // columns), columns)
    row_items, column_items = -(-rows // tile_rows), -(-columns // tile_columns)
    items = prod(sizes[:3]) * row_items * column_items
    unit_items = max(4, -(-items // 16))
    words: list[Word] = []
    for view, steps, place in zip(layouts, reads, places[1:], strict=True):
        words += [place, _KINDS[view.dtype], steps[3], steps[4], *steps[:3]]  # type: ignore[list-item]
        words += [0] * (OPERAND_WORDS - 7)
    code = np.array(program.instructions, np.int64)
    values: dict[str, Word] = {
        "target": places[0], "target_row": to[3], "program": builder.keep(code),  # type: ignore[dict-item]
        "length": len(code) // 5, "operands": builder.piece.table(words), "operand_count": len(layouts), "rows": rows,
        "columns": columns, "size1": sizes[1], "size2": sizes[2], "to0": to[0], "to1": to[1], "to2": to[2],
        "tile_rows": tile_rows, "tile_columns": tile_columns, "row_items": row_items, "column_items": column_items,
        "unit_items": unit_items, "items": items, "kind": _KINDS[target.dtype],
    }  # fmt: skip
    work = prod(sizes) * len(code) / 5 * 0.1
    builder.emit("elementwise", -(-items // unit_items), values, layouts, [target], work=work)
