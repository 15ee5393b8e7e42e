"""Quantized operators against NumPy's and onnxruntime's: exact wherever theirs are.

onnxruntime's products of uint8 with int8 saturate on processors without VNNI, so weights keep to 7 bits where it is
the oracle.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

from onnxlab.execution.numba.machine.host import HOSTS
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, assert_close, check

BYTES = (np.uint8, np.int8)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def integers(rng, dtype, *shape, bits=8):
    if bits == 8:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return rng.integers(-64, 64, shape).astype(np.int8)


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def oracle(model, feeds):
    """What onnxruntime makes of it, without its optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds), strict=True))


def both(model, feeds, tolerance=1e-6, **options):
    """Against NumPy and onnxruntime; integers must be the same."""
    ours = check(model, feeds, tolerance, **options)
    for name, expected in oracle(model, feeds).items():
        assert_close(ours[name], expected, tolerance, name)
    return ours


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
    made = recipe.node("MatMulInteger", *(recipe.input(name, array) for name, array in feeds.items()))
    check(recipe.model(made), feeds)


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
    made = [
        recipe.node("MatMulInteger", x, recipe.constant(weights), recipe.constant(zero), *rest)
        for weights, zero, rest in (
            (b, zeros, ()), (b, np.uint8(255), ()), (b, np.uint8(0), ()),
            (b.view(np.uint8), np.uint8(7), [recipe.constant(np.uint8(128))]),
            (b.view(np.uint8), np.uint8(7), [recipe.constant(np.uint8(3))]),  # beyond int8 without its zero point
        )
    ]  # fmt: skip
    check(recipe.model(*made), {"a": a})


def test_rows_beyond_what_is_made_bytes_at_once(rng):
    """Deep products, and convolutions whose rows under all taps are deep, in more steps than one."""
    a, b = integers(rng, np.int8, 40, 9001), integers(rng, np.int8, 9001, 17)
    x, w = integers(rng, np.uint8, 1, 300, 9, 9), integers(rng, np.int8, 70, 300, 5, 5)
    recipe = Recipe()
    made = recipe.node("MatMulInteger", recipe.input("a", a), recipe.constant(b), recipe.constant(np.int8(-3)))
    image = recipe.node(
        "ConvInteger", recipe.input("x", x), recipe.constant(w), recipe.constant(np.uint8(100)), pads=[2] * 4
    )
    check(recipe.model(made, image), {"a": a, "x": x})


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
@pytest.mark.parametrize(("channels", "group", "made"), [(17, 17, 17), (6, 3, 9), (40, 40, 40), (4, 2, 34), (3, 1, 18)])
def test_grouped_convolutions_as_onnxruntime(rng, channels, group, made, last):
    x, w = integers(rng, np.uint8, 2, channels, 7, 6), integers(rng, np.int8, made, channels // group, 3, 3, bits=7)
    recipe = Recipe()
    parameters = [np.float32(0.02), np.uint8(9), w, np.abs(normal(rng, made)) / 90, np.zeros(made, np.int8),
                  np.float32(0.05), np.uint8(7), rng.integers(-900, 900, made).astype(np.int32)]  # fmt: skip
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
    made = Floats(rng, dtype)
    recipe = made.recipe
    x = normal(rng, 2, 3, 12, 12)
    first = made.around(recipe.input("x", x), 0.02, 3)
    y = recipe.node("Conv", first, made.weights(17, 3, 3, 3), made.bias(17), pads=[1] * 4)
    y = made.around(recipe.node("Relu", y), 0.05, np.iinfo(dtype).min)
    z = made.around(recipe.node("Conv", y, made.weights(17, 1, 3, 3), made.bias(17), pads=[1] * 4, group=17), 0.1, 0)
    z = made.around(recipe.node("Conv", z, made.weights(17, 17, 1, 1), made.bias(17)), 0.2, 5)
    y = made.around(recipe.node("Add", y, z), 0.2, 4)
    y = made.around(recipe.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]), 0.2, 4)
    y = made.around(recipe.node("GlobalAveragePool", y), 0.02, 4)
    y = recipe.node("Flatten", y)
    y = recipe.node("Gemm", made.around(y, 0.02, 4), made.weights(9, 17), made.bias(9), transB=1)
    y = made.around(y, 0.03, 6)
    w = made.weights(9, 33, axis=1)
    y = recipe.node("MatMul", y, w)
    both_ways = Both(recipe.model(*made.quantized, y))
    ours, theirs = both_ways.run({"x": x})
    (region,) = both_ways.regions()
    assert not region.reason
    for name in made.quantized:
        difference = np.abs(ours[name].astype(int) - theirs[name])
        assert difference.max() <= 1
        assert np.mean(difference > 0) <= 0.02, name
    (plan,) = plans_of(region).values()
    assert plan.records < 32  # as one region of products that take in what follows them


def test_two_quantized_inputs_multiply(rng):
    made = Floats(rng, np.int8)
    recipe = made.recipe
    feeds = {"a": normal(rng, 2, 3, 7, 5), "b": normal(rng, 2, 3, 5, 9)}
    a, b = (made.around(recipe.input(name, array), 0.02, 4) for name, array in feeds.items())
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
    one, two = check(model, {"x": x}), check(model, {"x": x}, threads=2)
    np.testing.assert_array_equal(one[y], two[y])
    assert Both(model).run({"x": x[:0]})[0][y].shape == (0, 70)


