"""Every rule that comes with onnxlab, alone, on a model that it is for, against onnxruntime before and after."""

from dataclasses import dataclass

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import onnxlab
from onnxlab.transforms.rules import built_in_rules
from tests.transforms.test_simplify import parsed, weights


@dataclass(frozen=True)
class Example:
    """A model that a rule is for, and the operators that it leaves, Constant apart; `runs` where onnxruntime can."""

    body: str
    left: str
    inputs: str = "float[b,4] x"
    opset: int = 18
    shape: tuple[int, ...] = (3, 4)
    runs: bool = True


def number(name: str, value: float, kind: str = "float") -> str:
    return f"{name} = Constant<value = {kind} {{{value}}}>() "


def ints(name: str, *values: int) -> str:
    return f"{name} = Constant<value_ints = [{', '.join(map(str, values))}]>() "


def tensor(name: str, *shape: int, seed: int = 0) -> str:
    return f"{name} = Constant<value = {weights(*shape, seed=seed)}>() "


IMAGE = {"inputs": "float[b,3,8,8] x", "shape": (2, 3, 8, 8)}
ROWS = {"inputs": "float[b,5,4] x", "shape": (2, 5, 4)}
WIDE = {"inputs": "float[b,5,64] x", "shape": (2, 5, 64)}
CONV = f"{tensor('w', 2, 3, 3, 3)} c = Conv(x, w)"
NORM = "".join(tensor(f"n{place}", 2, seed=3 + place) for place in range(4))
SIX = f"{number('three', 3)}{number('zero', 0)}{number('six', 6)} a = Add(x, three) c = Clip(a, zero, six)"
ERF = f"{number('r', 2**0.5)}{number('o', 1)}{number('h', 0.5)} d = Div(x, r) e = Erf(d) f = Add(e, o)"
TANH = (
    f"{number('k', 0.044715)}{number('p', 3)}{number('s', 0.7978845608)}{number('o', 1)}{number('h', 0.5)}"
    "q = Pow(x, p) i = Mul(k, q) j = Add(x, i) l = Mul(j, s) t = Tanh(l) f = Add(t, o)"
)
GELU = " g = Mul(x, f) y = Mul(g, h)"
LAYER = f"""{number("p", 2)}{number("e", 1e-5)}{tensor("g", 4, seed=1)}{tensor("b", 4, seed=2)}{ints("axes", -1)}
    m = ReduceMean(x, axes) d = Sub(x, m) q = Pow(d, p) v = ReduceMean(q, axes) w = Add(v, e) s = Sqrt(w) """
QUANT = f"{number('s', 0.1)} z = Constant<value = uint8 {{128}}>() "
SCORES = f"""{number("c", 0.5)} t = Transpose<perm = [0, 1, 3, 2]>(x) p = MatMul(x, t) n = Mul(p, c) """
HEADS = f"""{ints("h", 0, 0, 2, 32)}{ints("w", 0, 0, 64)}{number("c", 0.5)} q0 = Reshape(x, h) k0 = Reshape(x, h)
    v0 = Reshape(x, h) q = Transpose<perm = [0, 2, 1, 3]>(q0) v = Transpose<perm = [0, 2, 1, 3]>(v0)
    t = Transpose<perm = [0, 2, 3, 1]>(k0) p = MatMul(q, t) n = Mul(p, c) """
JOINED = "a = MatMul(o, v) j = Transpose<perm = [0, 2, 1, 3]>(a) y = Reshape(j, w)"
FOUR = {"inputs": "float[b,2,5,4] x", "shape": (2, 2, 5, 4)}
LSTM = f"{tensor('w', 1, 12, 4)}{tensor('r', 1, 12, 3)} k = Constant<value = float[1,2,3] {{0,0,0,0,0,0}}>() "

