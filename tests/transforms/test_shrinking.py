"""Inputs that show a difference are made as small as can be."""

import numpy as np
import pytest

import onnxlab
from onnxlab.transforms.rules import built_in_rules, no_ops
from onnxlab.transforms.shrinking import smallest
from tests.transforms.test_simplify import parsed


def test_one_element_is_left() -> None:
    feeds = {"x": np.arange(60, dtype=np.float32).reshape(12, 5), "y": np.ones((12, 2), np.float32)}
    shrunk = smallest(feeds, lambda arrays: bool((arrays["x"] == 37).any()), [[("x", 0), ("y", 0)]])
    assert shrunk["y"].shape == (1, 2)
    assert shrunk["x"].tolist() == [[0, 0, 37, 0, 0]]
    assert not shrunk["y"].any()


def test_what_does_not_show_it_is_never_returned() -> None:
    feeds = {"x": np.ones((3, 4), np.float32)}
    assert smallest(feeds, lambda arrays: False, [[("x", 0)]]) == feeds


def test_a_refused_rule_comes_with_small_inputs() -> None:
    model = onnxlab.load(parsed("a = Elu(x) y = Neg(a)"))
    receipt = model.rewrite(onnxlab.rule("Elu(x) => Relu(x)", name="wrong"))
    (refusal,) = receipt.refused
    (array,) = refusal.feeds.values()
    assert array.shape == (1, 4)
    assert np.count_nonzero(array) == 1
    assert "differs" in refusal.why


def test_a_refused_pass_over_the_model_comes_with_small_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = no_ops.removal("wrong", lambda rewriting, node: rewriting.input(node, 0), ("Clip",))
    standard = built_in_rules.up_to("basic")
    monkeypatch.setattr(built_in_rules, "up_to", lambda level: (*standard, rule))
    body = "h = Constant<value = float {100}>() c = Clip(x, , h) a = Relu(c) b = Relu(c) y = Add(a, b)"
    model = onnxlab.load(parsed(body))
    (refusal,) = model.simplify().refused
    array = refusal.feeds["x"]
    assert array.shape == (1, 4)
    assert np.count_nonzero(array) == 1
    assert array.max() > 100


def test_an_edit_by_hand_is_shown_to_differ_by_small_inputs() -> None:
    model = onnxlab.load(parsed("a = Relu(x) y = Neg(a)"))
    model.nodes["a"].op_type = "Abs"
    judged = model.prove()
    assert judged.verdict == "different"
    assert judged.feeds["x"].shape == (1, 4)
    assert np.count_nonzero(judged.feeds["x"]) == 1