@pytest.mark.parametrize(
    ("processor", "wanted"), [("znver4", "vpdpwssd"), ("sapphirerapids", "vpdpwssd"), ("x86-64-v3", "vpmaddwd")]
)
def test_pairs_are_one_instruction(processor, wanted, monkeypatch):
    """Products and sum of pairs, also on processors that are not this one, whose code cannot run here."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels.simd import narrow_integers

    lanes = 8 if wanted == "vpmaddwd" else 16
    names = {8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
    monkeypatch.setattr(narrow_integers, "_PAIRS", ((lanes, names[lanes]),))
    sums, shorts = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(16), 2 * lanes)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(sums, [sums, shorts, shorts]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    total, a, b = function.args
    builder.ret(builder.add(total, narrow_integers.pairs(builder, a, b)))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=processor, opt=3)
    assert wanted in machine.emit_assembly(llvm.parse_assembly(str(module)))


@pytest.mark.parametrize("narrow_weights", [True, False])
def test_a_tile_of_pairs_adds_by_one_instruction(narrow_weights, monkeypatch):
    """Of many rows; LLVM makes two of every second one where a sum takes two pairs in a row."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels import dot
    from onnxlab.execution.numba.kernels.simd import narrow_integers
    from onnxlab.execution.numba.kernels.simd.lanes import WIDTH
    from onnxlab.execution.numba.kernels.simd.microkernel import ROWS, VECTORS

    names = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
    monkeypatch.setattr(narrow_integers, "_PAIRS", ((WIDTH, names[WIDTH]),))
    module, word = ir.Module(), ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 8), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    dot._build(builder, ROWS, narrow_weights, *function.args)
    builder.ret_void()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu="sapphirerapids", opt=3)
    parsed = llvm.parse_assembly(str(module))
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    made = machine.emit_assembly(parsed)
    assert made.count("vpdpwssd") == ROWS * VECTORS
    assert "vpmaddwd" not in made


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("instruction", [True, False])
@pytest.mark.parametrize("vnni", [True, False])
def test_quads(rng, lanes, instruction, vnni, monkeypatch):
    """By the processor's instructions, halves of vectors too wide for these, and written out for others."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels.simd import narrow_integers
    from onnxlab.execution.numba.machine import object_loading
    from onnxlab.execution.numba.machine.compilation import ENTRY

    monkeypatch.setattr(narrow_integers, "VNNI", vnni)
    for name in ("_PAIRS", "_BYTE_PAIRS", "_QUADS"):
        if not instruction:
            monkeypatch.setattr(narrow_integers, name, ())
    sums, bytes_ = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(8), 4 * lanes)
    word = ir.IntType(64)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 3), ENTRY)
    builder = ir.IRBuilder(function.append_basic_block())
    a, b = (builder.load(builder.inttoptr(place, bytes_.as_pointer()), align=1) for place in function.args[:2])
    place = builder.inttoptr(function.args[2], sums.as_pointer())
    builder.store(narrow_integers.add_quads(builder, builder.load(place, align=1), a, b), place, align=1)
    builder.ret_void()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic"
    )
    code = machine.emit_object(llvm.parse_assembly(str(module)))
    levels = rng.integers(0, 256, (lanes, 4)).astype(np.uint8)
    lowest = -128 if vnni else -64  # beyond which two neighbors would saturate
    weights = rng.integers(lowest, -lowest, (lanes, 4)).astype(np.int8)
    levels[:2], weights[0], weights[1] = 255, lowest, -lowest - 1
    found = rng.integers(-1000, 1000, lanes).astype(np.int32)
    expected = found + (levels.astype(np.int32) * weights).sum(axis=1)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(object_loading.load("quads", code))
    call(*(array.__array_interface__["data"][0] for array in (levels, weights, found)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("processor", "lanes"), [("znver4", 16), ("sapphirerapids", 8), ("alderlake", 8)])
def test_quads_are_one_instruction(processor, lanes, monkeypatch):
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels.simd import narrow_integers

    monkeypatch.setattr(narrow_integers, "VNNI", True)
    monkeypatch.setattr(narrow_integers, "_QUADS", ((lanes, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"),))
    sums, bytes_ = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(8), 4 * lanes)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(sums, [sums, bytes_, bytes_]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(narrow_integers.add_quads(builder, *function.args))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=processor, opt=3)
    made = machine.emit_assembly(llvm.parse_assembly(str(module)))
    assert made.count("vpdpbusd") == 1
    assert "vpmadd" not in made


@pytest.mark.skipif(not os.environ.get("ONNXLAB_LONG"), reason="every kernel is compiled anew: minutes")
@pytest.mark.parametrize("width", sorted(HOSTS))
def test_other_widths_of_vectors(width):
    files = [
        f"tests/execution/numba/rules/test_{name}.py" for name in ("integer_products", "recurrent", "low_bits", "ml")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    environment = {name: value for name, value in os.environ.items() if name != "ONNXLAB_LONG"}
    done = subprocess.run(command, env=environment | {"ONNXLAB_SIMD": width}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
