"""Rules of users, rule files, and why rules do not apply."""

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import onnxlab
from onnxlab.errors import TransformError
from tests.support import corpus
from tests.transforms.test_simplify import operators, parsed
from tests.transforms.test_standard_rules import EXAMPLES, proto_of


def model_of(body: str, inputs: str = "float[b,4] x") -> onnxlab.Model:
    return onnxlab.load(parsed(body, inputs))


def test_a_text_is_a_rule() -> None:
    model = model_of("p = Constant<value = float {2}>() a = Pow(x, p) y = Neg(a)")
    receipt = model.rewrite("Pow(x, 2) => Mul(x, x)")
    assert receipt.verdict in ("bit equal", "equal within noise")
    assert receipt.counts["Pow(x, 2) => Mul(x, x)"] == 1
    assert operators(model) == ["Mul", "Neg"]
    assert model.history.labels == ["rewrite"]
    model.undo()
    assert operators(model) == ["Constant", "Pow", "Neg"]


def test_a_function_computes_constants_or_says_why_not() -> None:
    @onnxlab.rule("Mul(Mul(x, a:const), b:const) => Mul(x, c)")
    def one_factor(match):  # type: ignore[no-untyped-def]
        """Two factors are one."""
        product = match.array("a") * match.array("b")
        return {"c": product} if product < 10 else "the factor is too large"

    body = "k = Constant<value = float {%s}>() a = Mul(x, k) b = Mul(k, a) y = Neg(b)"
    assert one_factor.doc == "Two factors are one."
    model = model_of(body % 3)
    assert model.why_not("b", one_factor) == ""
    model.rewrite(one_factor)
    assert operators(model) == ["Mul", "Neg"]
    model = model_of(body % 4)
    assert model.why_not("b", one_factor) == "one_factor: the factor is too large"
    assert not model.rewrite(one_factor).applied


def test_replacements_of_several_nodes_with_attributes_and_numbers() -> None:
    model = model_of("y = LeakyRelu<alpha = 0.5>(x)")
    model.rewrite("LeakyRelu(x, alpha=a) => Max(x, Mul(x, 0.5))")
    assert operators(model) == ["Mul", "Max"]
    model = model_of("a = Softmax<axis = 1>(x) y = Transpose<perm = [1, 0]>(a)")
    model.rewrite("Transpose(Softmax(x, axis=1), perm=[1, 0]) => Softmax(Transpose(x), axis=0)")
    assert operators(model) == ["Transpose", "Softmax"]
    assert model.nodes[0].attributes["perm"] == [1, 0]


def test_a_node_that_stays_may_be_read_by_others() -> None:
    model = model_of("a = Exp(x) b = Log(a) y = Add(a, b)")
    assert not model.rewrite("Log(Exp(x)) => x").applied
    assert model.why_not("b", onnxlab.rule("Log(Exp(x)) => x", name="undo")).startswith("undo: Exp")
    assert model.rewrite("Log(~Exp(x)) => x", finite_only=True, verify=False).applied
    assert operators(model) == ["Exp", "Add"]


def test_a_wrong_rule_is_taken_back_with_inputs_that_show_it() -> None:
    model = model_of("a = Div(x, x) y = Neg(a)")
    receipt = model.rewrite("Div(x, x) => Pow(x, 0.0)")
    assert [refusal.rule for refusal in receipt.refused] == ["Div(x, x) => Pow(x, 0.0)"]
    assert operators(model) == ["Div", "Neg"]
    assert "x" in receipt.refused[0].feeds
    assert model.history.labels == []


def test_a_rule_that_makes_an_invalid_graph_leaves_nothing_behind() -> None:
    model = model_of("a = Relu(x) y = Neg(a)")
    before = model.to_bytes()
    for text in (
        "Neg(a) => Conv(a)",
        "Neg(a) => Cast(a, to=7)",
    ):
        assert not model.rewrite(text).applied, text
        assert model.to_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Neg(Relu(x)) => Neg(z)", "the replacement reads z, which the pattern does not bind"),
        ("Neg(x) => z", "the replacement reads z, which the pattern does not bind"),
        ("Neg(x) => Reluu(x)", "ai.onnx has no operator Reluu. Did you mean 'Relu'"),
        ("Softmaxx(x) => Relu(x)", "ai.onnx has no operator Softmaxx. Did you mean 'Softmax'"),
        ("Neg(x) => Softmax(x, axiss=1)", "Softmax has no attribute axiss. Did you mean 'axis'"),
        ("Neg(x) => com.microsoft::Gelluu(x)", "com.microsoft has no operator Gelluu"),
    ],
)
def test_rules_that_could_never_apply_are_refused(text: str, message: str) -> None:
    model = model_of("a = Relu(x) y = Neg(a)")
    with pytest.raises(TransformError, match=re.escape(message)):
        model.rewrite(text)
    with pytest.raises(TransformError, match=re.escape(message)):
        model.why_not(model.nodes[0], text)
    assert not model.rewrite("my.domain::Softmaxx(x) => Relu(x)").applied, "a domain of the user's own has any operator"


def test_conditions_over_facts() -> None:
    model = model_of("y = Relu(x)")
    for text, reason in [
        ("Relu(x:int) => Neg(x)", "x is float32, not int"),
        ("Relu(x:[n, 5]) => Neg(x)", "x is [b, 4], not [n, 5] where 5 is 5"),
        ("Relu(x:[?, ?, ?]) => Neg(x)", "x has rank 2, [b, 4], not [?, ?, ?]"),
        ("Relu(x:[n, n]) => Neg(x)", "x is [b, 4], not [n, n] where n is b"),
        ("Relu(x:const) => Neg(x)", "x is not constant: x is an input"),
        ("Relu(x:float [..., 4]) => Neg(x)", ""),
    ]:
        explanation = model.why_not("y", onnxlab.rule(text, name="r"))
        assert explanation == (f"r: {reason}" if reason else ""), text
    rule = onnxlab.rule("Relu(x) => Neg(x)", name="r", where={"x is too narrow": lambda match: match.shape("x")[1] > 4})
    assert model.why_not("y", rule) == "r: x is too narrow"


