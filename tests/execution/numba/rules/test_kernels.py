"""Each family of rules against NumPy, on the sizes that tiles and vectors do not divide."""

import numpy as np
import pytest

from onnxlab.execution.numba.lowering import matrix_products
from onnxlab.execution.numba.lowering.matrix_products import pack
from onnxlab.execution.numba.machine.vector_operations import EXPRESSIONS
from tests.execution.support.integer_operands import oracle
from tests.execution.support.regions import Recipe, assert_close, check

CHANNELS = (1, 3, 17, 31, 33)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 33, 17), (6, 16, 16), (7, 31, 33), (13, 64, 1), (3, 5, 100)])
def test_product_with_constant(rng, shape):
    m, k, n = shape
    recipe = Recipe()
    x = normal(rng, m, k)
    y = recipe.node("MatMul", recipe.input("x", x), recipe.constant(normal(rng, k, n)))
    y = recipe.node("Relu", recipe.node("Add", y, recipe.constant(normal(rng, n))))
    check(recipe.model(y), {"x": x})


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3, 7, 5), (2, 3, 5, 9)), ((3, 7, 5), (5, 33)), ((4, 1, 7, 5), (3, 5, 9)), ((5,), (2, 5, 3)),
     ((2, 3, 5), (5,)), ((1, 1), (1, 1))],
)  # fmt: skip
def test_product_of_two_inputs(rng, a, b):
    recipe = Recipe()
    feeds = {"a": normal(rng, *a), "b": normal(rng, *b)}
    y = recipe.node("MatMul", *(recipe.input(name, array) for name, array in feeds.items()))
    check(recipe.model(y), feeds)


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("constant", [False, True])
def test_gemm(rng, turned, constant):
    recipe = Recipe()
    feeds = {"a": normal(rng, *((7, 5) if turned[0] else (5, 7)))}
    b = normal(rng, *((19, 7) if turned[1] else (7, 19)))
    if not constant:
        feeds["b"] = b
    names = [recipe.input(name, array) for name, array in feeds.items()]
    if constant:
        names.append(recipe.constant(b))
    alpha = 0.5 if constant else 1.0
    c = recipe.constant(normal(rng, 1, 19))
    check(recipe.model(recipe.node("Gemm", *names, c, transA=turned[0], transB=turned[1], alpha=alpha)), feeds)


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (16, 4), (33, 41), (64, 7), (2048, 600)])
@pytest.mark.parametrize("c", [None, "columns", "row"])
def test_one_row_reads_weights_as_they_are_stored(rng, size, c, monkeypatch):
    monkeypatch.setattr(matrix_products, "_UNPACKED", range(1 << 30))
    emitted = []
    original = matrix_products.emit_one_row
    monkeypatch.setattr(matrix_products, "emit_one_row", lambda *rest: (emitted.append(size), original(*rest)))
    recipe = Recipe()
    feeds = {"x": normal(rng, 1, size[0])}
    names = [recipe.input("x", feeds["x"]), recipe.constant(normal(rng, *reversed(size)) / np.float32(size[0] ** 0.5))]
    if c == "columns":
        names.append(recipe.constant(normal(rng, size[1])))
    if c == "row":
        feeds["c"] = normal(rng, 1, size[1])
        names.append(recipe.input("c", feeds["c"]))
    product = recipe.node("Gemm", *names, transB=1)
    check(
        recipe.model(recipe.node("Clip", product, *(recipe.constant(np.float32(bound)) for bound in (-0.5, 1)))), feeds
    )
    assert emitted == [size]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 5)])
