"""float16 to float32 and back by vectors, with instructions of the processor and without: as NumPy does it."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import numba, numpy as np
from onnxlab.execution.numba.kernels.simd.lanes import WIDTH, to_half
from onnxlab.execution.numba.kernels.simd.memory import load, load_half, store, store_half

@numba.njit
def widen(source, target, count):
    for i in range(0, count, WIDTH):
        store(target + i * 4, load_half(source + i * 2))

@numba.njit
def narrow(source, target, count):
    for i in range(0, count, WIDTH):
        store_half(target + i * 2, load(source + i * 4))

@numba.njit
def rounded(source, target, count):
    for i in range(0, count, WIDTH):
        store(target + i * 4, to_half(load(source + i * 4)))

def same(a, b):
    number = ~np.isnan(b)
    np.testing.assert_array_equal(np.isnan(a), ~number)
    np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
    np.testing.assert_array_equal(a[number], b[number])

halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
floats = np.empty(halves.size, np.float32)
widen(halves.ctypes.data, floats.ctypes.data, halves.size)
same(floats, halves.astype(np.float32))
bits = halves[np.isfinite(halves)].astype(np.float32).view(np.uint32)
middles = (bits.astype(np.int64) + (1 << 12)).astype(np.uint32)  # between two normal numbers, and their neighbors
random = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, np.uint32)
tiny = (np.arange(1 << 14) * 2.0**-26).astype(np.float32).view(np.uint32)  # quarters of the least float16
cases = np.concatenate([bits, bits - 1, bits + 1, middles - 1, middles, middles + 1, random, tiny, tiny + 1, tiny - 1])
cases = np.resize(cases, cases.size // 16 * 16 + 16).view(np.float32)
expected = cases.astype(np.float16)
results = np.empty_like(expected)
narrow(cases.ctypes.data, results.ctypes.data, cases.size)
same(results, expected)
back = np.empty_like(cases)
rounded(cases.ctypes.data, back.ctypes.data, cases.size)
same(back, expected.astype(np.float32))
print(WIDTH)
"""


@pytest.mark.parametrize("family", ["", "portable"])
def test_all_float16_and_what_lies_between(family: str) -> None:
    environment = os.environ | {"ONNXLAB_SIMD": family}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 4 or not family
