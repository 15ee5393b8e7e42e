"""Quantized values inside a region: int16 with the zero point taken off, whatever their dtype and zero point are.

A value q of int8 or uint8 with scale s and zero point z stands for (q - z) * s. Regions hold the levels q - z: padding
is then zero, one kernel serves every mix of dtypes, and int8, uint8 or float32 elements are made only where a reader
needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from onnxlab.execution.numba.plan.elementwise_chains import Chain, Operand
from onnxlab.execution.numba.plan.views import View

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
