"""Bodies of Scan that carry nothing from one iteration to the next: all iterations at once, along an axis in front.

Converters write distances between all pairs of rows in this way: a Scan whose body subtracts one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onnxlab.limits import Repeated, Repetition
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import attributes_of, innermost

_ELEMENTWISE = frozenset(
    ("Abs", "Add", "Div", "Exp", "Mul", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub", "Tanh")
)
_REDUCING = frozenset(("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"))
_AT_ONCE = 1 << 16
"""Elements of the largest value up to which iterations are done at once."""


class BodyStep(NamedTuple):
    """A step of a body, with numbers for the values that it reads and makes; 0 for an input that is absent."""

    op_type: str
    call: Callable[..., Any]
    reads: tuple[int, ...]
    results: tuple[int, ...]


class _Value(NamedTuple):
    """An array; `is_mapped`: its first axis is that of the iterations."""

    array: Array
    is_mapped: bool


@dataclass(frozen=True, slots=True)
class MappedBody:
    """A loop over a body whose iterations are independent.

    Attributes:
        steps: those of the body.
        inputs: numbers of the body's inputs and captures.
        outputs: numbers of its outputs.
        constants: values of the body that are known, by their numbers.
        repetition: which inputs are cut, and which outputs are stacked.
    """

    steps: tuple[BodyStep, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: Mapping[int, Array]
    repetition: Repetition

    def run(self, context: Any, most: int, feeds: Sequence[Any], captured: Iterable[Any]) -> Repeated | None:
        """Run the loop on the body's inputs and captures; None where it has to be run iteration by iteration."""
        arrays = [*feeds, *captured]
        if most < 1 or any(type(array) is not np.ndarray for array in arrays):
            return None
        try:
            first, largest = self._results(arrays, slice(0, 1))
            if any(not value.is_mapped for value in first):
                return None
            context.reserve(most * sum(value.array.nbytes for value in first), "the stacked scan outputs")
            stacked = [np.empty((most, *value.array.shape[1:]), value.array.dtype) for value in first]
            step = max(1, _AT_ONCE // max(1, largest))
            for start in range(0, most, step):
                context.check()
                part = slice(start, min(most, start + step))
                for whole, value in zip(stacked, self._results(arrays, part)[0], strict=True):
                    whole[part] = value.array.reshape(part.stop - part.start, *whole.shape[1:])
        except (ValueError, IndexError, TypeError, KeyError):  # the iteration that is to blame raises it once more
            return None
        outputs: list[Any] = [None] * len(self.outputs)
        for place, output in self.repetition.carried:
            outputs[output] = arrays[place]
        for place, whole in zip(self.repetition.collected, stacked, strict=True):
            outputs[place] = whole
        return most, outputs

    def _results(self, arrays: Sequence[Array], part: slice) -> tuple[list[_Value], int]:
        """The values of some iterations that are collected, and the elements of the largest value of an iteration."""
        values = {number: _Value(array, False) for number, array in self.constants.items()}
        for place, (number, array) in enumerate(zip(self.inputs, arrays, strict=True)):
            is_mapped = place in self.repetition.sliced
            values[number] = _Value(array[part] if is_mapped else array, is_mapped)
        largest = 1
        for step in self.steps:
            value = _mapped(step, [values[number] for number in step.reads])
            values[step.results[0]] = value
            largest = max(largest, value.array.size // (part.stop - part.start if value.is_mapped else 1))
        return [values[self.outputs[place]] for place in self.repetition.collected], largest


def _mapped(step: BodyStep, inputs: Sequence[_Value]) -> _Value:
    """The result of a step for all iterations. Raises ValueError where axes are not named."""
    if not any(value.is_mapped for value in inputs) or step.op_type == "Identity":
        return _Value(np.asarray(step.call(*[value.array for value in inputs])), inputs[0].is_mapped)
    if step.op_type in _REDUCING:
        return _Value(np.asarray(_reduced(step.call, *inputs)), True)
    rank = max(value.array.ndim - value.is_mapped for value in inputs)
    arrays = [value.array.reshape(len(value.array), *(1,) * (rank + 1 - value.array.ndim), *value.array.shape[1:])
              if value.is_mapped else value.array for value in inputs]  # fmt: skip
    return _Value(np.asarray(step.call(*arrays)), True)


def _reduced(call: Callable[..., Any], x: _Value, axes: _Value | None = None) -> Any:
    """The result of a reduction along axes that come one later; negative ones stay."""
    named = attributes_of(call).get("axes") if axes is None else axes.array.reshape(-1).tolist()
    rank = x.array.ndim - 1
    if not named or (axes is not None and axes.is_mapped) or not all(-rank <= axis < rank for axis in named):
        raise ValueError("a reduction without axes")
    later = [axis + (axis >= 0) for axis in named]
    if axes is not None:
        return call(x.array, np.array(later, np.int64))
    return partial(innermost(call), axes=later)(x.array)


def mapped_body(
    steps: Sequence[BodyStep], inputs: Sequence[int], outputs: Sequence[int], constants: Sequence[Any],
    repetition: Repetition,
) -> MappedBody | None:  # fmt: skip
    """The loop over a body, None where iterations depend on each other, or its steps are not known to suit."""
    same: dict[int, int] = {}
    for step in steps:
        usual: Mapping[str, Any] = attributes_of(step.call)
        if step.op_type == "Identity" and len(step.reads) == len(step.results) == 1:
            same[step.results[0]] = same.get(step.reads[0], step.reads[0])
        elif (
            len(step.results) != 1
            or 0 in step.reads
            or not (step.op_type in _REDUCING or (step.op_type in _ELEMENTWISE and not usual))
        ):
            return None
    is_kept = all(same.get(outputs[output], outputs[output]) == inputs[place] for place, output in repetition.carried)
    places = {output for _, output in repetition.carried}.union(repetition.collected)
    is_map = is_kept and repetition.sliced and repetition.condition < 0 and repetition.counter < 0
    if not is_map or len(places) < len(outputs):
        return None
    known = {number: array for number, array in enumerate(constants) if type(array) is np.ndarray}
    return MappedBody(tuple(steps), tuple(inputs), tuple(outputs), known, repetition)
