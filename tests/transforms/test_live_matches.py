"""Matches of rules are kept up to date over edits: equal to a fresh search, whatever was edited."""

import numpy as np
import pytest

import onnxlab
from tests.support import corpus
from tests.transforms.test_simplify import parsed


def test_an_edit_makes_and_breaks_matches() -> None:
    model = onnxlab.load(parsed("a = Relu(x) b = Neg(a) c = Relu(b) y = Exp(c)"))
    live = model.matches("relu_again")
    assert live.counts == {}
    model.nodes["b"].op_type = "Relu"
    assert {rule: len(live.of(rule)) for rule in live.counts} == {"relu_again": 2}
    model.undo()
    assert live.counts == {}
    model.redo()
    model.add_output("b")
    assert [node.outputs[0].name for node in live.of("relu_again")] == ["b"]


def test_a_fact_that_changes_downstream_counts() -> None:
    zeros = ", ".join("0" * 16)
    body = f"w = Constant<value = float[4,4] {{{zeros}}}>() c = Constant<value = float[4] {{1, 2, 3, 4}}>()"
    model = onnxlab.load(
        parsed(
            f"{body} n = Constant<value_ints = [0]>() a = ReduceSum<keepdims = 1>(x, n) m = MatMul(a, w) y = Add(m, c)"
        )
    )
    live = model.matches()
    assert live.counts == {"matmul_add": 1}
    model.nodes["a"].attributes["keepdims"] = 0
    assert live.counts == {}
    model.undo()
    assert live.counts == {"matmul_add": 1}


@pytest.mark.parametrize("name", ["swin_s", "bert_base"])
def test_edits_drawn_at_random(name: str) -> None:
    model = onnxlab.load(corpus.path(name))
    live = model.matches()
    assert sum(live.counts.values()) > 5
    rng = np.random.default_rng(3)
    nodes = [node for node in model.nodes if node.op_type in ("Add", "Mul", "Sub", "Div", "Erf", "Sqrt", "MatMul")]
    for at in rng.integers(0, len(nodes), 12):
        node = nodes[int(at)]
        if rng.random() < 0.3:
            model.undo()
        else:
            node.op_type = {"Add": "Mul", "Mul": "Add", "Sub": "Div", "Div": "Sub", "Erf": "Tanh", "Sqrt": "Exp",
                            "MatMul": "Mod", "Tanh": "Erf", "Exp": "Sqrt", "Mod": "MatMul"}[node.op_type]  # fmt: skip
    fresh = model.matches()
    assert live.counts == fresh.counts
    assert {rule: live.of(rule) for rule in live.counts} == {rule: fresh.of(rule) for rule in fresh.counts}
