"""Kernels that are compiled before a model needs them: from the first use of the package on, until all are on disk.

Kernels do not depend on shapes, so that all models on a machine share them. A separate process makes one after the
other while nothing else is to be compiled; this module does not load them. The environment variable ONNXLAB_WARM=0
turns the compilation off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from onnxlab import threads
from onnxlab.execution.base import background
from onnxlab.execution.numba.machine import availability, object_cache
from onnxlab.execution.numba.machine.compiler_process import CompilerProcess, NoCompilerError
from onnxlab.execution.numba.machine.records import INTERPRETER, MODULES

VARIABLE = "ONNXLAB_WARM"
# Niceness of the process: it yields to all others, also to the one that compiles kernels that runs asked for.
_LAST = 19
# Kernels that most models need, which come first.
_COMMON = (
    INTERPRETER, "elementwise", "copy", "gemm", "norm", "softmax", "gather", "reduce_rows", "winograd_input",
    "winograd_output", "max_pool", "gemv", "depthwise", "average_pool", "attention", "dot", "integers",
)  # fmt: skip
NAMES = tuple(dict.fromkeys((*_COMMON, *MODULES)))
"""All kernels and the interpreter, in the order in which they are made."""

_begun = 0  # id of the process that began; a forked child has no background thread
_left: list[str] = []


@dataclass(frozen=True, slots=True)
class KernelsAhead:
    """The kernels that are on disk.

    Attributes:
        ready: number of kernels on disk; `count` is the number of all kernels.
        under_way: whether the others are being made in the background.
        compiling: the name of the next one, "" where there is none.
    """

    ready: int
    count: int
    under_way: bool
    compiling: str

    def __str__(self) -> str:
        now = f", {self.compiling} is being compiled" if self.compiling else ""
        return f"{self.ready} of {self.count} kernels are on disk{now}"


def begin() -> None:
    """Have all kernels made that are not on disk, in a thread that waits for them; do nothing where turned off."""
    global _begun
    if _begun == os.getpid() or os.environ.get(VARIABLE, "1") == "0":
        return
    _begun = os.getpid()
    _left[:] = NAMES
    threads.start(_make, "onnxlab-kernels-ahead")


def is_under_way() -> bool:
    """Whether kernels are being made."""
    return bool(_left) and _begun == os.getpid()


def state() -> KernelsAhead:
    """The kernels that are there by now; none where Numba is not installed."""
    if availability.missing():
        return KernelsAhead(0, len(NAMES), False, "")
    return KernelsAhead(sum(map(object_cache.has, NAMES)), len(NAMES), is_under_way(), next(iter(_left), ""))


def _make() -> None:
    """Make one after the other, each when nothing that a run asked for is to be compiled."""
    process: CompilerProcess | None = None
    try:
        while _left:
            background.wait()
            if not object_cache.has(_left[0]):
                process = process or CompilerProcess(_LAST)
                object_cache.write(_left[0], process.compile(_left[0]))
            del _left[0]
    except (NoCompilerError, RuntimeError):  # a model that needs the kernel reports it
        _left.clear()
    finally:
        if process is not None:
            process.end()
