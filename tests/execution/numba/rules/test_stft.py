"""STFT as a product against NumPy's fast transform, and against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest

from tests.execution.support.regions import Both, Recipe, check


def model(rng, samples, step, length=None, window=None, deep=True, **attributes):
    recipe = Recipe()
    x = rng.standard_normal((2, samples, 1) if deep else (2, samples), dtype=np.float32)
    operands = [recipe.constant(np.int64(step)), "" if window is None else recipe.constant(window)]
    if length is not None:
        operands.append(recipe.constant(np.int64(length)))
    return recipe.model(recipe.node("STFT", recipe.input("x", x), *operands, **attributes)), {"x": x}


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize(
    ("samples", "step", "length"), [(200, 16, 64), (33, 1, 33), (100, 7, 31), (40, 50, 17), (9, 2, 1)]
)
def test_frames_of_any_length(samples, step, length, onesided):
    rng = np.random.default_rng(0)
    for window, deep in ((np.hanning(length).astype(np.float32), True), (None, False)):
        check(*model(rng, samples, step, length, window, deep, onesided=onesided), tolerance=4e-6, threads=2)


def test_the_window_tells_the_length_and_onnxruntime_agrees():
    rng = np.random.default_rng(1)
    proto, feeds = model(rng, 300, 20, window=rng.random(50, dtype=np.float32))
    (ours,) = check(proto, feeds, tolerance=4e-6).values()
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)[0]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_long_frames_and_complex_signals_are_left_to_numpy():
    rng = np.random.default_rng(2)
    proto, feeds = model(rng, 2000, 100, 1024)
    both = Both(proto)
    ours, theirs = both.run(feeds)
    assert [region.reason for region in both.regions()] == ["frames of 1024 samples are quicker by a fast transform"]
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    recipe, x = Recipe(), rng.standard_normal((1, 64, 2), dtype=np.float32)
    operands = [recipe.constant(np.int64(8)), "", recipe.constant(np.int64(16))]
    both = Both(recipe.model(recipe.node("STFT", recipe.input("x", x), *operands, onesided=0)))
    both.run({"x": x})
    assert not both.regions()