def test_rule_files_are_read_where_they_are_named(tmp_path: Path) -> None:
    toml, python = tmp_path / "rules.toml", tmp_path / "rules.py"
    toml.write_text('[square]\nrule = "Pow(x, 2) => Mul(x, x)"\ndoc = "A square."\n')
    python.write_text('import onnxlab\nsquare = onnxlab.rule("Pow(x, 2) => Mul(x, x)")\n')
    for path in (toml, python):
        model = model_of("p = Constant<value = float {2}>() y = Pow(x, p)")
        assert model.rewrite(path).counts["square"] == 1
        assert operators(model) == ["Mul"]
    toml.write_text('[square]\nrule = "Pow(x 2) => Mul(x, x)"\n')
    with pytest.raises(TransformError, match=r"\[square\].*at character 7: a comma or a closing"):
        model.rewrite(toml)
    python.write_text("1 / 0")
    with pytest.raises(TransformError, match="fails: ZeroDivisionError"):
        model.rewrite(python)
    with pytest.raises(TransformError, match="cannot read the rules"):
        model.rewrite(tmp_path / "none.toml")
    with pytest.raises(TransformError, match=r"no rule is called 'gemm_ad'.*Did you mean 'gemm_add'"):
        model.rewrite("gemm_ad")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Add(a, b) -> Neg(a)", "=> and what takes the place"),
        ("Add(a, b) => ", "an operator, a name or a number was expected"),
        ("Add(a b) => Neg(a)", "at character 7: a comma or a closing"),
        ("a => Neg(a)", "a pattern begins with an operator"),
        ("Neg(a) => 3", "one operator or one name"),
    ],
)
def test_what_is_no_rule_says_where(text: str, reason: str) -> None:
    with pytest.raises(TransformError, match=reason):
        onnxlab.rule(text)


def test_near_misses_of_inner_nodes() -> None:
    rng = np.random.default_rng(0).normal(size=16)
    weights = ", ".join(f"{number:.4f}" for number in rng)
    model = model_of(f"w = Constant<value = float[4,4] {{{weights}}}>() m = MatMul(x, w) e = Exp(x) y = Add(m, e)")
    misses = {miss.rule: miss for miss in model.near_misses("m")}
    assert misses["matmul_add"].why.startswith("c is not constant: e comes from Exp")
    assert misses["matmul_add"].progress > 0.5
    start = time.perf_counter()
    for _ in range(10):
        model.why_not("y", "matmul_add")
    assert (time.perf_counter() - start) / 10 < 0.05  # 5 ms on an idle machine


def test_only_chosen_nodes_are_rewritten() -> None:
    model = model_of("a = Relu(x) b = Relu(a) y = Neg(b)")
    model.rewrite("Relu(x) => Max(x, 0.0)", nodes=["b"])
    assert operators(model) == ["Relu", "Max", "Neg"]


def test_an_operator_that_only_onnxruntime_has_comes_only_where_that_was_asked_for() -> None:
    older = onnxlab.load(proto_of(EXAMPLES["layer_normalization"]))
    older.convert_opset(15)
    bytes_of = older.to_bytes()
    receipt = older.optimize()
    assert "LayerNormalization" not in [node.op_type for node in older.nodes]
    assert receipt.refused == ()
    other = onnxlab.load(bytes_of)
    other.optimize(microsoft=True)
    assert "LayerNormalization" in [node.op_type for node in other.nodes]


def test_it_does_not_come_into_functions_where_onnxruntime_crashes() -> None:
    model = onnxlab.load(corpus.path("functions_ts"))
    model.optimize(microsoft=True, verify=False)
    inside = {node.op_type for function in model.proto.functions for node in function.node}
    assert "LayerNormalization" not in inside
    assert "Gelu" in inside
    onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])


def test_attention_of_narrow_heads_stays_written_out() -> None:
    wide = EXAMPLES["multi_head_attention_microsoft"]
    narrow = replace(wide, body=wide.body.replace("2, 32", "4, 16"))
    reasons = [
        onnxlab.load(proto_of(example)).why_not("y", "multi_head_attention_microsoft") for example in (wide, narrow)
    ]
    assert reasons[0] == ""
    assert "heads have fewer than 32 dims" in reasons[1]


@pytest.mark.parametrize("op_type", ["Conv", "BatchNormalization"])
def test_nodes_with_an_attribute_of_another_type_are_left(op_type: str) -> None:
    numbers = " ".join(f"{name} = Constant <value = float[2] {{1, 2}}> ()" for name in "abde")
    body = "c = Conv (x, w) y = BatchNormalization (c, a, b, d, e)"
    model = model_of(f"w = Constant <value = float[2,1,1,1] {{1, 2}}> () {numbers} {body}", "float[n,1,2,2] x")
    proto = onnx.ModelProto.FromString(model.to_bytes())
    assert model.rewrite("conv_batch_normalization", dry_run=True).applied
    broken = next(node for node in proto.graph.node if node.op_type == op_type)
    broken.attribute.append(onnx.helper.make_attribute("epsilon" if op_type != "Conv" else "group", "text"))
    malformed = onnxlab.load(proto)
    assert not malformed.rewrite("conv_batch_normalization").applied
    assert malformed.to_bytes() == proto.SerializeToString()
    assert "another type" in str(malformed.why_not(malformed.nodes[-1], "conv_batch_normalization"))
