"""Steps that read weights from their file when they run, and let them go after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from onnxlab.execution.base.provider import PartitionView, Step
from onnxlab.execution.program.executor import NodeContext
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.limits import Limits, Loading
from onnxlab.ops import KernelEntry

Array = np.ndarray[Any, Any]

WINDOW = 1 << 24
"""Bytes that are read at once: enough for a product to run at full speed, and few enough for the allocator to reuse the
same memory."""


class StoredWindow:
    """A tensor in its file as a kernel's `StoredOperand`.

    Args:
        tensor: the tensor to read.
        context: of the node, checked between windows so that the run can end there.
    """

    def __init__(self, tensor: LazyTensor, context: NodeContext) -> None:
        self._tensor, self._context = tensor, context
        self.shape, self.dtype = tensor.shape, tensor.dtype

    def windows(self) -> Iterator[tuple[int, Array]]:
        """(first row, rows), as many rows as a window holds."""
        height = max(1, WINDOW // max(1, self._row_bytes()))
        self._context.reserve(min(height, self.shape[0]) * self._row_bytes(), "a window of a weight")
        for start in range(0, self.shape[0], height):
            self._context.check()
            with Loading(Limits()):  # counted above
                rows = self._tensor[start : start + height]
            yield start, rows

    def rows(self, numbers: Array) -> Array:
        """The rows with these numbers; adjacent rows are read at once."""
        rows = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        self._context.reserve(rows.nbytes, "rows of a weight")
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        bounds = [0, *breaks.tolist(), len(numbers)]
        for low, high in pairwise(bounds):
            first = int(numbers[low])
            with Loading(Limits()):
                rows[low:high] = self._tensor[first : first + high - low]
        return rows

    def _row_bytes(self) -> int:
        return prod(self.shape[1:]) * self.dtype.itemsize


def _run(
    step: Step, stored: Mapping[int, LazyTensor], windowed: Callable[..., Any] | None, place: int,
    context: NodeContext, *arrays: Any,
) -> Any:  # fmt: skip
    """Run a node whose inputs at some places are in files.

    Args:
        step: the step as it would run with arrays.
        stored: {index of the input: tensor}.
        windowed: the form of the kernel that takes one input as a `StoredOperand`; it returns None where it cannot.
        place: index of that input.
    """
    inputs = [_whole(stored[number], context) if number in stored and (windowed is None or number != place) else array
              for number, array in enumerate(arrays)]  # fmt: skip
    if windowed is not None:
        inputs[place] = StoredWindow(stored[place], context)
        result = windowed(*inputs)
        if result is not None:
            return result
        inputs[place] = _whole(stored[place], context)
    return step.call(context, *inputs) if step.context else step.call(*inputs)


def _whole(tensor: LazyTensor, context: NodeContext) -> Array:
    context.reserve(tensor.size * tensor.dtype.itemsize, f"tensor {tensor.name!r}")
    with Loading(Limits()):  # counted above
        return np.asarray(tensor)


def reading(
    step: Step, view: PartitionView, kernel: KernelEntry | None, attributes: Callable[[], Mapping[str, Any]]
) -> Step:
    """The step that reads its inputs from files when it runs; `step` itself where no input is left in a file.

    Args:
        step: of one node.
        view: knows the initializers that are left in files.
        kernel: the kernel of the node, if it has one.
        attributes: decodes the attributes of the node.
    """
    stored = {place: view.stored[name] for place, name in enumerate(step.inputs) if name in view.stored}
    if not stored or step.constants is not None:
        return step
    place = kernel.window_place if kernel is not None else 0
    form = kernel.windowed if kernel is not None and place in stored else None
    windowed = None if form is None else partial(form, **attributes())
    inputs: Sequence[str] = ["" if place in stored else name for place, name in enumerate(step.inputs)]
    call = partial(_run, step, stored, windowed, place)
    return replace(step, call=call, inputs=tuple(inputs), context=True, pure=False, size=None, into=None, in_place=())
