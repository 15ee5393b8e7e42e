"""Gradient against differences of float64 values."""

import numpy as np
import onnx
import pytest

from onnxlab.errors import RunError, UnsupportedOperatorError
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.ops.base.derivatives import operators

HEADER = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>\n'


def run(nodes, feeds, names=("a",), zs=(), initializers=""):
    """(y, dy/dx for each of `names`)."""
    lists = ", ".join(f'"{name}"' for name in names)
    fixed = f", zs = [{', '.join(f'{chr(34)}{z}{chr(34)}' for z in zs)}]" if zs else ""
    outputs = ", ".join(f"d_{name}" for name in names)
    declared = ", ".join(
        f"{'int64' if v.dtype == np.int64 else 'double'}[{','.join(map(str, v.shape))}] {k}" for k, v in feeds.items()
    )
    read = ", ".join((*names, *zs))
    text = (
        f"{HEADER}g ({declared}) => (y, {outputs}) {initializers} {{ {nodes}\n"
        f'{outputs} = ai.onnx.preview.training.Gradient <xs = [{lists}], y = "y"{fixed}> ({read}) }}'
    )
    return Runner(ModelGraph(onnx.parser.parse_model(text))).run(feeds, keep=False)


def check(nodes, feeds, names=("a",), **options):
    results = run(nodes, feeds, names, **options)
    for name in names:
        expected, step = np.zeros_like(feeds[name]), 1e-6
        for place in np.ndindex(*feeds[name].shape):
            moved = []
            for sign in (1, -1):
                other = {**feeds, name: feeds[name].copy()}
                other[name][place] += sign * step
                moved.append(run(nodes, other, names, **options)["y"].sum())
            expected[place] = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(results[f"d_{name}"], expected, rtol=1e-4, atol=1e-6, err_msg=f"{nodes}: {name}")


RNG = np.random.default_rng(0)


def some(*shape, low=0.2, high=0.9):
    return RNG.uniform(low, high, shape)


UNARY = [
    "Abs", "Acos", "Asin", "Atan", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "Identity",
    "LeakyRelu", "Log", "LogSoftmax", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softmax", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
]  # fmt: skip
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Max", "Min", "Sum", "Mean"]
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp"]
OTHERS = {
    "Where": ("c = Greater (a, b) y = Where (c, a, b)", {"a": some(2, 3), "b": some(3)}, ("a", "b")),
    "MatMul": ("t = MatMul (a, b) y = Mul (t, t)", {"a": some(2, 3, 4), "b": some(4, 2)}, ("a", "b")),
    "MatMul of vectors": ("y = MatMul (a, b)", {"a": some(4), "b": some(2, 4, 3)}, ("a", "b")),
    "Gemm": ("y = Gemm <alpha = 0.5, beta = 2.0, transB = 1> (a, b, c)",
             {"a": some(2, 3), "b": some(4, 3), "c": some(4)}, ("a", "b", "c")),
    "Conv": ("t = Conv <pads = [1, 0, 1, 1], strides = [2, 1], group = 2> (a, w, b) y = Mul (t, t)",
             {"a": some(2, 2, 4, 3), "w": some(4, 1, 3, 2), "b": some(4)}, ("a", "w", "b")),
    "GlobalAveragePool": ("t = GlobalAveragePool (a) y = Exp (t)", {"a": some(1, 2, 3)}, ("a",)),
    "Transpose": ("t = Transpose <perm = [2, 0, 1]> (a) y = Mul (t, t)", {"a": some(2, 1, 3)}, ("a",)),
    "Concat": ("t = Concat <axis = 1> (a, b) y = Mul (t, t)", {"a": some(2, 1), "b": some(2, 2)}, ("a", "b")),
    "Split": ("s, t = Split <axis = 0, num_outputs = 2> (a) y = Mul (s, t)", {"a": some(4, 2)}, ("a",)),
    "Gather": ("i = Constant <value_ints = [0, 2, 2]> () t = Gather <axis = 1> (a, i) y = Mul (t, t)",
               {"a": some(2, 3)}, ("a",)),
    "Slice": ("s = Constant <value_ints = [3]> () e = Constant <value_ints = [0]> () "
              "x = Constant <value_ints = [1]> () p = Constant <value_ints = [-2]> () "
              "t = Slice (a, s, e, x, p) y = Mul (t, t)", {"a": some(2, 4)}, ("a",)),
    "Clip": ("k = Constant <value = double {0.5}> () t = Clip (a, k) y = Mul (t, t)", {"a": some(3, 3)}, ("a",)),
    "Flatten": ("t = Flatten (a) y = Mul (t, t)", {"a": some(2, 1, 3)}, ("a",)),
    "Reshape": ("k = Constant <value_ints = [3, 2]> () t = Reshape (a, k) y = Mul (t, t)", {"a": some(2, 3)}, ("a",)),
    "Squeeze": ("t = Squeeze (a) y = Mul (t, t)", {"a": some(2, 1)}, ("a",)),
    "Unsqueeze": ("k = Constant <value_ints = [0]> () t = Unsqueeze (a, k) y = Mul (t, t)", {"a": some(2)}, ("a",)),
    "Expand": ("k = Constant <value_ints = [4, 2, 3]> () t = Expand (a, k) y = Mul (t, t)", {"a": some(2, 1)}, ("a",)),
    "Cast": ("t = Cast <to = 11> (a) y = Mul (t, t)", {"a": some(2)}, ("a",)),
    "Dropout": ("t = Dropout (a) y = Mul (t, t)", {"a": some(2)}, ("a",)),
}  # fmt: skip


