"""Rewrites that are wrong: each has to be refused, and to leave the model as it was."""

import re

import pytest

import onnxlab
from tests.transforms.test_simplify import parsed

ZERO = "z = Constant<value = float {0}>() "
INT = "int64[b,4] x"

WRONG = {
    # NaN and infinities
    "x/x is one": ("a = Div(x, x) y = Neg(a)", "Div(x, x) => Pow(x, 0.0)", None),
    "NaN stays": (ZERO + "n = IsNaN(x) y = Where(n, z, x)", "Where(IsNaN(x), z, x) => x", None),
    "a Max hides NaN": ("a = Exp(x) y = Max(x, a)", "Max(x, a) => Where(Greater(a, x), a, x)", None),
    "not greater is less or equal": (
        "a = Neg(x) c = Greater(x, a) n = Not(c) y = Cast<to = 1>(n)",
        "Not(Greater(a, b)) => LessOrEqual(a, b)",
        None,
    ),
    "zero times x": (ZERO + "a = Mul(x, z) y = Reciprocal(a)", "Mul(x, z:const) => Sub(x, x)", None),
    "a Min hides NaN": ("a = Neg(x) y = Min(x, a)", "Min(x, a) => Where(Less(a, x), a, x)", None),
    # ±0
    "plus zero before a reciprocal": (ZERO + "a = Add(x, z) y = Reciprocal(a)", "Add(x, 0) => x", None),
    "minus zero before a division": (
        "a = Neg(x) b = Neg(a) c = Abs(x) d = Div(c, b) y = Relu(d)",
        "Neg(Neg(x)) => Sub(0.0, Sub(0.0, x))",
        None,
    ),
    "minus x is zero minus x": ("a = Neg(x) y = Reciprocal(a)", "Neg(x) => Sub(0.0, x)", None),
    # overflow and range
    "the root of a square": ("a = Mul(x, x) y = Sqrt(a)", "Sqrt(Mul(x, x)) => x", None),
    "the log of an Exp": ("a = Exp(x) y = Log(a)", "Log(Exp(x)) => x", None),
    "the Exp of a log": ("a = Log(x) y = Exp(a)", "Exp(Log(x)) => x", None),
    "a sum of what cancels": ("a = Exp(x) b = Sub(a, x) y = Sub(a, b)", "Sub(a, Sub(a, b)) => b", None),
    "a square in half precision": (
        "h = Cast<to = 10>(x) q = Mul(h, h) s = Sqrt(q) y = Cast<to = 1>(s)",
        "Sqrt(Mul(x, x)) => Abs(x)",
        None,
    ),
    "Softplus written out": ("y = Softplus(x)", "Softplus(x) => Log(Add(Exp(x), 1.0))", None),
    # dropped clips and casts
    "a dropped Clip": (
        "l = Constant<value = float {-100}>() h = Constant<value = float {100}>() y = Clip(x, l, h)",
        "Clip(x, l, h) => x",
        None,
    ),
    "a dropped upper limit": (
        "l = Constant<value = float {0}>() h = Constant<value = float {1000}>() y = Clip(x, l, h)",
        "Clip(x, l, h) => Relu(x)",
        None,
    ),
    "a dropped rounding": ("a = Cast<to = 7>(x) y = Cast<to = 1>(a)", "Cast(Cast(x), to=1) => x", None),
    "half precision and back": ("a = Cast<to = 10>(x) y = Cast<to = 1>(a)", "Cast(Cast(x), to=1) => x", None),
    "Floor is a Cast": ("y = Floor(x)", "Floor(x) => Cast(Cast(x, to=7), to=1)", None),
    "ties go up": ("y = Round(x)", "Round(x) => Floor(Add(x, 0.5))", None),
    # integers
    "a division of integers": (
        "k = Constant<value = int64 {3}>() a = Div(x, k) y = Mul(a, k)",
        "Mul(Div(x, k), k) => x",
        INT,
    ),
    "the sign of a remainder": (
        "k = Constant<value = int64 {3}>() n = Neg(x) y = Mod(n, k)",
        "Mod(x, k, fmod=0) => Mod(x, k, fmod=1)",
        INT,
    ),
    # broadcasting
    "a dropped Expand": (
        "s = Shape(x) o = ReduceMax<keepdims = 1>(x) e = Expand(o, s) y = Neg(e)",
        "Expand(x, s) => x",
        None,
    ),
    "MatMul commutes": (
        "t = Transpose(x) y = MatMul(x, t)",
        "MatMul(a, Transpose(b)) => MatMul(Transpose(a), b)",
        "float[4,4] x",
    ),
    "a dropped Transpose": ("t = Transpose(x) y = Neg(t)", "Transpose(x) => x", "float[4,4] x"),
    "Softmax along another axis": (
        "y = Softmax<axis = 1>(x)",
        "Softmax(x, axis=1) => Softmax(x, axis=0)",
        "float[4,4] x",
    ),
    # dynamic dims
    "a mean of two rows": (
        "i = Constant<value_ints = [0]>() y = ReduceMean(x, i)",
        "ReduceMean(x, i) => Mul(ReduceSum(x, i), 0.5)",
        None,
    ),
    "a baked batch": (
        "n = Constant<value_ints = [-1]>() f = Reshape(x, n) y = Neg(f)",
        "Reshape(x, [-1]) => Reshape(x, [8])",
        None,
    ),
    "the first two rows": ("a = Relu(x) y = Neg(a)", "Relu(x) => Slice(Abs(Neg(x)), [0], [2], [0])", None),
    # outputs and captures
    "an output that is read": ("e = Exp(x) y = Log(e)", "Exp(x) => Add(x, 1.0)", None),
    "a captured value": (
        "a = Neg(x) c = Constant<value = bool {1}>() s = ReduceSum<keepdims = 0>(x) g = Less(s, s)"
        "y = If (g) <then_branch = t () => (float[b,4] p) { p = Neg(a) },"
        " else_branch = e () => (float[b,4] q) { k = Abs(a) q = Exp(k) }>",
        "Abs(x) => x",
        None,
    ),
    "a value of an inner graph": (
        "n = Constant<value = int64 {2}>() t = Constant<value = bool {1}>()"
        "y = Loop (n, t, x) <body = g (int64 i, bool c, float[b,4] v) => (bool d, float[b,4] w) {"
        " d = Identity(c) w = Neg(v) }>",
        "Neg(x) => Abs(x)",
        None,
    ),
    # what is nearly right
    "a leak that is small": ("y = LeakyRelu<alpha = 0.001>(x)", "LeakyRelu(x) => Relu(x)", None),
    "a Sigmoid that is hard": ("y = Sigmoid(x)", "Sigmoid(x) => HardSigmoid(x)", None),
    "an equal pair": (
        "a = Abs(x) g = Greater(a, x) y = Cast<to = 1>(g)",
        "Greater(a, b) => GreaterOrEqual(a, b)",
        None,
    ),
}


