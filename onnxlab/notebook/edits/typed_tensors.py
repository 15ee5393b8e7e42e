"""Tensors as they are typed by hand: a type, a shape and numbers, or a few elements changed; each with its Python."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import EditError
from onnxlab.graph.edits.recording import python_calls
from onnxlab.notebook.protocol.typed_elements import Number, element

MOST = 1 << 24
"""Elements that a tensor made by hand may have."""


def array(dtype: str, shape: Sequence[int], numbers: "Number | list[Number]") -> "np.ndarray[Any, Any]":
    """A new array; one number fills it.

    Raises:
        EditError: the type is unknown, the shape too large, or the numbers do not fit type or shape.
    """
    if any(not isinstance(dim, int) for dim in shape):
        raise EditError(f"a stored tensor has a fixed shape, got {list(shape)}; give a number for each dim")
    kind, size = _dtype(dtype), math.prod(shape)
    if size > MOST:
        raise EditError(f"{list(shape)} has {size:,} elements, by hand at most {MOST:,}; assign an array in Python")
    try:
        filled = np.empty(tuple(shape), kind)
    except ValueError as error:  # a negative dim, or dims beside a 0 whose product overflows
        raise EditError(f"there is no array of shape {list(shape)}: {error}") from None
    if not isinstance(numbers, list):
        filled[...] = element(numbers, kind)
    elif len(numbers) != size:
        raise EditError(f"{list(shape)} has {size} elements, got {len(numbers)} numbers")
    else:
        for place, number in enumerate(numbers):
            filled.reshape(-1)[place] = element(number, kind)
    return filled


def changed(original: "np.ndarray[Any, Any]", elements: "list[list[Any]]") -> "np.ndarray[Any, Any]":
    """A copy with elements changed: each as [place in row-major order, number].

    Raises:
        EditError: a place is outside, or a number does not fit.
    """
    copy = np.array(original)
    flat = copy.reshape(-1)
    for place, number in elements:
        if place >= flat.size:
            raise EditError(f"the tensor has {flat.size} elements, there is none at {place}; look at it again")
        flat[place] = element(number, copy.dtype)
    return copy


def changed_line(where: str, original: "np.ndarray[Any, Any]", elements: "list[list[Any]]") -> str:
    """The Python statements for `changed`, where the expression `where` reads and assigns the array."""
    lines = [f"array = {where}.copy()"]
    for place, number in elements:
        if place >= original.size:
            raise EditError(f"the tensor has {original.size} elements, there is none at {place}; look at it again")
        at = ", ".join(str(int(index)) for index in np.unravel_index(place, original.shape)) if original.ndim else "()"
        lines.append(f"array[{at}] = {python_calls.element(element(number, original.dtype))}")
    return "; ".join([*lines, f"{where} = array"])


def _dtype(dtype: str) -> "np.dtype[Any]":
    try:
        return dtypes.to_numpy(dtypes.parse(dtype))
    except ValueError as error:
        raise EditError(str(error)) from None
