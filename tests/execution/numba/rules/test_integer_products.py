"""Quantized operators against NumPy's and onnxruntime's: exact wherever theirs are.

onnxruntime's products of uint8 with int8 saturate on processors without VNNI, so weights keep to 7 bits where it is
the oracle.
"""

import numpy as np
import pytest

from tests.execution.support.integer_operands import BYTES, both, integers, normal, oracle
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, check


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 33, 17), (6, 16, 16), (7, 31, 33), (13, 64, 1), (3, 5, 100)])
@pytest.mark.parametrize("dtypes", [(a, b) for a in BYTES for b in BYTES])
def test_matmul_integer(rng, shape, dtypes):
    """All bits, all zero points, odd sizes, both factors from outside or one constant."""
    m, k, n = shape
    a, b = integers(rng, dtypes[0], 2, m, k), integers(rng, dtypes[1], k, n)
    zero = integers(rng, dtypes[0], 1)[0]
    for zero_b in (integers(rng, dtypes[1], 1)[0], integers(rng, dtypes[1], n)):
        recipe = Recipe()
        x = recipe.input("a", a)
        known = recipe.node("MatMulInteger", x, recipe.constant(b), recipe.constant(zero), recipe.constant(zero_b))
        check(recipe.model(known), {"a": a})
    recipe = Recipe()
    feeds = {"a": a, "b": b, "z": zero}
    output = recipe.node("MatMulInteger", *(recipe.input(name, array) for name, array in feeds.items()))
    check(recipe.model(output), feeds)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 13, 50])
@pytest.mark.parametrize("columns", [1, 15, 20, 33, 64, 130])
def test_bytes_at_their_limits(rng, rows, columns):
    """Tiles of all sizes, of levels and weights that would saturate 16 bits; rows with zero points of their own."""
    depth = int(rng.choice([16, 23, 32, 67])) + rows
    a, b = rng.choice(np.array([0, 255], np.uint8), (rows, depth)), rng.choice([-128, 127], (depth, columns))
    b = b.astype(np.int8)
    b[:, 0] = 127
    zeros = rng.integers(0, 256, rows).astype(np.uint8)
    recipe = Recipe()
    x = recipe.input("a", a)
    products = [
        recipe.node("MatMulInteger", x, recipe.constant(weights), recipe.constant(zero), *rest)
        for weights, zero, rest in (
            (b, zeros, ()), (b, np.uint8(255), ()), (b, np.uint8(0), ()),
            (b.view(np.uint8), np.uint8(7), [recipe.constant(np.uint8(128))]),
            (b.view(np.uint8), np.uint8(7), [recipe.constant(np.uint8(3))]),  # beyond int8 without its zero point
        )
    ]  # fmt: skip
    check(recipe.model(*products), {"a": a})


def test_rows_beyond_what_is_made_bytes_at_once(rng):
    """Deep products, and convolutions whose rows under all taps are deep, in more steps than one."""
    a, b = integers(rng, np.int8, 40, 9001), integers(rng, np.int8, 9001, 17)
    x, w = integers(rng, np.uint8, 1, 300, 9, 9), integers(rng, np.int8, 70, 300, 5, 5)
    recipe = Recipe()
    output = recipe.node("MatMulInteger", recipe.input("a", a), recipe.constant(b), recipe.constant(np.int8(-3)))
    image = recipe.node(
        "ConvInteger", recipe.input("x", x), recipe.constant(w), recipe.constant(np.uint8(100)), pads=[2] * 4
    )
    check(recipe.model(output, image), {"a": a, "x": x})


