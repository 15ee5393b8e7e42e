"""Random regions against NumPy: 40 in every run of the tests, 5,000 with ONNXLAB_LONG=1."""

import os

import numpy as np
import pytest

from tests.execution.support.internals import inner_values_of
from tests.execution.support.random_regions import Drawing
from tests.execution.support.regions import Both, assert_close

LONG = bool(os.environ.get("ONNXLAB_LONG"))
_ROUNDING = 1e-6
"""Differences that a float32's rounding of 1 makes: all ways of Gelu end in it where its curve does (seed 501217)."""
CHUNKS, EACH = (100, 50) if LONG else (4, 10)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_regions_equal_numpy(chunk):
    compiled = 0
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        compiled += check_drawing(seed)
    assert compiled > EACH / 2, "most of them are compiled as wholes"


def check_drawing(seed):
    """Whether all regions of a drawing could be bound; raises where results differ."""
    special = seed % 5 == 4
    drawing = Drawing(seed, nodes=4 + seed % 9, special=special)
    # Winograd's transform adds elements outside of the window and subtracts them again: infinities become NaN nearby
    both = Both(drawing.model(), threads=1 + seed % 2, precise=special or seed % 3 == 0)
    ours, theirs = both.run(drawing.feeds)
    for name, expected in theirs.items():
        if special:  # rows with NaN or infinities: where they are is compared, and what is next to them
            assert_special(ours[name], expected, f"seed {seed}: {name}")
        else:
            assert_close(ours[name], expected, 1e-4, f"seed {seed}: {name}", _ROUNDING)
    check_inner_values(both, drawing, special, seed)
    regions = both.regions()
    faults = [region.reason for region in regions if region.reason.startswith("binding failed")]
    assert not faults, f"seed {seed}: {faults}"
    return bool(regions) and not any(region.reason for region in regions)


def check_inner_values(both, drawing, special, seed):
    """Inner values of the regions are those of NumPy, node by node."""
    both.hot.run(drawing.feeds, keep="border")
    inner = inner_values_of(both.hot)
    both.cold.run(drawing.feeds)
    for name, array in inner.items():
        expected = both.cold.value(name)
        if special:
            assert_special(array, expected, f"seed {seed}: {name} inside")
        else:
            assert_close(array, expected, 1e-4, f"seed {seed}: {name} inside", _ROUNDING)


def assert_special(actual, expected, name):
    assert actual.dtype == expected.dtype, name
    assert actual.shape == expected.shape, name
    if expected.dtype.kind != "f":
        return
    plain = np.isfinite(expected) & (np.abs(expected) < 1e30)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected), err_msg=name)
    scale = np.abs(expected[plain]).max(initial=1e-30).astype(np.float64)
    error = np.abs(actual[plain].astype(np.float64) - expected[plain]).max(initial=0.0)
    assert error <= 1e-4 * scale, f"{name}: {error} of {scale}"