def is_refused(name: str) -> bool:
    """Whether a wrong rewrite is refused, and leaves the model as it was."""
    body, text, inputs = WRONG[name]
    body = re.sub(r"\by = ", "last = ", body) + (" y = Neg(last)" if inputs == INT else " y = Elu(last)")
    model = onnxlab.load(parsed(body, inputs or "float[b,4] x", "int64 y" if inputs == INT else "float y"))
    before = model.to_bytes()
    receipt = model.rewrite(onnxlab.rule(text, name="wrong"))
    refused = [refusal.rule for refusal in receipt.refused] == ["wrong"]
    return refused and model.to_bytes() == before and not model.history.labels


def test_there_are_thirty() -> None:
    assert len(WRONG) >= 30


@pytest.mark.parametrize("name", list(WRONG))
def test_a_wrong_rewrite_is_refused(name: str) -> None:
    assert is_refused(name)


@pytest.mark.parametrize("returned", [None, 5, [1.0]])
def test_a_function_of_a_rule_returns_arrays_by_name_or_words(returned: object) -> None:
    model = onnxlab.load()

    @onnxlab.rule("Relu(x) => Mul(x, c)")
    def halved(match: object) -> object:
        return returned

    for job in (lambda: model.rewrite(halved), lambda: model.why_not("/stem/relu/Relu", halved)):
        with pytest.raises(
            onnxlab.OnnxlabError, match=r"the function of the rule halved returned .*: expected a mapping"
        ):
            job()
    assert model.version == 0