@pytest.mark.parametrize("dtypes", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_matmul_integer_as_onnxruntime(rng, dtypes):
    a, b = integers(rng, dtypes[0], 7, 65), integers(rng, dtypes[1], 65, 37, bits=7 if dtypes[1] == np.int8 else 8)
    recipe = Recipe()
    zeros = recipe.constant(dtypes[0](17)), recipe.constant(dtypes[1](3))
    both(recipe.model(recipe.node("MatMulInteger", recipe.input("a", a), recipe.constant(b), *zeros)), {"a": a})


@pytest.mark.parametrize("length", [1, 5, 64, 9000])
def test_dynamic_quantization(rng, length):
    """QuantizedView, scale and zero point, of ranges on one side of zero too."""
    for shift in (0, 5, -5):
        x = normal(rng, 3, length) + np.float32(shift)
        recipe = Recipe()
        recipe.node("DynamicQuantizeLinear", recipe.input("x", x))
        node = recipe.nodes[-1]
        node.output.extend(["scale", "zero"])
        both(recipe.model(node.output[0], "scale", "zero"), {"x": x})


@pytest.mark.parametrize("columns", [False, True])
def test_dynamic_products(rng, columns):
    """DynamicQuantizeLinear, MatMulInteger, Cast, Mul with scales and Add in a row are one product."""
    x, w = normal(rng, 2, 5, 33), integers(rng, np.int8, 33, 17, bits=7)
    scale = np.abs(normal(rng, *((17,) if columns else ()))) / 50
    recipe = Recipe()
    levels = recipe.node("DynamicQuantizeLinear", recipe.input("x", x))
    recipe.nodes[-1].output.extend(["scale", "zero"])
    sums = recipe.node("MatMulInteger", levels, recipe.constant(w), "zero")
    factor = recipe.node("Mul", "scale", recipe.constant(scale))
    y = recipe.node("Mul", recipe.node("Cast", sums, to=1), factor)
    y = recipe.node("Add", y, recipe.constant(normal(rng, 17)))
    both(recipe.model(y, recipe.node("Relu", y)), {"x": x})


@pytest.mark.parametrize("dtype", BYTES)
def test_microsofts_dynamic_products(rng, dtype):
    x, w = normal(rng, 2, 5, 33), integers(rng, dtype, 33, 17, bits=7 if dtype == np.int8 else 8)
    scale, zero, bias = np.abs(normal(rng, 17)) / 50, dtype(5), normal(rng, 17)
    recipe = Recipe()
    constants = [recipe.constant(array) for array in (w, scale, np.full(17, zero), bias)]
    y = recipe.node("DynamicQuantizeMatMul", recipe.input("x", x), *constants, domain="com.microsoft")
    both(recipe.model(y), {"x": x})
    a = integers(rng, np.uint8, 2, 5, 33)
    recipe = Recipe()
    factors = [recipe.constant(array) for array in (w, np.float32(0.25), scale, np.uint8(3), np.full(17, zero), bias)]
    y = recipe.node("MatMulIntegerToFloat", recipe.input("a", a), *factors, domain="com.microsoft")
    both(recipe.model(y), {"a": a})


@pytest.mark.parametrize("channels", [1, 3, 17, 33])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 5)])
def test_convolutions(rng, channels, kernel):
    for dtype, size, strides in ((np.uint8, 1, 1), (np.int8, 5, 2), (np.uint8, 9, 1)):
        x, w = integers(rng, dtype, 2, channels, size, size), integers(rng, np.int8, 18, channels, *kernel)
        pads = [kernel[0] - 1, kernel[1] - 1, kernel[0] // 2, kernel[1] - 1]
        recipe = Recipe()
        source = recipe.input("x", x)
        zeros = recipe.constant(dtype(9)), recipe.constant(np.int8(-4))
        sums = recipe.node("ConvInteger", source, recipe.constant(w), *zeros, pads=pads, strides=[strides, strides])
        parameters = [np.float32(0.02), dtype(9), w, np.abs(normal(rng, 18)) / 90, integers(rng, np.int8, 18),
                      np.float32(0.5), dtype(7), rng.integers(-900, 900, 18).astype(np.int32)]  # fmt: skip
        constants = [recipe.constant(array) for array in parameters]
        y = recipe.node("QLinearConv", source, *constants, pads=pads, dilations=[1, 1], strides=[1, strides])
        z = recipe.node("DequantizeLinear", y, recipe.constant(np.float32(0.5)), recipe.constant(dtype(7)))
        check(recipe.model(sums, y, z), {"x": x})


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(
    ("channels", "group", "out_channels"), [(17, 17, 17), (6, 3, 9), (40, 40, 40), (4, 2, 34), (3, 1, 18)]
)
def test_grouped_convolutions_as_onnxruntime(rng, channels, group, out_channels, last):
    x, w = (
        integers(rng, np.uint8, 2, channels, 7, 6),
        integers(rng, np.int8, out_channels, channels // group, 3, 3, bits=7),
    )
    recipe = Recipe()
    parameters = [np.float32(0.02), np.uint8(9), w, np.abs(normal(rng, out_channels)) / 90,
                  np.zeros(out_channels, np.int8), np.float32(0.05), np.uint8(7),
                  rng.integers(-900, 900, out_channels).astype(np.int32)]  # fmt: skip
    constants = [recipe.constant(array) for array in parameters]
    options = {"group": group, "pads": [1] * 4}
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        options |= {"channels_last": 1, "domain": "com.microsoft"}
    first = recipe.node("QLinearConv", recipe.input("x", x), *constants, **options)
    floats = recipe.node("DequantizeLinear", first, *constants[-3:-1])
    both(recipe.model(first, recipe.node("ReduceMean", floats, recipe.constant(np.array([1])), keepdims=0)), {"x": x})


@pytest.mark.parametrize("dtype", BYTES)
def test_quantized_products_of_matrices(rng, dtype):
    a, b = integers(rng, dtype, 2, 5, 33), integers(rng, np.int8, 33, 17, bits=7)
    recipe = Recipe()
    parameters = [np.float32(0.02), dtype(9), b, np.abs(normal(rng, 17)) / 50, integers(rng, np.int8, 17, bits=7),
                  np.float32(0.1), dtype(7)]  # fmt: skip
    y = recipe.node("QLinearMatMul", recipe.input("a", a), *map(recipe.constant, parameters))
    check(recipe.model(y), {"a": a})


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu"])
def test_elementwise_operators(rng, op_type):
    a, b = integers(rng, np.uint8, 2, 3, 19), integers(rng, np.uint8, 3, 1)
    recipe = Recipe()
    inputs = [recipe.input("a", a), *map(recipe.constant, (np.float32(0.03), np.uint8(100)))]
    if op_type in ("QLinearAdd", "QLinearMul"):
        inputs += [recipe.constant(array) for array in (b, np.float32(0.05), np.uint8(90))]
    inputs += map(recipe.constant, (np.float32(0.06), np.uint8(20)))
    check(recipe.model(recipe.node(op_type, *inputs, domain="com.microsoft")), {"a": a})


def test_quantization_of_everything(rng):
    """Per tensor and per axis, with halves, infinities and what lies beyond the range."""
    ordinary = np.linspace(-300, 300, 2401, dtype=np.float32).reshape(-1, 7)
    special = np.array([[np.inf, -np.inf, 3e38, 0.5, -0.5, 1.5, -2.5]], np.float32)
    x = np.concatenate([special, ordinary])
    recipe = Recipe()
    source, results = recipe.input("x", x), []
    for dtype, zero in ((np.uint8, 0), (np.uint8, 128), (np.int8, -7)):
        scale = recipe.constant(np.float32(0.7))
        y = recipe.node("QuantizeLinear", source, scale, recipe.constant(dtype(zero)))
        results += [y, recipe.node("DequantizeLinear", y, scale, recipe.constant(dtype(zero)))]
        scales = recipe.constant(np.abs(normal(rng, 7)) + np.float32(0.1))
        zeros = recipe.constant(integers(rng, dtype, 7))
        y = recipe.node("QuantizeLinear", source, scales, zeros, axis=-1)
        results += [y, recipe.node("DequantizeLinear", y, scales, zeros, axis=1)]
    both(recipe.model(*results), {"x": x})


def test_nan_becomes_the_lowest_level_as_in_onnxruntime():
    x = np.full(9, np.nan, np.float32)
    for dtype in BYTES:
        recipe = Recipe()
        constants = recipe.constant(np.float32(1)), recipe.constant(dtype(5))
        model = recipe.model(recipe.node("QuantizeLinear", recipe.input("x", x), *constants))
        (ours,) = Both(model).hot.run({"x": x}, keep=False).values()
        (expected,) = oracle(model, {"x": x}).values()
        np.testing.assert_array_equal(ours, expected)


class Floats:
    """A network in floats that stand for integers: QuantizeLinear and DequantizeLinear around each operator."""

    def __init__(self, rng, dtype):
        self.rng, self.dtype, self.recipe = rng, dtype, Recipe()
        self.quantized = []

    def around(self, value, scale, zero):
        constants = self.recipe.constant(np.float32(scale)), self.recipe.constant(self.dtype(zero))
        self.quantized.append(self.recipe.node("QuantizeLinear", value, *constants))
        return self.recipe.node("DequantizeLinear", self.quantized[-1], *constants)

    def weights(self, *shape, axis=0):
        count = shape[axis]
        constants = [
            integers(self.rng, np.int8, *shape),
            np.abs(normal(self.rng, count)) / 90,
            np.zeros(count, np.int8),
        ]
        return self.recipe.node("DequantizeLinear", *map(self.recipe.constant, constants), axis=axis)

    def bias(self, count):
        return self.recipe.constant(normal(self.rng, count))


@pytest.mark.parametrize("dtype", BYTES)
def test_floats_that_stand_for_integers(rng, dtype):
    """Convolutions, residual, pools and a classifier: as integers all along, within one level of the float way."""
    floats = Floats(rng, dtype)
    recipe = floats.recipe
    x = normal(rng, 2, 3, 12, 12)
    first = floats.around(recipe.input("x", x), 0.02, 3)
    y = recipe.node("Conv", first, floats.weights(17, 3, 3, 3), floats.bias(17), pads=[1] * 4)
    y = floats.around(recipe.node("Relu", y), 0.05, np.iinfo(dtype).min)
    z = floats.around(
        recipe.node("Conv", y, floats.weights(17, 1, 3, 3), floats.bias(17), pads=[1] * 4, group=17), 0.1, 0
    )
    z = floats.around(recipe.node("Conv", z, floats.weights(17, 17, 1, 1), floats.bias(17)), 0.2, 5)
    y = floats.around(recipe.node("Add", y, z), 0.2, 4)
    y = floats.around(recipe.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]), 0.2, 4)
    y = floats.around(recipe.node("GlobalAveragePool", y), 0.02, 4)
    y = recipe.node("Flatten", y)
    y = recipe.node("Gemm", floats.around(y, 0.02, 4), floats.weights(9, 17), floats.bias(9), transB=1)
    y = floats.around(y, 0.03, 6)
    w = floats.weights(9, 33, axis=1)
    y = recipe.node("MatMul", y, w)
    both_ways = Both(recipe.model(*floats.quantized, y))
    ours, theirs = both_ways.run({"x": x})
    (region,) = both_ways.regions()
    assert not region.reason
    for name in floats.quantized:
        difference = np.abs(ours[name].astype(int) - theirs[name])
        assert difference.max() <= 1
        assert np.mean(difference > 0) <= 0.02, name
    (plan,) = plans_of(region).values()
    assert plan.records < 32  # as one region of products that take in what follows them


