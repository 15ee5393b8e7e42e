"""A pixel that is not finite, or very large, changes what reads it and nothing else, Winograd's way too."""

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.execution.numba.lowering import winograd as winograd_records
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numba.rules.onnx import conv
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both


def convolution(rng, channels, out_channels, size, pads, residual):
    node, vi = helper.make_node, helper.make_tensor_value_info
    weights = (rng.standard_normal((out_channels, channels, 3, 3)) * 0.1).astype(np.float32)
    nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=pads)]
    nodes.append(node("Add", ["c", "c2"], ["s"]) if residual else node("Identity", ["c"], ["s"]))
    nodes.append(node("Clip", ["s", "", "top"], ["y"]) if residual else node("Identity", ["s"], ["y"]))
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(weights[:, 0, 0, 0], "b"),
                 numpy_helper.from_array(np.float32(1e30), "top"),
                 numpy_helper.from_array(np.ones((out_channels, 1, 1), np.float32), "c2")]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [vi("x", 1, [1, channels, *size])], [vi("y", 1, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


@pytest.fixture(params=[(1 << 21, 4), (1 << 12, 4), (1 << 21, 2), (1 << 12, 2)], ids=str)
def winograd(request, monkeypatch):
    """Every convolution of 3×3 is done Winograd's way: at once, or in bands of one row of tiles; of 4×4 or 2×2."""
    band, side = request.param
    monkeypatch.setattr(winograd_records, "_BAND", band)
    monkeypatch.setattr(winograd_records, "side_of", lambda images, output: side)
    monkeypatch.setattr(conv, "suits", lambda window, *_: window.kernel == (3, 3))


def both(model, x):
    loaded = onnxlab.load(model)
    providers = (["numpy"], [NumbaProvider(background=False, least=0), "numpy"])
    return [loaded.run({"x": x}, providers=names)["y"] for names in providers]


@pytest.mark.parametrize("pixel", [np.nan, np.inf, -np.inf, 6.5504e7, 1e30, -3e5])
@pytest.mark.parametrize("place", [(10, 10), (0, 0), (29, 30), (3, 4)])
@pytest.mark.parametrize("residual", [False, True])
def test_one_pixel(winograd, pixel, place, residual):
    rng = np.random.default_rng(0)
    channels, out_channels, size, pads = (
        (19, 21, (30, 31), [1, 1, 1, 1]) if residual else (16, 16, (32, 32), [1, 0, 1, 1])
    )
    x = rng.standard_normal((1, channels, *size)).astype(np.float32)
    x[0, 5, place[0], place[1]] = pixel
    plain, compiled = both(convolution(rng, channels, out_channels, size, pads, residual), x)
    finite = np.isfinite(plain)
    np.testing.assert_array_equal(compiled[~finite], plain[~finite])
    far = finite & (np.abs(plain) < 100)
    assert far.sum() > 0.9 * finite.size
    assert np.abs(compiled[far] - plain[far]).max() < 1e-3
    near = finite & ~far
    np.testing.assert_allclose(compiled[near], plain[near], 1e-4)


def test_large_values_everywhere_and_zeros_beside_them(winograd):
    rng = np.random.default_rng(1)
    model = convolution(rng, 32, 32, (32, 32), [1, 1, 1, 1], False)
    x = (rng.standard_normal((1, 32, 32, 32)) * 1e5).astype(np.float32)
    plain, compiled = both(model, x)
    assert np.abs(plain - compiled).max() < 1e-5 * np.abs(plain).max()
    x[:, :, 16:] = 0
    plain, compiled = both(model, x)
    np.testing.assert_allclose(compiled[:, :, 17:], plain[:, :, 17:], atol=1e-6)


def test_several_odd_pixels_in_a_batch(winograd):
    rng = np.random.default_rng(2)
    model = convolution(rng, 24, 40, (21, 18), [1, 1, 1, 1], True)
    x = rng.standard_normal((1, 24, 21, 18)).astype(np.float32)
    for value in (np.nan, np.inf, 1e20, 1e7):
        x[0, rng.integers(24), rng.integers(21), rng.integers(18)] = value
    plain, compiled = both(model, x)
    np.testing.assert_array_equal(np.isnan(compiled), np.isnan(plain))
    far = np.abs(np.nan_to_num(plain)) < 100
    assert np.abs(np.nan_to_num(compiled) - np.nan_to_num(plain))[far].max() < 1e-3


_SIZES = [(64, 28, True), (160, 7, True), (64, 4, False), (8, 28, False)]


@pytest.mark.parametrize(("channels", "size", "gains"), _SIZES)
def test_small_images_and_few_channels_are_convolved_directly(channels, size, gains):
    model = convolution(np.random.default_rng(3), channels, channels, (size, size), [1, 1, 1, 1], False)
    both = Both(onnx.load_from_string(model))
    both.run({"x": np.zeros((1, channels, size, size), np.float32)})
    (plan,) = plans_of(both.regions()[0]).values()
    assert plan.records == (5 if gains else 3)


@pytest.mark.parametrize("side", [2, 4])
def test_weights_of_many_channels_are_transformed_in_pieces(monkeypatch, side):
    channels, columns = 600, 400
    weights = np.random.default_rng(4).standard_normal((1, 9 * channels, columns), dtype=np.float32)

    def transformed():
        tracemalloc.start()
        planes = winograd_records.transformed(side, weights)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return planes, peak

    pieces, peak = transformed()
    monkeypatch.setattr(winograd_records, "_AT_ONCE", channels * columns)
    whole, peak_of_whole = transformed()
    np.testing.assert_array_equal(pieces, whole)
    assert pieces.shape == ((side + 2) ** 2, channels, columns)
    assert peak < 2 * pieces.nbytes < peak_of_whole
