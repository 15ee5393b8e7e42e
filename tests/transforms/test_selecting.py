"""Selections as patterns: what is written, what it finds, and what cannot be written."""

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import TransformError
from tests.support import corpus

TWO = """
    c = Constant<value = float {0.5}>() root = Constant<value = float {1.4142135}>() one = Constant<value = float {1}>()
    axes = Constant<value_ints = [-1]>()
    a0 = Div(x, root) a1 = Erf(a0) a2 = Add(a1, one) a3 = Mul(x, a2) a = Mul(a3, c)
    b0 = Div(a, root) b1 = Erf(b0) b2 = Add(one, b1) b3 = Mul(b2, a) b = Mul(b3, c)
    m = ReduceMean(b, axes) d = Sub(b, m) q = Mul(d, d) s0, s1 = Split<num_outputs = 2>(q) s = Add(s1, s0) e = Relu(s)
    kept = Neg(d) y = Clip(e, , one)
"""


def loaded(body: str = TWO, outputs: str = "float[3,2] y, float[3,4] kept") -> onnxlab.Model:
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[3,4] x) => ({outputs}) {{ {body} }}'
    return onnxlab.load(onnx.parser.parse_model(text))


def test_a_gelu_finds_the_other_one_whose_operands_stand_the_other_way_round() -> None:
    model = loaded()
    pattern = model.pattern(["a0", "a1", "a2", "a3", "a"])
    assert pattern == "Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1.0)), 0.5)"
    places = model.find_pattern(pattern)
    assert [place.node.outputs[0].name for place in places] == ["a", "b"]
    assert places[1].values["x"] == model.value("a")
    assert len(places[1].nodes) == 5


def test_numbers_can_be_any_constant() -> None:
    model = loaded()
    assert model.pattern(["a0"], numbers=False) == "Div(x, b:const)"
    assert model.pattern("m") == "ReduceMean(x, [-1])"
    assert len(model.find_pattern("Div(x, b:const)")) == 2


def test_what_is_read_twice_has_a_name_and_what_others_read_stays() -> None:
    model = loaded()
    assert model.pattern(["m", "d", "q"]) == "Mul(s := ~Sub(x, ReduceMean(x, [-1])), s)"


def test_two_outputs_of_one_node() -> None:
    model = loaded()
    pattern = model.pattern(["q", "s0", "s"])
    assert pattern == "Add(s := Split(Mul(x, x), num_outputs=2).1, s.0)"
    assert [place.node.outputs[0].name for place in model.find_pattern(pattern)] == ["s"]
    assert model.find_pattern(pattern.replace("s.0", "s.1")) == []


def test_an_absent_input_is_skipped() -> None:
    assert loaded().pattern("y") == "Clip(x, _?, 1.0)"


def test_all_like_a_selection_are_replaced_as_one_step() -> None:
    model = loaded()
    pattern = model.pattern(["a0", "a1", "a2", "a3", "a"])
    before = model.run({"x": np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)})
    receipt = model.rewrite(f"{pattern} => com.microsoft::Gelu(x)")
    assert [application.rule for application in receipt.applied].count(f"{pattern} => com.microsoft::Gelu(x)") == 2
    assert receipt.refused == ()
    after = model.run({"x": np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)})
    assert np.allclose(before["y"], after["y"], atol=1e-5)
    model.undo()
    assert len(model.find_pattern(pattern)) == 2


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (["a0", "m"], "one outermost node"),
        (["c"], "no node is selected"),
    ],
)
def test_what_is_no_pattern_says_what_to_select(nodes: list[str], words: str) -> None:
    with pytest.raises(TransformError, match=words):
        loaded().pattern(nodes)


def test_nodes_with_bodies_are_refused() -> None:
    model = onnxlab.load(corpus.path("script_control"))
    node = next(node for node in model.nodes if node.op_type == "Loop")
    with pytest.raises(TransformError, match="has bodies"):
        model.pattern([node])


def test_orders_of_operands_are_not_tried_for_ever() -> None:
    count = 40
    body = " ".join(f"v{at + 1} = Add(v{at}, v{at})" for at in range(count)).replace("v0", "x")
    model = loaded(f"{body} y = Relu(v{count})", "float[3,4] y")
    text = "Sinh(x)"
    for _ in range(count):
        text = f"Add({text}, {text.replace('Sinh(x)', 'Sinh(z)')})" if len(text) < 20_000 else f"Add({text}, y)"
    assert model.find_pattern(f"Relu({text})") == []


@pytest.mark.parametrize("name", ["swin_s", "bert_base", "resnet101_qdq", "functions_ts"])
def test_every_small_selection_of_a_model_finds_itself(name: str) -> None:
    model = onnxlab.load(corpus.path(name))
    rng = np.random.default_rng(0)
    nodes = [node for node in model.nodes if node.op_type != "Constant"]
    for at in rng.integers(0, len(nodes), 40):
        root = nodes[int(at)]
        block = {root.id: root}
        for value in root.inputs:
            maker = value.producer if value is not None else None
            if maker is not None and maker.op_type != "Constant":
                block[maker.id] = maker
        pattern = model.pattern(list(block.values()))
        assert root.id in {place.node.id for place in model.find_pattern(pattern)}, pattern
