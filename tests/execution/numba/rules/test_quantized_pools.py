"""QLinear pools and Concat, and QGemm: the same integers as those of ONNX Runtime."""

import numpy as np
import pytest

from tests.execution.support.regions import Both, Recipe, check

DOMAIN = "com.microsoft"


def quantization(recipe, scale, zero, dtype):
    return [recipe.constant(np.float32(scale)), recipe.constant(np.asarray(zero, dtype))]


def same(model, feeds, ort_run):
    """Equality with ONNX Runtime to the level; means between two levels may fall to either in NumPy."""
    both = Both(model)
    compiled, plain = both.run(feeds)
    assert [region.reason for region in both.regions()] == [""]
    for name, expected in ort_run(model.SerializeToString(), feeds).items():
        np.testing.assert_array_equal(compiled[name], expected)
        assert compiled[name].dtype == plain[name].dtype
        assert np.abs(compiled[name].astype(int) - plain[name]).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("last", [0, 1])
def test_pools(dtype, last, ort_run):
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    for shape in ((2, 17, 7, 5), (1, 3, 1, 9), (3, 33, 4, 4)):
        x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
        for op_type, options in (
            ("QLinearGlobalAveragePool", {}),
            ("QLinearAveragePool", {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 1]}),
            ("QLinearAveragePool", {"kernel_shape": [1, 2], "count_include_pad": 1, "pads": [0, 0, 0, 1]}),
        ):
            recipe = Recipe(17)
            operands = [recipe.input("x", x), *quantization(recipe, 0.03, 3, dtype)]
            operands += quantization(recipe, 0.021, 5, dtype)
            y = recipe.node(op_type, *operands, domain=DOMAIN, channels_last=last, **options)
            same(recipe.model(y), {"x": x}, ort_run)


def test_concat(ort_run):
    rng = np.random.default_rng(1)
    recipe, feeds = Recipe(17), {}
    inputs = quantization(recipe, 0.05, 7, np.uint8)
    for number, size in enumerate((3, 17, 1)):
        feeds[f"x{number}"] = rng.integers(0, 256, (2, size, 5), np.uint8)
        inputs.append(recipe.input(f"x{number}", feeds[f"x{number}"]))
        inputs += quantization(recipe, 0.02 * (number + 1), number, np.uint8)
    same(recipe.model(recipe.node("QLinearConcat", *inputs, domain=DOMAIN, axis=1)), feeds, ort_run)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("floats", [False, True])
def test_gemm(turned, floats, ort_run):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 256, (5, 33), np.uint8)
    b = rng.integers(-64, 64, (17, 33) if turned else (33, 17), np.int8)  # or ONNX Runtime saturates on AVX2
    recipe = Recipe(17)
    inputs = [recipe.input("a", a), *quantization(recipe, 0.02, 120, np.uint8), recipe.constant(b)]
    inputs += quantization(recipe, 0.01, 0, np.int8)
    inputs.append(recipe.constant(rng.integers(-500, 500, 17, np.int32)))
    if not floats:
        inputs += quantization(recipe, 0.08, 99, np.uint8)
    y = recipe.node("QGemm", *inputs, domain=DOMAIN, transB=turned, alpha=0.5)
    model = recipe.model(y)
    if floats:
        check(model, {"a": a}, 1e-6)
    else:
        same(model, {"a": a}, ort_run)