EXAMPLES = {
    "identity": Example("a = Identity(x) y = Neg(a)", "Neg"),
    "same_shape": Example(ints("s", 0, 4) + "a = Reshape(x, s) y = Neg(a)", "Neg"),
    "same_type": Example("a = Cast<to = 1>(x) y = Neg(a)", "Neg"),
    "dropout": Example("a = Dropout(x) y = Neg(a)", "Neg"),
    "same_order": Example("a = Transpose<perm = [0, 1]>(x) y = Neg(a)", "Neg"),
    "no_padding": Example(ints("p", 0, 0, 0, 0) + "a = Pad(x, p) y = Neg(a)", "Neg"),
    "whole_slice": Example(ints("s", 0) + ints("e", 9) + ints("i", 1) + "a = Slice(x, s, e, i) y = Neg(a)", "Neg"),
    "single_operand": Example("a = Concat<axis = 0>(x) y = Neg(a)", "Neg"),
    "times_one": Example(number("o", 1) + "a = Mul(o, x) y = Neg(a)", "Neg"),
    "divided_by_one": Example(number("o", 1) + "a = Div(x, o) y = Neg(a)", "Neg"),
    "plus_zero": Example(number("o", 0) + "a = Add(o, x) y = Neg(a)", "Neg"),
    "minus_zero": Example(number("o", 0) + "a = Sub(x, o) y = Neg(a)", "Neg"),
    "transposes": Example(
        "a = Transpose(x) b = Transpose<perm = [1, 0]>(a) c = Transpose<perm = [1, 0]>(b) y = Neg(c)", "Transpose Neg"
    ),
    "casts": Example("a = Cast<to = 11>(x) b = Cast<to = 1>(a) y = Neg(b)", "Neg"),
    "reshapes": Example(ints("p", 0) + "a = Unsqueeze(x, p) b = Squeeze(a, p) y = Neg(b)", "Neg"),
    "slices": Example(
        ints("z", 0) + ints("o", 1) + ints("t", 3) + "a = Slice(x, z, t, o) b = Slice(a, z, o, z) y = Neg(b)",
        "Slice Neg",
    ),
    **{
        f"{op_type.lower()}_again": Example(f"a = {op_type}(x) y = {op_type}(a)", op_type)
        for op_type in ("Relu", "Abs", "Ceil", "Floor", "Round", "Sign")
    },
    "not_not": Example("c = IsNaN(x) a = Not(c) b = Not(a) y = Cast<to = 1>(b)", "IsNaN Cast"),
    "neg_neg": Example("a = Neg(x) b = Neg(a) y = Relu(b)", "Relu"),
    "and_true": Example(number("t", 1, "bool") + "c = IsNaN(x) a = And(t, c) y = Cast<to = 1>(a)", "IsNaN Cast"),
    "or_false": Example(number("t", 0, "bool") + "c = IsNaN(x) a = Or(c, t) y = Cast<to = 1>(a)", "IsNaN Cast"),
    "where_true": Example(number("t", 1, "bool") + "a = Exp(x) b = Where(t, x, a) y = Neg(b)", "Neg"),
    "where_false": Example(number("t", 0, "bool") + "a = Exp(x) b = Where(t, a, x) y = Neg(b)", "Neg"),
    "concat_concat": Example("a = Exp(x) b = Concat<axis = 1>(x, a) y = Concat<axis = 1>(b, x)", "Exp Concat"),
    "unsqueezes": Example(
        ints("p", 0) + ints("q", 2) + "a = Unsqueeze(x, p) b = Unsqueeze(a, q) y = Neg(b)", "Unsqueeze Neg"
    ),
    "conv_pad": Example(
        f"{tensor('w', 2, 3, 3, 3)}{ints('p', 0, 0, 1, 2, 0, 0, 0, 1)} a = Pad(x, p) y = Conv(a, w)", "Conv", **IMAGE
    ),
    "gemm_transpose_a": Example(
        tensor("w", 4, 5) + "t = Transpose<perm = [1, 0]>(x) y = Gemm<transA = 1>(t, w)", "Gemm"
    ),
    "gemm_transpose_b": Example(tensor("w", 5, 4) + "t = Transpose<perm = [1, 0]>(w) y = Gemm(x, t)", "Gemm"),
    "zero_states": Example(
        LSTM + "y = LSTM<hidden_size = 3>(x, w, r, , , k, k)", "LSTM", "float[b,2,4] x", shape=(3, 2, 4)
    ),
    "quantize_of_dequantize": Example(
        QUANT
        + """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        r = QuantizeLinear(d, s, z) y = DequantizeLinear(r, s, z)""",
        "QuantizeLinear DequantizeLinear",
    ),
    "quantized_transpose": Example(
        QUANT
        + """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        t = Transpose(d) r = QuantizeLinear(t, s, z) y = DequantizeLinear(r, s, z)""",
        "QuantizeLinear Transpose DequantizeLinear",
    ),
    "quantized_reshape": Example(
        QUANT
        + ints("n", -1)
        + """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        t = Reshape(d, n) r = QuantizeLinear(t, s, z) y = DequantizeLinear(r, s, z)""",
        "QuantizeLinear Reshape DequantizeLinear",
    ),
    "quantized_flatten": Example(
        QUANT
        + """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        t = Flatten(d) r = QuantizeLinear(t, s, z) y = DequantizeLinear(r, s, z)""",
        "QuantizeLinear Flatten DequantizeLinear",
    ),
    "quantized_squeeze": Example(
        QUANT
        + ints("n", 1)
        + """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        t = Squeeze(d, n) r = QuantizeLinear(t, s, z) y = DequantizeLinear(r, s, z)""",
        "QuantizeLinear Squeeze DequantizeLinear",
        "float[b,1] x",
        shape=(3, 1),
    ),
    "quantized_unsqueeze": Example(
        QUANT
        + ints("n", 1)
        + """q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        t = Unsqueeze(d, n) r = QuantizeLinear(t, s, z) y = DequantizeLinear(r, s, z)""",
        "QuantizeLinear Unsqueeze DequantizeLinear",
    ),
    "conv_batch_normalization": Example(f"{CONV} {NORM} y = BatchNormalization(c, n0, n1, n2, n3)", "Conv", **IMAGE),
    "conv_mul": Example(f"{CONV} {tensor('s', 2, 1, 1)} y = Mul(s, c)", "Conv", **IMAGE),
    "conv_add": Example(f"{CONV} {tensor('s', 2, 1, 1)} y = Add(s, c)", "Conv", **IMAGE),
    "matmul_add": Example(tensor("w", 4, 5) + tensor("b", 5) + "m = MatMul(x, w) y = Add(b, m)", "Gemm"),
    "gemm_add": Example(tensor("w", 4, 5) + tensor("b", 5) + "m = Gemm(x, w) y = Add(b, m)", "Gemm"),
    "gemm_batch_normalization": Example(
        f"{tensor('w', 2, 4)} g = Gemm<transB = 1>(x, w) {NORM} y = BatchNormalization(g, n0, n1, n2, n3)", "Gemm"
    ),
    "gemm_mul": Example(tensor("w", 4, 5) + tensor("b", 5) + "m = Gemm(x, w, b) y = Mul(m, b)", "Gemm"),
    "matmul_mul": Example(tensor("w", 4, 5) + tensor("b", 5) + "m = MatMul(x, w) y = Mul(m, b)", "MatMul", **ROWS),
    "multi_head_attention_microsoft": Example(
        HEADS + "o = Softmax<axis = -1>(n) " + JOINED, "MultiHeadAttention", **WIDE
    ),
    "multi_head_attention_mask_microsoft": Example(
        HEADS + tensor("m", 1, 1, 5, 5) + "k = Add(m, n) o = Softmax<axis = -1>(k) " + JOINED,
        "MultiHeadAttention",
        **WIDE,
    ),
    "decompose_rms_normalization": Example(
        tensor("g", 4) + "y = RMSNormalization(x, g)", "Mul ReduceMean Add Sqrt Div Mul", opset=23, runs=False
    ),
    "decompose_attention": Example(
        "y = Attention(x, x, x)", "Transpose MatMul Mul Softmax MatMul", opset=23, runs=False, **FOUR
    ),
    "decompose_attention_mask": Example(
        tensor("m", 1, 1, 5, 5) + "y = Attention<scale = 0.3>(x, x, x, m)",
        "Transpose MatMul Mul Add Softmax MatMul",
        opset=23,
        runs=False,
        **FOUR,
    ),
    "attention": Example(
        SCORES + "o = Softmax<axis = -1>(n) y = MatMul(o, x)", "Attention", opset=23, runs=False, **FOUR
    ),
    "attention_mask": Example(
        tensor("m", 1, 1, 5, 5) + SCORES + "k = Add(n, m) o = Softmax<axis = -1>(k) y = MatMul(o, x)",
        "Attention",
        opset=23,
        runs=False,
        **FOUR,
    ),
    "layer_normalization_bias": Example(LAYER + "n = Div(d, s) f = Mul(g, n) y = Add(b, f)", "LayerNormalization"),
    "layer_normalization": Example(LAYER + "r = Reciprocal(s) n = Mul(d, r) y = Mul(g, n)", "LayerNormalization"),
    "layer_normalization_plain": Example(LAYER + "n = Div(d, s) y = Neg(n)", "LayerNormalization Neg"),
    "layer_normalization_add": Example(
        tensor("g", 4) + "n = LayerNormalization(x, g) y = Add(n, g)", "LayerNormalization"
    ),
    "rms_normalization": Example(
        f"{number('p', 2)}{number('e', 1e-5)}{tensor('g', 4)}{ints('axes', -1)} q = Pow(x, p) v = ReduceMean(q, axes)"
        "w = Add(v, e) s = Sqrt(w) n = Div(x, s) y = Mul(n, g)",
        "RMSNormalization",
        opset=23,
        runs=False,
    ),
    "skip_layer_normalization_microsoft": Example(
        tensor("g", 4) + "a = Neg(x) s = Add(x, a) y = LayerNormalization(s, g)", "Neg SkipLayerNormalization", **ROWS
    ),
    "clip_of_min_max": Example(number("l", -1) + number("h", 1) + "a = Max(x, l) y = Min(h, a)", "Clip"),
    "hard_sigmoid": Example(SIX + " y = Div(c, six)", "HardSigmoid"),
    "hard_swish": Example(SIX + " m = Mul(x, c) y = Div(m, six)", "HardSwish"),
    "mish": Example("s = Softplus(x) t = Tanh(s) y = Mul(t, x)", "Mish"),
    "swish": Example("s = Sigmoid(x) y = Mul(s, x)", "Swish", opset=24, runs=False),
    "scaled_swish": Example(
        number("a", 1.7) + "m = Mul(x, a) s = Sigmoid(m) y = Mul(s, x)", "Swish", opset=24, runs=False
    ),
    "gelu": Example(ERF + GELU, "Gelu", opset=20),
    "gelu_tanh": Example(TANH + GELU, "Gelu", opset=20),
    "gelu_microsoft": Example(ERF + GELU, "Gelu"),
    "fast_gelu_microsoft": Example(TANH + GELU, "FastGelu"),
    "quick_gelu_microsoft": Example(number("a", 1.7) + "m = Mul(x, a) s = Sigmoid(m) y = Mul(s, x)", "QuickGelu"),
    "silu_microsoft": Example("s = Sigmoid(x) y = Mul(s, x)", "QuickGelu"),
    "bias_gelu_microsoft": Example(tensor("b", 4) + "a = Add(x, b) y = com.microsoft.Gelu(a)", "BiasGelu"),
    "transposes_apart": Example(
        tensor("k", 4, 1) + "a = Transpose<perm = [1, 0]>(x) b = Relu(a) c = Mul(k, b) d = Transpose<perm = [1, 0]>(c)"
        "y = Neg(d)",
        "Relu Mul Transpose Neg",
    ),
    "decompose_gelu": Example("y = Gelu(x)", "Mul Mul Erf Add Mul", opset=20),
    "decompose_gelu_tanh": Example(
        'y = Gelu<approximate = "tanh">(x)', "Mul Mul Mul Mul Add Mul Tanh Add Mul", opset=20
    ),
    "decompose_gelu_microsoft": Example("y = com.microsoft.Gelu(x)", "Mul Mul Erf Add Mul"),
    "decompose_fast_gelu": Example("y = com.microsoft.FastGelu(x)", "Mul Mul Mul Mul Add Mul Tanh Add Mul"),
    "decompose_hard_swish": Example("y = HardSwish(x)", "HardSigmoid Mul"),
    "decompose_mish": Example("y = Mish(x)", "Softplus Tanh Mul"),
    "decompose_swish": Example("y = Swish(x)", "Sigmoid Mul", opset=24, runs=False),
    "decompose_layer_normalization_bias": Example(
        tensor("g", 4) + "y = LayerNormalization(x, g, g)", "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add"
    ),
    "decompose_layer_normalization": Example(
        tensor("g", 4) + "y = LayerNormalization<axis = 1>(x, g)", "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul"
    ),
    "decompose_layer_normalization_bias_attribute": Example(
        tensor("g", 4) + "y = LayerNormalization(x, g, g)",
        "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add",
        opset=17,
    ),
    "decompose_layer_normalization_attribute": Example(
        tensor("g", 4) + "y = LayerNormalization(x, g)", "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul", opset=17
    ),
    "decompose_skip_layer_normalization": Example(
        tensor("g", 4) + "a = Neg(x) y = com.microsoft.SkipLayerNormalization(x, a, g, g)",
        "Neg Add LayerNormalization",
        **ROWS,
    ),
    "decompose_gemm": Example(tensor("w", 4, 5) + tensor("b", 5) + "y = Gemm(x, w, b)", "MatMul Add"),
}


