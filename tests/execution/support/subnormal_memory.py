"""Memory full of subnormal numbers, and which kernels work on them: on many processors that takes very long.

    python -m tests.execution.support.subnormal_memory bert_base functions_ts       # models of the corpus

prints the kernels that do. Kernels may read what lies behind the last element of a row, and never use it; but a
multiplication by it is one all the same. The processor tells: a bit of MXCSR is set by each operation of vectors on a
subnormal number. x86 on Linux only.
"""

import ctypes
import platform
import sys
from contextlib import contextmanager

import numpy as np

from onnxlab.execution.numba.machine.records import WORDS
from onnxlab.execution.numba.plan import engine, plan
from onnxlab.execution.numba.region import region

HERE = sys.platform == "linux" and platform.machine() == "x86_64"
_MXCSR = 28  # its place in glibc's fenv_t
_SUBNORMAL = 1 << 1
_PATTERN = 0x00000101  # 3.6e-43 as float32; also as halves of int16 small numbers


class _Flag:
    """The bit of this thread."""

    def __init__(self):
        self._libm = ctypes.CDLL("libm.so.6")
        self._state = (ctypes.c_ubyte * 32)()

    def _word(self):
        self._libm.fegetenv(self._state)
        return ctypes.c_uint32.from_buffer(self._state, _MXCSR)

    def clear(self):
        self._word().value &= ~_SUBNORMAL
        self._libm.fesetenv(self._state)

    def is_set(self):
        return bool(self._word().value & _SUBNORMAL)


def _poison(array):
    array[: array.nbytes // 4 * 4].view(np.uint32)[:] = _PATTERN


@contextmanager
def poisoned():
    """Runs of plans begin with poisoned memory; what is yielded is filled with the names of kernels that use it."""
    flag, counts, run, uncounted = _Flag(), {}, plan.Plan.run, region._UNCOUNTED

    def interpret(frame, first, last, threads):
        names = {address: name for name, address in engine._addresses.items()}
        (call,) = frame.calls(1)
        for number in range(first, last):
            flag.clear()
            engine._interpret(call, number, number + 1)
            if flag.is_set():
                kernel = names[int(frame.table[number * WORDS])]
                counts[kernel] = counts.get(kernel, 0) + 1

    def poisoned_run(self, inputs, threads, _, *rest, **more):
        frame = self.frame()
        frame.calls(1)
        _poison(frame.arena)
        _poison(frame._scratch[0])
        self._idle.append(frame)
        return run(self, inputs, 1, interpret, *rest, **more)

    plan.Plan.run = poisoned_run
    region._UNCOUNTED = -1  # no plan is called past `run`
    try:
        yield counts
    finally:
        plan.Plan.run, region._UNCOUNTED = run, uncounted


def main(*names):
    import onnxlab
    from bench.regions import hot
    from tests.support.corpus import inputs, path

    for name in names:
        with poisoned() as counts:
            hot(onnxlab.load(path(name))).run(inputs(name, path(name)), keep=False)
        print(name, counts or "none", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
