"""Operands that are not in memory: weights of a file, which kernels read window by window.

A form of a kernel that is registered with `windowed` gets a `StoredOperand` in the place of one input, and returns
None where it needs all of that input at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array


class StoredOperand(Protocol):
    """A tensor in a file: its shape and type are known, its elements are read when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims."""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type of the elements."""

    def windows(self) -> Iterator[tuple[int, Array]]:
        """(first row, some rows) of the whole tensor, one after the other; rows are along axis 0."""

    def rows(self, numbers: Array) -> Array:
        """The rows with these numbers, ascending."""
