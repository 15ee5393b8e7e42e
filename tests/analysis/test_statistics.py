from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxlab.analysis.statistics import BINS, statistics


def test_floats_with_nan_and_infinities() -> None:
    result = statistics(np.array([[1, 2, 3], [np.nan, np.inf, 0]], np.float32))
    assert (result.dtype, result.shape, result.count) == ("float32", (2, 3), 6)
    assert (result.minimum, result.maximum) == (0, np.inf)
    assert (result.nan, result.inf, result.zeros) == (1, 1, 1)
    assert result.mean == pytest.approx(1.5)
    assert result.std == pytest.approx(np.std([1, 2, 3, 0]))
    assert sum(result.counts) == 4
    assert (result.edges[0], result.edges[-1], len(result.edges)) == (0, 3, BINS + 1)


def test_agrees_with_numpy_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxlab.analysis.statistics._CHUNK", 100)
    array = np.random.default_rng(0).normal(1e6, 1, 1234).astype(np.float32)
    result = statistics(array)
    assert result.mean == pytest.approx(array.mean(dtype=np.float64), rel=1e-12)
    assert result.std == pytest.approx(array.std(dtype=np.float64), rel=1e-6)
    expected, _ = np.histogram(array.astype(np.float64), BINS)
    assert np.abs(np.array(result.counts) - expected).sum() <= 2  # a value on a border


@pytest.mark.parametrize(
    "dtype",
    [bool, np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4],
)
def test_every_kind_of_number(dtype: Any) -> None:
    result = statistics(np.array([0, 1, 1, 0, 1]).astype(dtype))
    assert (result.minimum, result.maximum, result.zeros, sum(result.counts)) == (0, 1, 2, 5)
    assert result.mean == pytest.approx(0.6)


def test_large_integers_stay_exact() -> None:
    result = statistics(np.array([2**62 + 1, -(2**62) - 1]))
    assert (result.minimum, result.maximum) == (-(2**62) - 1, 2**62 + 1)


def test_a_constant_and_an_extreme_range() -> None:
    assert statistics(np.full(7, 3.5)).counts == (7, *[0] * (BINS - 1))
    widest = statistics(np.array([-1.7e308, 1.7e308]))
    assert (widest.counts[0], widest.counts[-1]) == (1, 1)


def test_nothing_but_nan_or_infinity() -> None:
    result = statistics(np.array([np.nan, -np.inf], np.float32))
    assert (result.mean, result.counts, result.minimum, result.nan) == (None, (), -np.inf, 1)


def test_complex_numbers_by_magnitude() -> None:
    assert statistics(np.array([3 + 4j, 0])).maximum == 5


def test_values_that_are_no_number() -> None:
    assert statistics(np.array(["a", "b"], object)).dtype == "string"
    assert statistics(np.zeros((0, 3))).shape == (0, 3)
    assert statistics(None).dtype == "none"
    assert statistics({1: 2.0}).dtype == "map"
    sequence = statistics([np.zeros(2), np.ones(3)])
    assert (sequence.dtype, sequence.shape, sequence.count, sequence.zeros) == ("sequence", (2,), 5, 2)