@pytest.mark.parametrize("operator", UNARY)
def test_of_one_input(operator):
    check(f"t = {operator} (a) y = Mul (t, t)", {"a": some(2, 3)})


@pytest.mark.parametrize("operator", BINARY)
def test_of_two_inputs_that_broadcast(operator):
    check(f"t = {operator} (a, b) y = Mul (t, t)", {"a": some(2, 3), "b": some(3)}, ("a", "b"))


@pytest.mark.parametrize("operator", REDUCE)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_of_reductions(operator, keepdims):
    axes = "k = Constant <value_ints = [1]> ()"
    check(f"{axes} t = {operator} <keepdims = {keepdims}> (a, k) y = Mul (t, t)", {"a": some(2, 3, 2)})


@pytest.mark.parametrize("operator", OTHERS)
def test_of(operator):
    nodes, feeds, names = OTHERS[operator]
    check(nodes, feeds, names)


def test_every_rule_is_tested():
    tested = {*UNARY, *BINARY, *REDUCE, *OTHERS} - {"MatMul of vectors"}
    assert set(operators()) == tested


def test_initializers_zs_and_values_that_do_not_matter():
    results = run("t = Mul (a, w) y = Add (t, b)", {"a": some(2), "b": some(2), "c": some(3)}, ("a", "c"), zs=("b",),
                initializers="<double[2] w = {2.0, 3.0}>")  # fmt: skip
    assert results["d_a"].tolist() == [2, 3]
    assert results["d_c"].tolist() == [0, 0, 0]


def test_an_operator_without_derivative_is_named():
    with pytest.raises(UnsupportedOperatorError, match=r"is a CumSum, which has no derivative here; .*: Abs"):
        run("k = Constant <value = int64 {0}> () y = CumSum (a, k)", {"a": some(3)})


def test_names_that_mean_nothing():
    with pytest.raises(RunError, match="no value is called 'b'"):
        Runner(ModelGraph(onnx.parser.parse_model(
            HEADER + 'g (double[2] a) => (d) { y = Neg (a) '
            'd = ai.onnx.preview.training.Gradient <xs = ["b"], y = "y"> (a) }'
        ))).run({"a": some(2)})  # fmt: skip
