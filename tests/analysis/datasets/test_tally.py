"""Running statistics against NumPy over everything at once, merged in any division."""

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxlab.analysis.datasets import histogram
from onnxlab.analysis.datasets import tally as module
from onnxlab.analysis.datasets.tally import Tally, numbers_of
from onnxlab.execution.numba.machine.tally_rows import BINS

SPECIAL = np.array([1, np.nan, np.inf, -np.inf, 0, -0.0, 1e-42, -3.4e38], np.float32)


def arrays_of(dtype: Any, count: int = 12) -> list[np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9000, count)
    return [(rng.standard_normal(size) * 50 + 20).astype(dtype) for size in sizes]


def counted(arrays: list[Any], first: int = 0) -> Tally:
    tally = Tally(["x"])
    for index, array in enumerate(arrays, first):
        tally.add([array], index)
    return tally


@pytest.fixture(params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to count."""
    if request.param == "numpy":
        monkeypatch.setattr(module, "is_compiled", lambda: False)
    return str(request.param)


DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.uint8,
          np.int64, np.bool_, ml_dtypes.int4]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_are_numpys(dtype: Any, way: str) -> None:
    arrays = arrays_of(dtype)
    tally = counted(arrays)
    whole = np.concatenate(arrays).astype(np.float64)
    whole = whole[~np.isnan(whole)]
    finite = whole[np.isfinite(whole)]
    assert tally.count[0] == sum(array.size for array in arrays)
    assert tally.samples[0] == len(arrays)
    assert (tally.minimum[0], tally.maximum[0]) == (whole.min(), whole.max())
    assert tally.zeros[0] == np.count_nonzero(whole == 0)
    assert tally.mean[0] == pytest.approx(finite.mean(), rel=1e-12)
    assert tally.m2[0] / finite.size == pytest.approx(finite.var(), rel=1e-12)
    assert tally.bins is not None
    assert tally.bins.sum() == tally.count[0]


def test_special_elements(way: str) -> None:
    tally = counted([SPECIAL])
    assert (tally.count[0], tally.nan[0], tally.inf[0], tally.zeros[0], tally.finite[0]) == (8, 1, 2, 2, 5)
    assert (tally.minimum[0], tally.maximum[0]) == (-np.inf, np.inf)
    finite = SPECIAL[np.isfinite(SPECIAL)].astype(np.float64)
    assert tally.mean[0] == pytest.approx(finite.mean(), rel=1e-12)
    assert (tally.worst[0][0], tally.worst_at[0][0]) == (np.inf, 0)
    nothing = counted([np.full(3, np.nan, np.float32)])
    assert (nothing.nan[0], nothing.minimum[0], nothing.mean[0]) == (3, np.inf, 0.0)


def test_both_ways_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [*arrays_of(np.float32), SPECIAL, np.zeros(5000, np.float32), np.full(4096, 7, np.float32)]
    fast = counted(arrays)
    monkeypatch.setattr(module, "is_compiled", lambda: False)
    slow = counted(arrays)
    for name in ("count", "nan", "inf", "zeros", "minimum", "maximum", "bins", "worst", "worst_at"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name
    assert fast.mean[0] == pytest.approx(slow.mean[0], rel=1e-12)
    assert fast.m2[0] == pytest.approx(slow.m2[0], rel=1e-12)


@pytest.mark.parametrize("cuts", [(3,), (1, 2, 9), (6, 7), (11,)])
def test_merged_is_serial(cuts: tuple[int, ...]) -> None:
    arrays = arrays_of(np.float32)
    serial = counted(arrays)
    merged = Tally(["x"])
    edges = (0, *cuts, len(arrays))
    for start, end in itertools.pairwise(edges):
        merged.merge(counted(arrays[start:end]), start)
    for name in ("count", "samples", "nan", "inf", "zeros", "minimum", "maximum", "bins", "worst", "worst_at"):
        assert np.array_equal(getattr(merged, name), getattr(serial, name)), name
    assert merged.mean[0] == pytest.approx(serial.mean[0], rel=1e-12)
    assert merged.m2[0] == pytest.approx(serial.m2[0], rel=1e-12)


def test_a_large_offset_does_not_cancel(way: str) -> None:
    arrays = [(np.random.default_rng(seed).standard_normal(5000) + 1e4).astype(np.float32) for seed in range(5)]
    whole = np.concatenate(arrays).astype(np.float64)
    assert counted(arrays).m2[0] / whole.size == pytest.approx(whole.var(), rel=1e-12)


def test_worst_samples_are_the_largest_and_ties_go_to_the_first() -> None:
    tally = counted([np.full(2, size, np.float32) for size in (1, 9, -9, 3, 0, 7, 9)])
    assert tally.worst_at[0].tolist() == [1, 2, 6, 5, 3]
    assert tally.worst[0].tolist() == [9, 9, 9, 7, 3]


def test_what_is_no_tensor() -> None:
    assert numbers_of(np.array(["a", "b"], object)) is None
    assert numbers_of({"a": 1}) is None
    assert numbers_of(["a"]) is None
    joined = numbers_of([np.zeros(2, np.float32), np.ones((1, 3), np.float32)])
    assert joined is not None
    assert joined.size == 5
    tally = Tally(["text", "sequence", "absent", "empty"])
    tally.add([np.array(["a"], object), [np.ones(2, np.float32)], None, np.zeros((0, 3), np.float32)], 0)
    assert (tally.samples.tolist(), tally.count.tolist()) == ([1, 1, 0, 1], [0, 2, 0, 0])


def test_state_and_back() -> None:
    tally = counted(arrays_of(np.float32))
    again = Tally.of_state(tally.names, tally.state())
    for name, array in tally.state().items():
        assert np.array_equal(again.state()[name], array), name
    broken: list[Callable[[dict[str, Any]], Any]] = [
        lambda state: state.update(count=np.zeros(2, np.int64)),
        lambda state: state.update(mean=np.zeros(1, np.float32)),
        lambda state: state.update(bins_at=np.array([BINS])),
        lambda state: state.pop("worst"),
    ]
    for damage in broken:
        state = tally.state()
        damage(state)
        with pytest.raises((ValueError, KeyError)):
            Tally.of_state(tally.names, state)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.9, 0.999])
def test_quantiles_are_near(share: float) -> None:
    numbers = np.random.default_rng(1).standard_normal(200_000).astype(np.float32) * 3 + 1
    tally = counted([numbers])
    assert tally.bins is not None
    quantile = histogram.quantile(tally.bins[0], share, numbers.min(), numbers.max())
    assert quantile == pytest.approx(np.quantile(numbers, share), rel=0.07, abs=0.01)


def test_bins_hold_what_lies_between_their_edges() -> None:
    low, high = histogram.edges()
    assert (low[1:] == high[:-1]).all()
    numbers = np.array([-3.3, -1.0, 1.0, 1.1, 1.125, 5e-40, 3e38], np.float32)
    for number in numbers:
        tally = counted([np.array([number], np.float32)])
        assert tally.bins is not None
        place = int(np.flatnonzero(histogram.ascending(tally.bins[0]))[0])
        assert low[place] <= number <= high[place]


def test_entropy_clips_outliers_and_keeps_what_has_none() -> None:
    rng = np.random.default_rng(3)
    usual = rng.standard_normal(100_000).astype(np.float32)
    clipped = counted([np.append(usual, np.float32(1000))])
    assert clipped.bins is not None
    assert 2 < histogram.least_divergence(clipped.bins[0], 1000.0) < 200
    even = rng.uniform(-1, 1, 100_000).astype(np.float32)
    uniform = counted([even])
    assert uniform.bins is not None
    assert histogram.least_divergence(uniform.bins[0], 1.0) > 0.9
