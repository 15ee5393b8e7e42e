"""The state of one run: its budget, its random numbers, and the memory that its frames hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxlab.execution.base.array_memory import SCALARS, is_flat
from onnxlab.limits import Limits
from onnxlab.ops.onnx.control.sequence import Sequence as Counted
from onnxlab.ops.onnx.control.sequence import root

SMALL = 1 << 16
"""Bytes of an array up to which it is not counted, because counting takes time."""

_MAPS = 1 << 20  # bytes of a list of maps, which are many objects of few bytes, up to which it is small

_OVERHEAD = 128  # bytes of an array besides its elements


class Run:
    """The state of one run: its budget, its random numbers and the large arrays that it holds."""

    def __init__(self, limits: Limits, seed: int | None = None) -> None:
        self.limits = limits
        self.memory = RunMemory(limits)
        self.seen: dict[int, list[Any]] = {}  # {value id: arrays of a watched value, one for each run of its body}
        self.is_kept = False  # whether values of the run may be asked for afterwards
        self.is_resumed = False  # whether a part began where an edit matters: its time tells nothing of other runs
        self._seed = seed
        self._rng: np.random.Generator | None = None

    def begin_again(self) -> None:
        """Draw the same random numbers once more, and count iterations from the first one on."""
        self._rng, self.limits.iterated = None, 0

    @property
    def rng(self) -> np.random.Generator:
        """The generator of random numbers, made from the run's seed when first asked for."""
        if self._rng is None:
            self._rng = np.random.default_rng(self._seed)
        return self._rng


class RunMemory:
    """Bytes of the large arrays in a run's frames, each buffer counted once however many views share it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.held: dict[tuple[int, int], list[tuple[int, int]]] = {}  # (frame, slot): buffers
        self._buffers: dict[int, int] = {}  # id of a buffer: how many slots show it

    def hold(self, frame: int, slot: int, value: Any) -> None:
        """Count the buffers of a slot's new value. Raises LimitError when the sum exceeds the budget."""
        if type(value) is np.ndarray and value.base is None:
            buffers = [(id(value), value.nbytes)] if value.nbytes > SMALL else []
        else:
            buffers = [buffer for buffer in _buffers(value) if buffer[1] > SMALL]
        if buffers:
            self.held[frame, slot] = buffers
            for key, nbytes in buffers:
                shown = self._buffers.get(key, 0)
                self._buffers[key] = shown + 1
                if not shown:
                    self._limits.reserve(nbytes, "the output")

    def drop(self, frame: int, slot: int) -> None:
        """Forget a slot."""
        for key, nbytes in self.held.pop((frame, slot), ()):
            shown = self._buffers[key] - 1
            if shown:
                self._buffers[key] = shown
            else:
                del self._buffers[key]
                self._limits.release(nbytes)

    def leave(self, frame: int) -> None:
        """Forget a frame, at the end of a body."""
        for key in [key for key in self.held if key[0] == frame]:
            self.drop(*key)


def _buffers(value: Any, flat: bool | None = None) -> list[tuple[int, int]]:
    """(id, bytes) of the buffers behind a value; a sequence or map counts as one buffer, together with its items.

    Args:
        flat: what `is_flat` says of the value, where that is known.
    """
    if isinstance(value, np.ndarray):
        value = root(value)
        return [(id(value), value.nbytes)]
    if type(value) is Counted and value.buffers is not None:
        return [(id(value), _OVERHEAD * len(value) + sum(value.buffers.values()))]
    if is_flat(value) if flat is None else flat:  # no call for each item
        return [(id(value), _OVERHEAD * (len(value) + sum(map(len, value))))]
    if isinstance(value, (list, dict)):
        items = value.values() if isinstance(value, dict) else value
        deep = [item for item in items if type(item) not in SCALARS]
        sizes = _bytes_of_items(deep) if deep else {}
        if type(value) is Counted:
            value.buffers = sizes
        return [(id(value), _OVERHEAD * len(items) + sum(sizes.values()))]
    return []


def _bytes_of_items(items: Sequence[Any]) -> dict[int, int]:
    """{id: bytes} of the buffers behind the items of a sequence, each once; fast, since loops ask for thousands."""
    arrays = [item if item.base is None else root(item) for item in items if type(item) is np.ndarray]
    sizes = {id(item): item.nbytes for item in arrays}
    if len(arrays) < len(items):
        for item in items:
            if type(item) is not np.ndarray:
                sizes.update(_buffers(item))
    return sizes


def is_small(value: Any) -> bool:
    """Whether no memory behind a value is counted."""
    flat = is_flat(value)
    return all(nbytes <= (_MAPS if flat else SMALL) for _, nbytes in _buffers(value, flat))
