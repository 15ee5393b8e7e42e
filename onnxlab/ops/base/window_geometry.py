"""The geometry that convolutions and pools share: padding, output sizes, and which input each tap of a kernel reads."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onnxlab.ops.base.kernel_helpers import Array

Slices = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window over the spatial axes of a [N, C, D1, …] tensor; one entry per spatial axis.

    Attributes:
        size: the input's spatial dims.
        kernel: dims of the window, in taps.
        strides: distances between neighboring windows.
        dilations: distances between neighboring taps of a window.
        begin: elements of padding before the input.
        end: elements of padding after it, negative where windows ignore trailing input.
        output: the output's spatial dims.
    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    output: tuple[int, ...]

    @property
    def padded(self) -> bool:
        """Whether any tap reads outside of the input."""
        return any(self.begin) or any(end > 0 for end in self.end)

    def tap(self, axis: int, position: int) -> tuple[slice, slice]:
        """The place of a kernel position in the input along one axis: (outputs that it serves, inputs it reads)."""
        stride, size = self.strides[axis], self.size[axis]
        offset = position * self.dilations[axis] - self.begin[axis]
        first = max(0, -(offset // stride))
        stop = max(first, min(self.output[axis], (size - 1 - offset) // stride + 1))
        start = first * stride + offset
        return slice(first, stop), slice(start, start + (stop - first) * stride, stride)

    def taps(self) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
        """Every kernel position with the outputs that it serves and the inputs that it reads."""
        lines = [[self.tap(axis, at) for at in range(count)] for axis, count in enumerate(self.kernel)]
        for position in product(*map(range, self.kernel)):
            pairs = [line[at] for line, at in zip(lines, position, strict=True)]
            yield position, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)

    @property
    def padded_size(self) -> tuple[int, ...]:
        """The spatial dims of what `pad` returns."""
        if not self.padded:
            return self.size
        return tuple(
            max(1, (out - 1) * stride + (k - 1) * dilation + 1)
            for out, stride, k, dilation in zip(self.output, self.strides, self.kernel, self.dilations, strict=True)
        )

    def pad(self, x: Array, value: Any = 0) -> Array:
        """`x` [N, C, D1, …] with its padding around it, as large as the windows need; x itself where none do."""
        if not self.padded:
            return x
        result = np.full((*x.shape[:2], *self.padded_size), value, x.dtype)
        source, target = [slice(None)] * 2, [slice(None)] * 2
        for begin, size, span in zip(self.begin, self.size, result.shape[2:], strict=True):
            length = max(0, min(size, span - begin))
            source.append(slice(0, length))
            target.append(slice(begin, begin + length))
        result[tuple(target)] = x[tuple(source)]
        return result

    def run(self, lines: int) -> int:
        """Elements from the first output to the last one of some lines of the output, padded line ends included."""
        place = 0
        for out, size in zip((lines, *self.output[1:]), self.padded_size, strict=True):
            place = place * size + out - 1
        return place + 1

    def runs(self, padded: Array) -> Array:
        """A strided view [C, k1, …, run] of a C-contiguous padded image, for strides of 1: what each tap reads."""
        steps = [step * dilation for step, dilation in zip(padded.strides[1:], self.dilations, strict=True)]
        shape = (len(padded), *self.kernel, self.run(self.output[0]))
        return strided(padded, shape, (padded.strides[0], *steps, padded.itemsize))

    @property
    def keeps_size(self) -> bool:
        """Whether there is an output for each element, without strides."""
        return self.output == self.size and max(self.strides) == 1 and min(self.begin) >= 0 <= min(self.end)

    @property
    def margins(self) -> tuple[int, int]:
        """The reach of a window's taps before and behind an image of the same size, in elements of it."""
        steps = [prod(self.size[axis + 1 :]) for axis in range(len(self.size))]
        reach = [(k - 1) * dilation for k, dilation in zip(self.kernel, self.dilations, strict=True)]
        before = sum(begin * step for begin, step in zip(self.begin, steps, strict=True))
        return before, sum(far * step for far, step in zip(reach, steps, strict=True)) - before

    def taps_of(self, padded: Array) -> Array:
        """A strided view [C, k1, …, elements] of flat images [C, elements with `margins`]: each tap's own image.

        The window must keep the size. What a tap reads beyond the end of a line is of the next line: see `clear_ends`.
        """
        item, spots = padded.itemsize, prod(self.size)
        steps = [prod(self.size[axis + 1 :]) * dilation * item for axis, dilation in enumerate(self.dilations)]
        shape = (len(padded), *self.kernel, spots)
        return strided(padded, shape, (padded.strides[0], *steps, item))

    def clear_ends(self, columns: Array) -> None:
        """Zero what taps read beyond the ends of lines in columns [g, C, k1, …, elements of whole lines]."""
        rank, every = len(self.kernel), slice(None)
        grid = columns.reshape(*columns.shape[: 2 + rank], -1, *self.size[1:])
        for axis in range(1, rank):
            for position in range(self.kernel[axis]):
                offset = position * self.dilations[axis] - self.begin[axis]
                beyond = slice(-offset) if offset < 0 else slice(max(0, self.size[axis] - offset), None)
                if offset:
                    grid[(*(every,) * (2 + axis), position, *(every,) * (rank - 1), beyond)] = 0

    def view(self, padded: Array) -> Array:
        """A strided view [N, C, k1, …, o1, …] of a padded input: what every window sees, nothing copied."""
        lead, steps = padded.strides[:2], padded.strides[2:]
        inner = [step * dilation for step, dilation in zip(steps, self.dilations, strict=True)]
        outer = [step * stride for step, stride in zip(steps, self.strides, strict=True)]
        shape = (*padded.shape[:2], *self.kernel, *self.output)
        return strided(padded, shape, (*lead, *inner, *outer))


