"""Two axes of a tensor as the page shows them: cells of a grid, a heat map, an image.

A source is a NumPy array or a LazyTensor. It is indexed with numbers for the other axes and slices for these two, so
that only the elements shown are read from files.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.notebook.protocol import messages

Array = np.ndarray[Any, Any]

PIXELS = 256
"""Most rows and columns of a heat map or image."""
POOLED = 1 << 24
"""Elements of the largest plane that is averaged; larger ones are sampled."""
CELLS = 4096
"""Most cells of a grid."""
TEXT = 80
"""Most characters of a cell."""
NAN, POSITIVE, NEGATIVE, LEAST, MOST = 0, 1, 2, 3, 255
"""Codes of a heat map: NaN, plus and minus infinity, and from LEAST to MOST the finite numbers, low to high."""


@dataclass(frozen=True, slots=True)
class Plane:
    """Two axes of a tensor and an index for each other axis; axis -1 stands for one that the tensor does not have.

    Attributes:
        rows, columns: the axes.
        at: an index for each axis; those of `rows` and `columns` are ignored.
    """

    shape: tuple[int, ...]
    rows: int
    columns: int
    at: tuple[int, ...]

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.shape[self.rows] if self.rows >= 0 else 1

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.shape[self.columns] if self.columns >= 0 else 1

    def read(self, source: Any, rows: slice, columns: slice) -> Array:
        """A part of the plane as [rows, columns]."""
        if 0 in self.shape:  # another axis may be empty, and then has no valid index
            return np.zeros((0, 0), source.dtype)
        chosen = {self.rows: rows, self.columns: columns}
        index = tuple(chosen.get(axis, where) for axis, where in enumerate(self.at))
        part = np.asarray(source[index] if index else np.asarray(source))
        if self.rows >= 0 and self.columns >= 0:
            return part if self.rows < self.columns else part.T
        return part.reshape((-1, 1) if self.rows >= 0 else (1, -1))


def plane(shape: tuple[int, ...], rows: int | None, columns: int | None, at: list[int] | None) -> Plane:
    """The plane of two axes, by default the last two, at indices of the other axes, by default 0.

    Raises:
        ProtocolError: there are no such axes.
    """
    rank = len(shape)
    if rows is None and columns is None:
        rows, columns = (rank - 2, rank - 1) if rank > 1 else (rank - 1, -1)
    rows, columns = -1 if rows is None else rows, -1 if columns is None else columns
    if max(rows, columns) >= rank or (rows == columns and rows >= 0):
        raise messages.ProtocolError("malformed", f"tensor: axes {rows} and {columns} of a tensor of rank {rank}")
    positions = [*(at or []), *[0] * rank][:rank]
    return Plane(
        shape, rows, columns, tuple(min(where, max(0, dim - 1)) for where, dim in zip(positions, shape, strict=True))
    )


def cells(source: Any, plane: Plane, top: int, left: int, height: int, width: int) -> list[list[Any]]:
    """A part of the plane: numbers in JSON's form, all other elements as texts."""
    width = max(1, min(width, CELLS))
    rows = slice(top, min(top + min(height, CELLS // width), plane.height))
    part = plane.read(source, rows, slice(left, min(left + width, plane.width)))
    return [[_cell(item) for item in row] for row in part]


def _cell(item: Any) -> Any:
    if isinstance(item, np.bool_ | bool):
        return "true" if item else "false"
    if isinstance(item, np.integer):
        return messages.number(int(item))
    if isinstance(item, bytes):
        item = item.decode("utf-8", "backslashreplace")
    if isinstance(item, str | complex | np.complexfloating):
        text = str(item)
        return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
    return messages.number(float(item))  # the narrow floats too


@dataclass(frozen=True, slots=True)
class PlaneImage:
    """One plane or three as bytes [height, width, channels]: the codes NAN to MOST for numbers from low to high."""

    height: int
    width: int
    channels: int
    low: float
    high: float
    data: bytes


def heat(source: Any, plane: Plane, pixels: int = PIXELS) -> PlaneImage:
    """The plane, averaged to at most `pixels` rows and columns."""
    pooled = _reduced(source, plane, pixels)
    return coded(pooled[:, :, None])


def image_axes(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(channel, row, column) axes of a tensor that may be an image with three channels, None where it cannot be one."""
    if len(shape) in (3, 4) and min(shape[-3:]) > 0:
        first = len(shape) - 3
        if shape[first] == 3 and min(shape[first + 1 :]) >= 8:
            return first, first + 1, first + 2
        if shape[-1] == 3 and min(shape[first:-1]) >= 8:
            return first + 2, first, first + 1
    return None


def image(source: Any, whole: Plane, pixels: int = PIXELS) -> PlaneImage:
    """Three channels as colors. Raises ProtocolError where the tensor cannot be an image."""
    axes = image_axes(whole.shape)
    if axes is None:
        raise messages.ProtocolError("malformed", f"tensor: an image has three channels, the shape is {whole.shape}")
    channel, rows, columns = axes
    at = list(whole.at)
    channels = []
    for number in range(3):
        at[channel] = number
        channels.append(_reduced(source, Plane(whole.shape, rows, columns, tuple(at)), pixels))
    return coded(np.stack(channels, axis=2))


def _reduced(source: Any, plane: Plane, pixels: int) -> Array:
    """The plane as float64 of at most pixels × pixels: means of blocks, or every n-th element of a very large plane."""
    row_step, column_step = -(-plane.height // pixels), -(-plane.width // pixels)
    if plane.height * plane.width > POOLED:
        return numbers_of(plane.read(source, slice(0, None, row_step), slice(0, None, column_step)))
    pooled = numbers_of(plane.read(source, slice(None), slice(None)))
    with np.errstate(invalid="ignore", over="ignore"):
        for axis, step in ((0, row_step), (1, column_step)):
            if step > 1:
                size = pooled.shape[axis]
                starts = np.arange(0, size, step)
                shape = (-1, 1) if axis == 0 else (1, -1)
                pooled = np.add.reduceat(pooled, starts, axis) / np.diff([*starts, size]).reshape(shape)
    return pooled


def numbers_of(array: Array) -> Array:
    """Elements as float64, complex ones as their magnitudes. Raises ProtocolError for texts."""
    if array.dtype.kind in "OUS":
        raise messages.ProtocolError("nothing", "Texts make no picture; look at them in the grid.")
    return np.abs(array).astype(np.float64) if array.dtype.kind == "c" else array.astype(np.float64)


def coded(array: Array) -> PlaneImage:
    """Numbers [height, width, channels] as the bytes of a picture."""
    finite = np.isfinite(array)
    low, high = (float(array[finite].min()), float(array[finite].max())) if finite.any() else (0.0, 0.0)
    span = high - low if 0 < high - low < np.inf else 1.0
    codes = np.zeros(array.shape, np.uint8)
    codes[finite] = np.rint((array[finite] - low) / span * (MOST - LEAST)).clip(0, MOST - LEAST) + LEAST
    codes[array == np.inf], codes[array == -np.inf] = POSITIVE, NEGATIVE
    height, width, channels = array.shape
    return PlaneImage(height, width, channels, low, high, codes.tobytes())
