"""Buffers of inputs that are needed no more, for results to be written into: no memory to fetch, none to free.

Kernels register the operators that can write into an input (`ops.registry.in_place`). Whether an input's buffer is free
is decided right before the call, by Python's reference counts: the value must have its last reader here, must be made
in this run, and only the frame and the call may refer to it. A view of the value, another name for it, a feed, a
constant, a kept value, a loop's state and a body's capture are all further references.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sys import getrefcount
from typing import Any, Final

import numpy as np

from onnxlab.execution.base.provider import Step

SMALL: Final = 1 << 16
"""Bytes below which a new buffer costs less than looking for a free one."""


def slots_to_reuse(
    step: Step, inputs: Sequence[int], drop: Collection[int], barred: Collection[int]
) -> tuple[int, ...]:
    """Slots of those inputs into which a step might write its result.

    Args:
        inputs: slots of the inputs.
        drop: slots that die with the step.
        barred: slots of feeds and constants.
    """
    if step.into is None or len(step.outputs) != 1:
        return ()
    chosen = [inputs[place] for place in step.in_place if place < len(inputs)]
    return tuple(slot for slot in chosen if slot in drop and slot not in barred and inputs.count(slot) == 1)


def _references(frame: list[Any], slot: int) -> int:
    array = frame[slot]
    return getrefcount(array)


def _alone() -> int:
    """The number of references of an array that only its frame and the arguments of a call hold."""
    frame: list[Any] = [np.empty(0)]
    arguments = (frame[0],)
    return _references(frame, 0) + len(arguments) - 1


_ALONE: Final = _alone()


def spare(slots: Sequence[int], frame: list[Any], dead: Collection[int]) -> Any:
    """The first array in these slots whose buffer is free, None where none is.

    Args:
        slots: of inputs, to each of which the caller holds exactly one reference besides that of the frame.
        dead: slots that are let go after the step.
    """
    for slot in slots:
        if slot in dead and type(frame[slot]) is np.ndarray and _references(frame, slot) == _ALONE:
            array = frame[slot]
            if array.nbytes > SMALL and array.base is None and array.flags.c_contiguous and array.flags.writeable:
                return array
    return None
