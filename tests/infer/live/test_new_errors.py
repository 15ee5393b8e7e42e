"""The effect of an edit: changed facts in topological order, the first node that refuses, and both in words."""

import pytest

from onnxlab import Model
from tests.infer.support.models import shape_chain


def test_changed_facts_come_in_topological_order_with_old_and_new() -> None:
    model = Model(shape_chain().proto)
    model.value("x").set_shape([2, "n", 64])
    change = model.last_change
    assert change is not None
    names = list(change.facts)
    order = ["x", "dims", "rows", "target", "flat", "m", "y"]
    assert [name for name in names if name in order] == order
    old, new = change.facts["flat"]
    assert (str(old), str(new)) == ("float32[batch*seq,64]", "float32[2*n,64]")
    assert change.first_error is None


def test_a_restart_tells_in_topological_order_too() -> None:
    model = Model(shape_chain().proto)
    model.value("x").set_shape([2, "n", 64])
    facts = model.inference._restart({})
    names = [model.graph.values[vid].name for vid in facts]
    order = ["dims", "rows", "target", "flat", "m", "y"]
    assert [name for name in names if name in order] == order
    assert names.index("m") < names.index("t")


def test_the_first_node_that_refuses_is_told() -> None:
    model = Model(shape_chain().proto)
    model.value("x").set_shape(["batch", "seq", 32])
    change = model.last_change
    assert change is not None
    assert change.first_error is not None
    assert model.graph.nodes[change.first_error.node].op_type == "MatMul"
    assert (change.first_error.expected, change.first_error.found) == ("32", "64")
    text = str(change)
    assert "first error: error" in text
    assert "m: float32[batch*seq,32] → float32[?]" in text
    model.value("x").set_shape(["b", "seq", 32])  # the node still refuses: no new error
    assert model.last_change is not None
    assert model.last_change.first_error is None
    model.undo()
    model.undo()
    assert model.last_change.first_error is None


def test_the_old_name_of_the_first_error_works_with_a_warning() -> None:
    model = Model(shape_chain().proto)
    model.value("x").set_shape(["batch", "seq", 32])
    change = model.last_change
    assert change is not None
    with pytest.warns(DeprecationWarning, match="first_refusal is now first_error"):
        assert change.first_refusal is change.first_error is not None


def test_an_edit_without_effect_says_so() -> None:
    model = Model(shape_chain().proto)
    model.nodes[0].name = "first"
    assert str(model.last_change).endswith("no fact changed")