def test_two_quantized_inputs_multiply(rng):
    floats = Floats(rng, np.int8)
    recipe = floats.recipe
    feeds = {"a": normal(rng, 2, 3, 7, 5), "b": normal(rng, 2, 3, 5, 9)}
    a, b = (floats.around(recipe.input(name, array), 0.02, 4) for name, array in feeds.items())
    check(recipe.model(recipe.node("MatMul", a, b)), feeds)


def test_moves_between_quantized_values(rng):
    """Bytes from outside that are gathered, turned and sliced before they are made floats."""
    x = integers(rng, np.uint8, 4, 6, 10)
    recipe = Recipe()
    source = recipe.input("x", x)
    turned = recipe.node("Transpose", source, perm=[2, 0, 1])
    constants = recipe.constant(np.float32(0.5)), recipe.constant(np.uint8(128))
    y = recipe.node("DequantizeLinear", turned, *constants)
    z = recipe.node("QuantizeLinear", recipe.node("Mul", y, recipe.constant(np.float32(0.3))), *constants)
    check(recipe.model(y, z, turned, recipe.node("Transpose", z)), {"x": x})


def test_batches_of_none_and_threads(rng):
    x, w = integers(rng, np.uint8, 40, 33), integers(rng, np.int8, 33, 70)
    recipe = Recipe()
    zero = recipe.constant(np.uint8(7))
    y = recipe.node("MatMulInteger", recipe.input("x", x, ["n", 33]), recipe.constant(w), zero)
    y = recipe.node("Relu", recipe.node("Cast", y, to=1))
    model = recipe.model(y)
    single, two = check(model, {"x": x}), check(model, {"x": x}, threads=2)
    np.testing.assert_array_equal(single[y], two[y])
    assert Both(model).run({"x": x[:0]})[0][y].shape == (0, 70)
