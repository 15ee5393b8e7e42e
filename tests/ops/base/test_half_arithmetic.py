import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onnxlab.ops.base.half_arithmetic import rounded, to_half, to_single

DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def difficult(dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """float32 of every kind: any bits, ties between neighbors, subnormals, zeros of both signs; finite."""
    generator = np.random.default_rng(seed)
    anything = generator.integers(0, 2**32, 200_000, np.uint32).view(np.float32)
    small = generator.integers(0, 0x7BFF, 100_000).astype(np.uint16)
    low, high = (bits.view(dtype).astype(np.float32) for bits in (small, (small + 1).astype(np.uint16)))
    ties = (low / 2 + high / 2).astype(np.float32)
    edges = np.float32([0.0, -0.0, 65504, -65519.99, 1e-45, 2**-25, -(2**-25), 3 * 2**-26])
    numbers = np.concatenate([anything, ties, -ties, low, -low, edges])
    return numbers[np.abs(numbers) < 65520]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rounding_is_that_of_a_cast_to_the_bit(dtype):
    every = difficult(dtype)
    for x in (every, every[np.abs(every) > 2**-14.01], every[np.abs(every) < 2**-13]):  # many, few and most subnormal
        expected = x.astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(rounded(x.copy(), dtype).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 65520.0, 3e38])
def test_what_does_not_fit_is_rounded_too(dtype, special):
    x = np.append(difficult(dtype)[:5000], np.float32(special))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(rounded(x.copy(), dtype), x.astype(dtype).astype(np.float32))
        np.testing.assert_array_equal(to_half(x), x.astype(np.float16))


def test_conversions_to_and_from_float16_are_those_of_numpy_to_the_bit():
    x = difficult(np.dtype(np.float16), 1)
    np.testing.assert_array_equal(to_half(x).view(np.uint16), x.astype(np.float16).view(np.uint16))
    every = np.arange(0x7C00, dtype=np.uint16)
    for bits in (every, every | 0x8000):
        half = bits.view(np.float16)
        np.testing.assert_array_equal(to_single(half).view(np.uint32), half.astype(np.float32).view(np.uint32))


@settings(max_examples=30, deadline=None)
@given(x=hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, min_side=0)), dtype=st.sampled_from(DTYPES))
def test_only_arrays_that_may_be_written_to_are(x, dtype):
    with np.errstate(over="ignore"):
        x.flags.writeable = False
        before = x.copy()
        result = rounded(x, dtype)
        turned = rounded(before.T.copy().T, dtype)
        np.testing.assert_array_equal(result, before.astype(dtype).astype(np.float32))
    np.testing.assert_array_equal(turned, result)
    np.testing.assert_array_equal(x, before)
