"""BLAS threads during runs.

OpenBLAS wakes all of its threads for products of a few microseconds and lets them spin: measured on two cores, the
products of a small transformer take four times as long with two threads as with one, and fifty times as long when
other processes use the cores. So runs use one thread unless asked otherwise. One thread also makes runs repeatable to
the last bit: the order in which OpenBLAS adds depends on its number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController  # here: a fork during a later import leaves half a module

from onnxlab.execution.base.provider import Step
from onnxlab.forking import fork_safe
from onnxlab.ops.base.registry import attributes_of

MULTIPLYING = frozenset((
    "glow.operators",
    "microsoft.attention", "microsoft.decoding", "microsoft.experts", "microsoft.fused", "microsoft.gates",
    "microsoft.general", "microsoft.images", "microsoft.integers", "microsoft.quantized", "ml.linear", "ml.svm",
    "nchwc.images", "onnx.control.control", "onnx.math.matmul", "onnx.math.reduce", "onnx.math.signal",
    "onnx.nn.activation", "onnx.nn.attention", "onnx.nn.conv", "onnx.nn.norm", "onnx.nn.pool", "onnx.nn.quantization",
    "onnx.nn.recurrent", "onnx.tensor.vision", "onnx.training.gradient", "onnx.training.loss",
    "onnx.training.optimizers",
))  # fmt: skip
"""Modules of onnxlab.ops with kernels that multiply matrices, or that run bodies, whose nodes may multiply matrices."""

NOT_MULTIPLYING = frozenset((
    "ArgMax", "ArgMin", "CumProd", "CumSum", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
))  # fmt: skip
"""Operators of ONNX whose kernels are in one of these modules and multiply nothing."""

FEW = 1 << 12
"""Elements of both factors up to which OpenBLAS multiplies in one thread: it shares 262,144 multiplications and more.

With a · b and b · c elements, a · b · c is at most FEW ** 1.5.
"""
LITTLE = 4 * FEW
"""Bytes of so few floats."""

_lock = fork_safe(threading.Lock(), await_holder=True)
_active: dict[object, int] = {}  # threads that the runs under way ask for
_before: list[int] = []  # threads of each library before the runs, to restore


@cache
def libraries() -> tuple[Any, ...]:
    """threadpoolctl's controllers of the BLAS libraries in this process; finding them takes milliseconds, so once."""
    return tuple(library for library in ThreadpoolController().lib_controllers if library.user_api == "blas")


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let BLAS use at most this many threads, in the whole process, until the last run under way has ended.

    With several runs at once, the highest limit applies. A lower limit that other code set stays.
    `threads=0` changes nothing.
    """
    if not threads:
        yield
        return
    run = object()
    try:  # from the start: Ctrl-C may come at any moment in the caller's thread
        with _lock:
            _active[run] = threads
            _apply()
        yield
    finally:
        with _lock:
            _active.pop(run, None)
            _apply()


def _apply() -> None:
    """Set what the runs under way ask for, or put back what was; a few microseconds."""
    if _active and not _before:
        _before[:] = [library.get_num_threads() for library in libraries()]
    for library, before in zip(libraries(), _before, strict=False):  # none where a run ended before it set anything
        # threadpoolctl's public setter takes effect only in the thread that first set the limit of OpenBLAS, but runs
        # end in any order and in any thread: so the library's own setter is used where it has one
        setter: Callable[[int], None] = getattr(library, "_real_set_num_threads", library.set_num_threads)
        setter(min(before, max(_active.values())) if _active else before)
    if not _active:
        _before.clear()


def used_by(step: Step) -> bool:
    """Whether a step may end up in BLAS: changing its threads for nothing costs 10 to 20 µs."""
    if step.part is not None:
        return not step.part.own_threads
    return step.op not in NOT_MULTIPLYING and may_use(step.call)


def may_use(call: Callable[..., Any]) -> bool:
    """Whether what is called may end up in BLAS."""
    module = getattr(getattr(call, "func", call), "__module__", None) or "numpy"
    family = module.removeprefix("onnxlab.ops.")
    return family in MULTIPLYING or (family == module and not module.startswith("numpy"))


def is_shared(step: Step, arrays: Iterable[Any]) -> bool:
    """Whether threads of BLAS may share a step on values of at most LITTLE bytes and these constants."""
    sizes = [len(value) for value in attributes_of(step.call).values() if isinstance(value, Sized)]
    return used_by(step) and max([*sizes, *[np.size(array) for array in arrays]], default=0) > FEW
