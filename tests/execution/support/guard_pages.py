"""Memory that ends, or begins, at a page which must not be touched: a kernel that goes one element too far dies there.

    python -m tests.execution.support.guard_pages end 0 200          # random regions 0 … 199
    python -m tests.execution.support.guard_pages start light_resnet50 bert_base
    python -m tests.execution.support.guard_pages end tests/execution/numba/rules/test_integer_products.py

runs them with all that kernels read and write so: inputs, outputs, constants, tables, scratch, and each value of the
arena by itself. It prints the name of each before it runs it. What is just beyond the end of a value is not the
kernels' to read either, but reading a whole vector there does no harm in the arena, so values of it get that much room.
"""

import ctypes
import faulthandler
import mmap
import sys
import warnings

import numpy as np
import pytest

from onnxlab.execution.numba.plan import arena, builder, memory, views
from onnxlab.execution.numba.region import region

_PAGE = mmap.PAGESIZE
_SLACK = 64  # the gap of plans between values of the arena
_FORBIDDEN = 0
_protect = ctypes.CDLL(None, use_errno=True).mprotect
_protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Arena(int):
    """Bytes of an arena, and the pages of it that must not be touched."""

    holes = ()


def allocated(nbytes, holes=()):
    """Pages of our own, with those at the offsets `holes` forbidden; returns them as bytes."""
    pages = mmap.mmap(-1, nbytes)
    memory = np.frombuffer(pages, np.uint8)
    base = memory.__array_interface__["data"][0]
    for hole in holes:
        if _protect(base + hole, _PAGE, _FORBIDDEN):
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory


class Guards:
    """Takes the place of how plans get their memory.

    Args:
        side: "end" or "start": where the forbidden page is.
    """

    def __init__(self, side):
        self.at_end = side == "end"

    def place(self, nbytes):
        """(bytes of pages, offset in them, offset of the page that is forbidden) for a value."""
        room = -(-max(nbytes, 1) // _PAGE) * _PAGE
        return (room + _PAGE, room - nbytes, room) if self.at_end else (room + _PAGE, _PAGE, 0)

    def memory(self, nbytes):
        if isinstance(nbytes, Arena):
            return allocated(max(nbytes, _PAGE), nbytes.holes)
        total, offset, hole = self.place(nbytes)
        return allocated(total, (hole,))[offset : offset + nbytes]

    def empty(self, shape, dtype):
        dtype = np.dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self.memory(nbytes).view(dtype).reshape(shape)

    def copied(self, array):
        array = np.asarray(array)
        if array.dtype == object or not array.size:
            return array
        copy = self.empty(array.shape, array.dtype)
        copy[...] = array
        return copy

    def lay_out(self, buffers, over=()):
        """Each value of the arena by itself."""
        total, holes = 0, []
        for buffer in buffers:
            pages, offset, hole = self.place(buffer.nbytes + _SLACK)
            buffer.offset = total + offset
            holes.append(total + hole)
            total += pages
        guarded = Arena(total)
        guarded.holes = tuple(holes)
        return guarded

    def install(self):
        memory.aligned, memory.empty, arena.lay_out = self.memory, self.empty, self.lay_out
        region.plain = lambda arrays: [self.copied(array) for array in arrays]  # type: ignore[attr-defined]
        keep, constant_view = builder.PlanBuilder.keep, views.constant_view
        builder.PlanBuilder.keep = lambda builder, array: keep(builder, self.copied(array))
        for module in list(sys.modules.values()):
            if getattr(module, "constant_view", None) is constant_view:
                module.constant_view = lambda array: constant_view(self.copied(array))  # type: ignore[attr-defined]


def run_drawings(first, last):
    from tests.execution.numba.region.test_random_regions import check_drawing

    for seed in range(first, last):
        print(seed, flush=True)
        try:
            check_drawing(seed)
        except Exception as error:  # wrong results without overruns are left to test_random_regions
            print(f"{type(error).__name__} of seed {seed}", flush=True)


def run_models(names):
    import onnxlab
    from onnxlab.execution.run.runner import Runner
    from tests.execution.support.regions import Eager, NumpyProvider
    from tests.support.corpus import inputs, path

    for name in names:
        print(name, flush=True)
        model = onnxlab.load(path(name))
        runner = Runner(model.graph, model.inference.fact, [Eager(), NumpyProvider()])
        for _ in range(2):
            runner.run(inputs(name, path(name)), keep=False)


def main(side, *arguments):
    warnings.simplefilter("ignore")
    faulthandler.enable()
    from onnxlab.execution.numba.rules.loading import load

    load()  # all modules that import `constant_view`
    Guards(side).install()
    if arguments[0].isdigit():
        run_drawings(int(arguments[0]), int(arguments[1]))
    elif arguments[0].endswith(".py"):
        pytest.main(["-q", "-x", "-p", "no:cacheprovider", *arguments])
    else:
        run_models(arguments)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