def strided(x: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of other dims and strides, not to be written to.

    Where `x` is contiguous NumPy checks the reach, in a fifth of the time that `as_strided` takes without.
    """
    if not x.flags.c_contiguous:
        return as_strided(x, shape, strides, writeable=False)
    view = np.ndarray(shape, x.dtype, x, strides=strides)
    view.flags.writeable = False
    return view


def window(
    x: Array,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """Return the window that these attributes describe over `x` [N, C, D1, …].

    With ceil_mode the output is rounded up, but a window that would start in the padding at the end is left out.

    Raises:
        ValueError: the attributes' lengths do not fit the rank, or a window is larger than the padded input.
    """
    return window_over(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)


def window_over(
    size: tuple[int, ...],
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """`window` for spatial dims."""
    return _window(
        size, tuple(kernel_shape), tuple(strides or ()), None if pads is None else tuple(pads),
        tuple(dilations or ()), auto_pad, ceil_mode,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _window(
    size: tuple[int, ...],
    kernel_shape: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...] | None,
    dilations: tuple[int, ...],
    auto_pad: str,
    ceil_mode: int,
) -> Window:
    """`window_over`, computed once for each."""
    kernel = tuple(int(k) for k in kernel_shape)
    rank = len(size)
    steps, spread = strides or (1,) * rank, dilations or (1,) * rank
    if not len(kernel) == len(steps) == len(spread) == rank:
        raise ValueError(f"X has {rank} spatial axes: kernel_shape {kernel}, strides {steps}, dilations {spread}")
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, spread, strict=True))
    begin, end = _padding(size, reach, steps, pads, auto_pad)
    output = []
    for dim, need, step, before, after in zip(size, reach, steps, begin, end, strict=True):
        room = dim + before + after - need
        if room < 0:
            raise ValueError(f"a window of {need} does not fit into {dim} + {before} + {after} elements of X")
        count = -(-room // step) + 1 if ceil_mode else room // step + 1
        if ceil_mode and (count - 1) * step >= dim + before:
            count -= 1
        output.append(count)
    return Window(size, kernel, steps, spread, begin, end, tuple(output))


def _padding(
    size: Sequence[int],
    reach: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after each axis."""
    rank = len(size)
    if auto_pad in ("", "NOTSET"):
        amounts = tuple(pads) if pads else (0,) * (2 * rank)
        if len(amounts) != 2 * rank:
            raise ValueError(f"pads {amounts}: expected {2 * rank} numbers, the begins and then the ends")
        return amounts[:rank], amounts[rank:]
    if auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad is {auto_pad!r}: expected NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    total = [max(0, (-(-d // s) - 1) * s + r - d) for d, r, s in zip(size, reach, strides, strict=True)]
    less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    return (less, more) if auto_pad == "SAME_UPPER" else (more, less)