def test_convolution(rng, channels, kernel):
    """Odd channels, every stride, dilation and padding at some size, with what joins a product behind it."""
    for size in (1, 2, 5, 9):
        for strides, dilations, batch in (((1, 1), (1, 1), 1), ((2, 1), (1, 2), 3)):
            reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
            pads = [reach[0] - reach[0] // 2, reach[1], reach[0] // 2 + 1, reach[1] // 2]
            recipe = Recipe()
            x = normal(rng, batch, channels, size, size)
            w = recipe.constant(normal(rng, 18, channels, *kernel))
            bias = recipe.constant(normal(rng, 18))
            y = recipe.node("Conv", recipe.input("x", x), w, bias, strides=strides, dilations=dilations, pads=pads)
            z = recipe.node("Relu", recipe.node("Add", y, recipe.node("Sigmoid", y)))
            check(recipe.model(z), {"x": x})


@pytest.mark.parametrize(
    ("channels", "group", "out_channels"), [(17, 17, 17), (6, 3, 9), (33, 33, 66), (4, 2, 34), (16, 16, 16)]
)
def test_grouped_convolution(rng, channels, group, out_channels):
    recipe = Recipe()
    x = normal(rng, 2, channels, 7, 6)
    w = recipe.constant(normal(rng, out_channels, channels // group, 3, 3))
    y = recipe.node(
        "Conv", recipe.input("x", x), w, recipe.constant(normal(rng, out_channels)), group=group, pads=[1, 1, 1, 1]
    )
    y = recipe.node("Clip", y, recipe.constant(np.float32(-0.5)), recipe.constant(np.float32(1.5)))
    check(recipe.model(y), {"x": x})


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize(
    "extra",
    [{}, {"strides": [2, 3]}, {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]},
     {"dilations": [2, 1], "strides": [1, 2]}, {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
     {"strides": [2, 2], "output_shape": [9, 12]}],
)  # fmt: skip
def test_transposed_convolution(rng, group, extra):
    """Each phase of the strides by itself; the fewest channels and those that fill vectors."""
    for channels, out_channels, batch in ((3, 1, 1), (33, 17, 3)):
        recipe = Recipe()
        x = normal(rng, batch, channels, 4, 5)
        w = recipe.constant(normal(rng, channels, out_channels, 3, 3))
        bias = recipe.constant(normal(rng, out_channels * group))
        y = recipe.node("ConvTranspose", recipe.input("x", x), w, bias, group=group, **extra)
        check(recipe.model(recipe.node("Relu", y)), {"x": x}, 4e-6)


def test_convolution_over_one_axis(rng):
    recipe = Recipe()
    x = normal(rng, 2, 5, 31)
    y = recipe.node(
        "Conv", recipe.input("x", x), recipe.constant(normal(rng, 9, 5, 4)), strides=[3], auto_pad="SAME_UPPER"
    )
    check(recipe.model(y), {"x": x})


def test_normalization_and_residual_join_a_convolution(rng):
    recipe = Recipe()
    x = normal(rng, 2, 17, 8, 8)
    parameters = [normal(rng, 17), normal(rng, 17), normal(rng, 17), np.abs(normal(rng, 17)) + 0.5]
    source = recipe.input("x", x)
    y = recipe.node("Conv", source, recipe.constant(normal(rng, 17, 17, 3, 3)), pads=[1, 1, 1, 1])
    y = recipe.node("BatchNormalization", y, *map(recipe.constant, parameters))
    y = recipe.node("Relu", recipe.node("Add", y, source))
    y = recipe.node("BatchNormalization", y, *map(recipe.constant, parameters))
    check(recipe.model(y), {"x": x}, 4e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_residuals_of_several_matrices_are_read_where_they_lie(rng, axis):
    """A part of a larger tensor is added, whose matrices lie elsewhere than those of the product."""
    recipe = Recipe()
    x, y = normal(rng, 2, 3, 7, 20), normal(rng, 2, 3, 20, 20)
    source, other = recipe.input("x", x), recipe.input("y", y)
    halves = recipe.nodes_of("Split", 2, recipe.node("Concat", source, source, axis=axis), axis=axis)
    sums = [recipe.node("Add", recipe.node("MatMul", source, other), half) for half in halves]
    check(recipe.model(*sums), {"x": x, "y": y}, 4e-6)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("extra", [{}, {"ceil_mode": 1}, {"strides": [2, 3]}, {"auto_pad": "SAME_LOWER"}])
def test_pools(rng, op_type, extra):
    for channels in (1, 17):
        recipe = Recipe()
        x = normal(rng, 2, channels, 9, 8)
        pads = {} if "auto_pad" in extra else {"pads": [1, 0, 1, 1]}
        counting = {"count_include_pad": 1} if op_type == "AveragePool" and extra else {}
        y = recipe.node(op_type, recipe.input("x", x), kernel_shape=[3, 2], **extra, **pads, **counting)
        z = recipe.node("GlobalAveragePool" if channels == 1 else "GlobalMaxPool", y)
        check(recipe.model(y, z), {"x": x})


@pytest.mark.parametrize("length", [1, 3, 8, 17, 100, 513])
def test_rows(rng, length):
    recipe = Recipe()
    x = normal(rng, 5, length)
    source = recipe.input("x", x)
    scale, bias = recipe.constant(normal(rng, length)), recipe.constant(normal(rng, length))
    results = [
        recipe.node("Softmax", source), recipe.node("LogSoftmax", source), recipe.node("Softmax", source, axis=0),
        recipe.node("LayerNormalization", source, scale, bias), recipe.node("ReduceL2", source, keepdims=0),
    ]  # fmt: skip
    check(recipe.model(*results), {"x": x}, 4e-6)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize(
    "op_type", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceLogSumExp"]
)
def test_reductions(rng, axes, op_type):
    recipe = Recipe()
    x = normal(rng, 3, 5, 19)
    source, chosen = recipe.input("x", x), recipe.constant(np.array(axes))
    turned = recipe.node("Transpose", source, perm=[0, 2, 1])
    results = [recipe.node(op_type, source, chosen, keepdims=0), recipe.node(op_type, turned, chosen)]
    check(recipe.model(*results), {"x": x})


def test_logarithms_of_sums_with_infinities():
    recipe = Recipe()
    rows = [[1, 2, 3], [-np.inf, 0, 1], [-np.inf] * 3, [np.inf, 0, 1], [np.inf, -np.inf, 0], [np.nan, 0, 1],
            [3e38, 3e38, 0], [-3e38, -3e38, -3e38], [500, 499, 2], [-500, -501, -502]]  # fmt: skip
    x = np.array(rows, np.float32)
    result = recipe.node("ReduceLogSumExp", recipe.input("x", x), recipe.constant(np.array([1])), keepdims=0)
    check(recipe.model(result), {"x": x})


ENDS = (3e38, np.inf, -np.inf, np.nan)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, -1e-3, 20.0, -20.0, 88.5, 100.0, -104.5, *ENDS], np.float32)


@pytest.mark.parametrize(
    "op_type",
    ["Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Tanh", "Sigmoid", "Erf", "Floor", "Ceil", "Round", "Relu",
     "Softplus", "Sign", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Selu", "Softsign",
     "Mish", "Gelu"],
)  # fmt: skip
def test_functions_of_one_operand(rng, op_type):
    """Over their range and at NaN, infinities, subnormal and huge numbers."""
    ordinary = np.linspace(-12, 12, 997, dtype=np.float32)
    # GELU is defined as infinity times zero there, and each way of computing it has its own answer
    special = SPECIAL[-np.inf != SPECIAL] if op_type in ("Gelu", "Mish") else SPECIAL
    for x in (ordinary, np.concatenate([special, ordinary[:5]])):
        recipe = Recipe()
        check(recipe.model(recipe.node(op_type, recipe.input("x", x))), {"x": x}, 1e-6)


@pytest.mark.parametrize(
    "op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "GreaterOrEqual", "Equal", "PRelu"]
)
def test_functions_of_two_operands(rng, op_type):
    shapes = [
        ((16, 16), (16, 16)),
        ((3, 1, 5), (4, 1)),
        ((2, 3, 4, 5, 6), (3, 1, 5, 1)),
        ((33,), ()),
        ((2, 600), (600,)),
    ]
    for a, b in shapes:
        feeds = {"a": normal(rng, *a), "b": normal(rng, *b)}
        recipe = Recipe()
        check(recipe.model(recipe.node(op_type, *(recipe.input(n, x) for n, x in feeds.items()))), feeds)
    feeds = {"a": np.repeat(SPECIAL, len(SPECIAL)), "b": np.tile(SPECIAL, len(SPECIAL))}
    recipe = Recipe()
    if op_type != "PRelu":  # infinity times zero where NumPy only reads the sign
        check(recipe.model(recipe.node(op_type, *(recipe.input(n, x) for n, x in feeds.items()))), feeds)


def test_scalars_of_rank_none_and_one(rng):
    """A number that comes from outside with no axis at all, and constants, before they meet what is large."""
    recipe = Recipe()
    feeds = {"s": np.float32(0.7).reshape(()), "x": normal(rng, 2, 5, 33)}
    s, x = (recipe.input(name, np.asarray(array)) for name, array in feeds.items())
    scaled = recipe.node("Mul", s, recipe.constant(np.float32(0.02)))
    shifted = recipe.node("Add", recipe.node("Mul", scaled, recipe.constant(np.array([3], np.float32))), scaled)
    check(recipe.model(recipe.node("Mul", x, scaled), recipe.node("Div", x, shifted)), feeds)


def test_booleans_choose(rng):
    recipe = Recipe()
    feeds = {"x": normal(rng, 7, 33), "mask": rng.random((7, 33)) < 0.5}
    x, mask = (recipe.input(name, array) for name, array in feeds.items())
    both = recipe.node("And", mask, recipe.node("Less", x, recipe.constant(np.float32(0.3))))
    y = recipe.node("Where", recipe.node("Not", both), x, recipe.constant(np.float32(-9)))
    check(recipe.model(y, both), feeds)


def test_moves_are_views_or_copies(rng):
    recipe = Recipe()
    x = normal(rng, 4, 6, 10)
    source = recipe.input("x", x)
    turned = recipe.node("Transpose", source, perm=[2, 0, 1])
    part = recipe.node("Slice", turned, *(recipe.constant(np.array(v)) for v in ([1, 0], [9, 4], [0, 2], [2, 1])))
    joined = recipe.node("Concat", part, part, axis=1)
    flat = recipe.node("Reshape", joined, recipe.constant(np.array([0, -1])))
    padded = recipe.node("Pad", flat, recipe.constant(np.array([1, 2, 0, 3])))
    wide = recipe.node(
        "Expand", recipe.node("Unsqueeze", padded, recipe.constant(np.array([1]))), recipe.constant(np.array([1, 3, 1]))
    )
    check(recipe.model(flat, padded, wide, recipe.node("Neg", turned)), {"x": x})


def test_logarithm_of_softmax_where_numbers_are_too_large_to_add_to(rng):
    recipe = Recipe()
    x = np.stack([np.full(33, 1e9, np.float32), np.full(33, -1e30, np.float32), normal(rng, 33)])
    results = check(recipe.model(recipe.node("LogSoftmax", recipe.input("x", x))), {"x": x})
    np.testing.assert_allclose(next(iter(results.values()))[:2], -np.log(33), rtol=1e-6)


def test_inputs_of_any_layout(rng):
    recipe = Recipe()
    x = normal(rng, 6, 33)
    y = recipe.node("Softmax", recipe.node("Add", recipe.input("x", x), recipe.constant(np.float32(1))))
    model = recipe.model(y)
    memory = np.zeros(x.nbytes + 1, np.uint8)
    unaligned = memory[1:].view(np.float32).reshape(x.shape)
    unaligned[...] = x
    for array in (x.T.copy().T, unaligned, np.repeat(x, 2, axis=1)[:, ::2], x[::-1]):
        check(model, {"x": array})


def test_half_is_widened(rng):
    recipe = Recipe()
    x = normal(rng, 1, 5, 9, 9).astype(np.float16)
    w = recipe.constant(normal(rng, 7, 5, 3, 3).astype(np.float16))
    y = recipe.node("HardSwish", recipe.node("Conv", recipe.input("x", x), w))
    check(recipe.model(y), {"x": x}, 2e-3)


def test_every_operation_is_tabled():
    assert len(set(EXPRESSIONS)) == len(EXPRESSIONS)


@pytest.mark.parametrize(
    ("channels", "out_channels", "size", "batch"), [(24, 24, 12, 1), (33, 31, 14, 2), (64, 48, 17, 1)]
)
def test_winograd_and_its_error(rng, channels, out_channels, size, batch):
    """With everything that may join it; `precise` does without, to the rounding of NumPy's way."""
    recipe = Recipe()
    x = normal(rng, batch, channels, size, size + 1)
    w, bias = recipe.constant(normal(rng, out_channels, channels, 3, 3)), recipe.constant(normal(rng, out_channels))
    y = recipe.node("Conv", recipe.input("x", x), w, bias, pads=[1, 0, 1, 2])
    y = recipe.node("Add", y, recipe.input("z", normal(rng, batch, out_channels, size, size + 1)))
    y = recipe.node("Clip", y, recipe.constant(np.float32(-40)), recipe.constant(np.float32(60)))
    feeds = {"x": x, "z": normal(rng, batch, out_channels, size, size + 1)}
    check(recipe.model(y), feeds, 1e-5)
    check(recipe.model(y), feeds, 2e-6, precise=True)


@pytest.mark.parametrize("shape", [(1, 1500, 130), (2, 2049, 64), (1, 900, 100)])
def test_weights_that_lie_turned_are_packed_alike(rng, shape):
    batches, depth, columns = shape
    turned = normal(rng, batches, columns, depth).transpose(0, 2, 1)
    np.testing.assert_array_equal(pack(turned), pack(np.ascontiguousarray(turned)))


@pytest.mark.parametrize("keepdims", [0, 1, 2])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((5, 2), [1]), ((5, 2), [-1]), ((3, 4, 2), [0]), ((2, 7, 3), [2, 0]), ((2, 3), [0, 1]), ((4, 1, 6), [1])],
)
@pytest.mark.parametrize("opset", [13, 18])
def test_products_of_a_few_factors(shape, axes, keepdims, opset):
    rng, recipe = np.random.default_rng(0), Recipe(opset)
    x = rng.standard_normal(shape).astype(np.float32)
    x.reshape(-1)[3] = np.nan
    name = recipe.input("x", x)
    inputs, attributes = ((name, recipe.constant(np.array(axes))), {}) if opset == 18 else ((name,), {"axes": axes})
    model = recipe.model(recipe.node("ReduceProd", *inputs, keepdims=keepdims, **attributes))
    results = check(model, {"x": x}, 1e-6)
    for name, expected in oracle(model, {"x": x}).items():
        assert_close(results[name], expected, 1e-6, name)


@pytest.mark.parametrize("shape", [(3, 9), (2, 0)])
def test_products_of_many_factors_are_numpys(shape):
    recipe, x = Recipe(18), np.ones(shape, np.float32)
    y = recipe.node("ReduceProd", recipe.input("x", x), recipe.constant(np.array([1])))
    check(recipe.model(y), {"x": x}, compiled=False)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("shape", [(1, 3), (5, 17), (4, 3, 33)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_norms_along_an_axis(rng, shape, axis, p, dtype):
    recipe, x = Recipe(18), normal(rng, *shape).astype(dtype)
    x[0] = 0
    x.reshape(-1)[-1] = np.nan
    model = recipe.model(recipe.node("LpNormalization", recipe.input("x", x), axis=axis, p=p))
    results = check(model, {"x": x}, 2e-6 if dtype == np.float32 else 1e-3)
    for name, expected in oracle(model, {"x": x}).items() if dtype == np.float32 else ():
        assert_close(results[name], expected, 2e-6, name)
