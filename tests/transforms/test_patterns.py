"""Patterns as text, where they match, and why they do not."""

import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import TransformError
from onnxlab.graph.query.patterns.matcher import Mismatch
from onnxlab.graph.query.patterns.parser import parse, parse_rule
from onnxlab.graph.query.patterns.syntax_tree import Literal, Name, NodePattern
from onnxlab.transforms.passes import worklist
from onnxlab.transforms.patterns.rule_match import match
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.linear import RULES
from onnxlab.transforms.rules.rule import Rule
from tests.support.rewriting import rewriting_of


@pytest.mark.parametrize(
    "text",
    ["Add(a, b)", "Add(MatMul(a, w:const), c:const?)", "com.microsoft::Gelu(x)", "Cast(x, to=1)", 'F(x, mode="edge")',
     "Transpose(x, perm=[0, 1])", "Transpose(x, perm=p)", "Constant()", "F(x, alpha=-0.5)", "Concat(a, *rest)",
     "Mul(x:float16|float32, 0.5)", "Reshape(x:[n, ?, 4], [0, -1])", "Add(x:const once float [..., n], y)",
     "Div(d := Sub(x, ~ReduceMean(x)), d)", "Relu|Elu(x)", "Relu(Split(x).1)", "F(x, k=none)",
     "Add(s := Split(x), s.1)", "pkg.torch-2.8::linear(x)"],
)  # fmt: skip
def test_a_pattern_is_printed_as_it_was_read(text: str) -> None:
    assert str(parse(text)[0]).replace("'", '"') == text


def test_what_a_text_means() -> None:
    assert parse("Conv(x, w:const, b?, pads=[0, 0], group=g)")[0] == NodePattern(
        ("Conv",),
        "",
        (Name("x"), Name("w", constant=True), Name("b", optional=True)),
        (("pads", Literal([0, 0])), ("group", Name("g"))),
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [("", 1), ("x", 1), ("Add(a, b", 9), ("Add(a b)", 7), ("Add(a,, b)", 7), ("Add(a:var)", 7), ("Add(a, b) c", 11),
     ("Add(a, k=)", 10), ("F(x, k=[1, z])", 12), ("[Add]()", 6), ("Relu(x:[2, +])", 12), ("Add(x := y, z)", 10),
     ("Relu(Split(x).a)", 15)],
)  # fmt: skip
def test_what_is_no_pattern_says_where(text: str, place: int) -> None:
    with pytest.raises(TransformError, match=f"at character {place}"):
        parse(text)


def rewriting(body: str) -> Rewriting:
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[3,4] x, float[4,4] v) => (float[3,4] y) {{ {body} }}'
    model = onnxlab.load(onnx.parser.parse_model(text))
    held = rewriting_of(model)
    held.keeping = model  # type: ignore[attr-defined]
    return held


def why(body: str, text: str) -> str:
    held = rewriting(body)
    root = list(held.nodes())[-1]
    outcome = match(held, parse(text)[0], root)
    return outcome.why if isinstance(outcome, Mismatch) else ""


W = "w = Constant<value = float {2}>()"


@pytest.mark.parametrize(
    ("body", "text", "reason"),
    [
        (f"{W} m = MatMul(x, v) y = Add(m, w)", "Add(MatMul(a, b), c:const)", ""),
        (f"{W} m = MatMul(x, v) y = Add(w, m)", "Add(MatMul(a, b), c:const)", ""),
        (f"{W} m = MatMul(x, v) y = Sub(w, m)", "Sub(MatMul(a, b), c:const)", "is Constant, not MatMul"),
        ("m = MatMul(x, v) y = Add(m, x)", "Add(MatMul(a, b), c:const)", "c is not constant: x is an input"),
        (f"{W} m = MatMul(x, v) n = Exp(m) y = Add(m, w)", "Add(MatMul(a, b), c:const)", "is read by"),
        ("m = Exp(x) y = Relu(m)", "Relu(MatMul(a, b))", "is Exp, not MatMul"),
        ("y = Relu(x)", "Relu(MatMul(a, b))", "reads x, which no node makes, not MatMul"),
        ("m = Exp(x) y = Mul(m, m)", "Mul(a, a)", ""),
        ("m = Exp(x) y = Mul(m, x)", "Mul(a, a)", "a is "),
        ("y = Softmax<axis = 0>(x)", "Softmax(x, axis=1)", "has axis=0, not 1"),
        ("y = Softmax<axis = 0>(x)", "Softmax(x, axis=k)", ""),
    ],
)
def test_where_it_matches_and_why_not(body: str, text: str, reason: str) -> None:
    explanation = why(body, text)
    assert (reason in explanation) if reason else explanation == ""


def test_a_rule_names_the_condition_that_fails() -> None:
    ones = ",".join(["1"] * 16)
    stored = f"w = Constant<value = float[4,4] {{{ones}}}>() b = Constant<value = float[3,1] {{1, 2, 3}}>()"
    held = rewriting(f"{stored} m = MatMul(x, w) y = Add(m, b)")
    rule = next(rule for rule in RULES if rule.name == "matmul_add")
    root = list(held.nodes())[-1]
    assert rule.why_not(held, root) == "matmul_add: c is no bias of the rows"


def test_a_rule_that_does_not_parse_says_where() -> None:
    with pytest.raises(TransformError, match="a closing parenthesis was expected"):
        Rule("r", "Add(a b) => Neg(a)", "")


def test_rules_that_keep_each_other_busy_are_stopped() -> None:
    held = rewriting("y = Neg(x)")
    forth = Rule("there", "Neg(a) => Abs(a)")
    back = Rule("back", "Abs(a) => Neg(a)")
    with held.graph.edit("rules"):
        worklist.run(held, worklist.Rules([forth, back]))
    assert held.applied[-1].what == "still applied after 120 times, and were stopped"
    assert held.applied[-1].place == "back, there"


def test_a_text_stands_for_several_ways() -> None:
    ways = parse("Relu([Add](x, y)) or Elu(x)")
    assert [str(way) for way in ways] == ["Relu(Add(x, y))", "Relu(x)", "Elu(x)"]
    patterns, replacement = parse_rule("Identity(x) => x")
    assert len(patterns) == 1
    assert replacement == Name("x")