def proto_of(example: Example) -> onnx.ModelProto:
    proto = parsed(example.body, example.inputs, opset=example.opset)
    if "com.microsoft" in example.body:
        proto.opset_import.add(domain="com.microsoft", version=1)
    return proto


def outputs(proto: onnx.ModelProto, feeds: dict[str, np.ndarray], runs: bool) -> np.ndarray:
    """The outputs of onnxruntime, or where it has not the operators, ours."""
    if not runs:
        return np.asarray(onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString())).run(feeds)["y"])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return np.asarray(onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)[0])


def test_every_rule_has_an_example() -> None:
    assert set(EXAMPLES) == {rule.name for rule in built_in_rules.STANDARD}


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_a_rule_keeps_what_is_computed(name: str) -> None:
    example = EXAMPLES[name]
    before, proto = proto_of(example), proto_of(example)
    model = onnxlab.load(proto)
    receipt = model.rewrite(name, finite_only=True)
    assert not receipt.refused, receipt
    assert receipt.counts.get(name), [str(entry) for entry in model.near_misses(model.nodes[-1].name or "y")][:3]
    assert [node.op_type for node in model.nodes if node.op_type != "Constant"] == example.left.split()
    assert not [entry for entry in model.check() if entry.severity == "error" and entry.code != "value-type"]
    for size in (example.shape[0], 1):
        feeds = {"x": np.random.default_rng(size).normal(size=(size, *example.shape[1:])).astype(np.float32)}
        old, new = outputs(before, feeds, example.runs), outputs(model.proto, feeds, example.runs)
        np.testing.assert_allclose(new, old, rtol=2e-4, atol=2e-5)
