"""The roofline of this machine: operations and bytes per second, measured once and kept in a file."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onnxlab.argument_types import expect
from onnxlab.execution.base import blas
from onnxlab.execution.numba.machine import object_cache

_SIDE = 1024  # of the matrices: their product takes some 20 ms
_BYTES = 1 << 26  # of an array that is copied; beyond what caches hold
_ROUNDS = 64  # copies of a small array that are timed as one
_REPEATS = 5
_VERSION = 2

CACHED = 1 << 20
"""The most bytes that a node may move for them to be still in a cache, where the node before left them."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The limits of a machine.

    Attributes:
        flops: float32 operations per second, of a matrix product.
        bandwidth: bytes per second that are read or written, of copies larger than any cache.
        cached: the same of copies of at most `CACHED` bytes, which stay in a cache.
        threads: number of threads that worked at once.
    """

    flops: float
    bandwidth: float
    cached: float
    threads: int = 1

    @property
    def ridge(self) -> float:
        """Operations per byte above which arithmetic is the limit, below which memory is.

        Examples:
            >>> Roofline(flops=1e11, bandwidth=1e10, cached=4e10).ridge
            10.0
        """
        return self.flops / self.bandwidth

    def seconds(self, flops: int, nbytes: int) -> float:
        """The least time for so much work.

        Args:
            flops: operations.
            nbytes: bytes read and written.

        Returns:
            float: seconds.

        Examples:
            >>> Roofline(flops=1e11, bandwidth=1e10, cached=4e10).seconds(10**9, 10**9)
            0.1
        """
        return max(flops / self.flops, nbytes / (self.cached if nbytes <= CACHED else self.bandwidth))

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{self.flops / 1e9:.0f} GFLOP/s, {self.bandwidth / 1e9:.1f} GB/s ({self.cached / 1e9:.0f} GB/s in caches) "
            f"with {threads}; ridge at {self.ridge:.1f} FLOP per byte"
        )


def roofline(threads: int = 1, *, renew: bool = False) -> Roofline:
    """The roofline of this machine, measured where no file has it; that takes about a second.

    Args:
        threads: number of threads that work at once.
        renew: measure again, as after the machine was busy the first time.

    Raises:
        ValueError: fewer than one thread.
    """
    threads = expect(threads, int, "threads", "a whole number from 1 on")
    if threads < 1:
        raise ValueError(f"threads is {threads}: at least one is needed")
    file = object_cache.folder() / f"roofline-{threads}.json"
    return (None if renew else _read(file)) or _write(file, _measured(threads))


def _machine() -> str:
    """The machine that the figures hold for; another processor or NumPy means others."""
    model = ""
    with contextlib.suppress(OSError):  # Linux alone has it
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{_VERSION} {platform.machine()} {model or platform.processor()} {os.cpu_count()} numpy {np.__version__}"


def _read(file: Path) -> Roofline | None:
    try:
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if record.pop("machine") != _machine():
            return None
        flops, bandwidth, cached = (float(record[name]) for name in ("flops", "bandwidth", "cached"))
        read = Roofline(flops, bandwidth, cached, int(record["threads"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, cut, or not written by us
        return None
    return read if min(read.flops, read.bandwidth, read.cached) > 0 else None


def _write(file: Path, measured: Roofline) -> Roofline:
    """Keep the figures in a file; other processes see all of it or nothing, and a full disk is no error."""
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as temporary:
            json.dump({**asdict(measured), "machine": _machine()}, temporary)
        os.replace(temporary.name, file)
    return measured


def _measured(threads: int) -> Roofline:
    left = np.full((_SIDE, _SIDE), 0.5, np.float32)
    result = np.empty_like(left)
    with blas.limited(threads):
        seconds = _fastest(lambda: np.matmul(left, left, out=result))
    bandwidth, cached = _copying(_BYTES, threads, 1), _copying(CACHED // 4, threads, _ROUNDS)
    return Roofline(2 * _SIDE**3 / seconds, bandwidth, cached, threads)


def _copying(nbytes: int, threads: int, rounds: int) -> float:
    """Bytes per second that copies read and write, each thread its own arrays."""
    sources = [np.ones(nbytes if rounds > 1 else nbytes // threads, np.uint8) for _ in range(threads)]
    targets = [np.ones_like(source) for source in sources]

    def copy(target: Any, source: Any) -> None:
        for _ in range(rounds):
            np.copyto(target, source)

    if threads == 1:
        seconds = _fastest(lambda: copy(targets[0], sources[0]))
        return 2 * rounds * sources[0].nbytes / seconds
    with ThreadPoolExecutor(threads) as pool:
        seconds = _fastest(lambda: list(pool.map(copy, targets, sources)))
    return 2 * rounds * sum(source.nbytes for source in sources) / seconds


def _fastest(action: Callable[[], object]) -> float:
    action()
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best
