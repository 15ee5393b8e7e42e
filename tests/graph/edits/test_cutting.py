"""Models that are cut in place: ended at values, started at others, with what crosses the same border."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import EditError


def detector() -> onnx.ModelProto:
    """x → conv → boxes and scores → NMS with a shape taken of both → sel; and an aux output that NMS does not touch."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["f"], "conv"),
        helper.make_node("Relu", ["f"], ["aux"], "aux"),
        helper.make_node("Reshape", ["f", "to_boxes"], ["boxes"], "boxes"),
        helper.make_node("ReduceMax", ["f"], ["m"], "max", keepdims=0, axes=[3]),
        helper.make_node("Sigmoid", ["m"], ["scores"], "scores"),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["sel"], "nms"),
        helper.make_node("Gather", ["sel", "two"], ["which"], "which", axis=1),
    ]
    stored = {"w": np.ones((4, 3, 1, 1), np.float32), "to_boxes": np.array([1, -1, 4], np.int64),
              "most": np.array([5], np.int64), "two": np.array([2], np.int64)}  # fmt: skip
    graph = helper.make_graph(
        nodes, "detector", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("aux", TensorProto.FLOAT, [1, 4, 8, 8]),
         helper.make_tensor_value_info("which", TensorProto.INT64, None)],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


FEED = {"x": np.random.default_rng(0).random((1, 3, 8, 8), np.float32)}


def names(values: object) -> list[str]:
    return [value.name for value in values]  # type: ignore[attr-defined]


def test_a_tail_is_cut_with_what_else_feeds_it_and_other_outputs_stay() -> None:
    model = onnxlab.load(detector())
    before, original = model.run(FEED, ["boxes", "scores", "aux"]), model.to_bytes()
    assert names(model.cut("boxes")) == ["boxes", "scores"]
    assert names(model.outputs) == ["aux", "boxes", "scores"]
    assert [node.name for node in model.nodes] == ["conv", "aux", "boxes", "max", "scores"]
    assert {tensor.name for tensor in model.proto.graph.initializer} == {"w", "to_boxes"}
    after = model.run(FEED)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    onnx.checker.check_model(model.proto, full_check=True)
    model.undo()
    assert model.to_bytes() == original


def test_without_siblings_what_only_fed_the_tail_goes_too() -> None:
    model = onnxlab.load(detector())
    assert names(model.cut("boxes", siblings=False)) == ["boxes"]
    assert [node.name for node in model.nodes] == ["conv", "aux", "boxes"]


def test_a_model_starts_at_values_and_what_computed_them_goes() -> None:
    model = onnxlab.load(detector())
    inside = model.run(FEED, ["boxes", "scores", "which"])
    assert names(model.cut(inputs=["boxes", "scores"], outputs=["sel"])) == ["sel", "boxes", "scores"]
    assert names(model.outputs) == ["aux", "sel"], "aux does not depend on the cut"
    model.remove_output("aux")
    model.drop_dead_nodes()
    feeds = {"boxes": inside["boxes"], "scores": inside["scores"], "x": FEED["x"]}
    np.testing.assert_array_equal(model.run(feeds)["sel"][:, 2:], inside["which"])
    assert str(model.fact("boxes")) == "float32[1,64,4]"


def test_a_start_in_the_middle_of_a_branch_takes_the_sibling_or_keeps_the_input() -> None:
    model = onnxlab.load(detector())
    model.remove_output("aux")
    model.drop_dead_nodes()
    assert names(model.cut(inputs="m")) == ["m", "f"]
    assert names(model.inputs) == ["m", "f"]
    model.undo()
    assert names(model.cut(inputs="m", siblings=False)) == ["m"]
    assert names(model.inputs) == ["x", "m"]


def test_one_of_several_outputs_of_a_node_becomes_an_input() -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], "split", num_outputs=2),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name, size in (("x", 4), ("y", 2))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    model.cut(inputs="a", siblings=False)
    assert names(model.inputs) == ["x", "a"]
    actual = model.run({"x": np.arange(4, dtype=np.float32), "a": np.zeros(2, np.float32)})["y"]
    np.testing.assert_array_equal(actual, [2, 3])


def test_all_behind_a_value_goes_where_an_output_is_left() -> None:
    model = onnxlab.load(detector())
    assert model.remove_behind("boxes") == 2
    assert names(model.outputs) == ["aux"]
    with pytest.raises(EditError, match=r"no output of the model would be left.*model\.cut\('f'\)"):
        model.remove_behind("f")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "a cut needs a value"),
        ({"outputs": "x"}, "'x' is an input"),
        ({"outputs": "w"}, "'w' is an initializer"),
        ({"outputs": "which"}, "nothing would go"),
    ],
)
def test_cuts_that_make_no_sense_are_refused(arguments: dict[str, str], words: str) -> None:
    model = onnxlab.load(detector())
    before = model.to_bytes()
    with pytest.raises(EditError, match=words):
        model.cut(**arguments)
    assert model.to_bytes() == before


def test_a_dim_is_renamed_fixed_and_made_dynamic_for_all_inputs_at_once() -> None:
    ends = [helper.make_tensor_value_info(f"past.{at}", TensorProto.FLOAT, [1, 2, "past", 4]) for at in range(6)]
    ends += [helper.make_tensor_value_info("one", TensorProto.FLOAT, [2, 1])]
    sums = [helper.make_node("Neg", [f"past.{at}"], [f"out.{at}"]) for at in range(6)]
    outputs = [helper.make_tensor_value_info(f"out.{at}", TensorProto.FLOAT, [1, 2, "past", 4]) for at in range(6)]
    graph = helper.make_graph(sums, "g", ends, outputs)
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert model.replace_dim(1, "batch", axis=0) == 6
    assert model.diagnostics == []
    assert str(model.fact("past.5")) == str(model.fact("out.5")) == "float32[batch,2,past,4]"
    assert str(model.fact("one")) == "float32[2,1]"
    assert [dim.dim_param for dim in model.proto.graph.output[0].type.tensor_type.shape.dim] == [
        "batch",
        "",
        "past",
        "",
    ]
    assert len(model.history.labels) == 1
    assert model.replace_dim("past", "cached") == 12
    assert model.replace_dim("batch", 3) == 12
    assert str(model.fact("out.0")) == "float32[3,2,cached,4]"
    with pytest.raises(EditError, match="give the axis"):
        model.replace_dim(2, "n")
    with pytest.raises(EditError, match="no input or output declares the dim 'gone'; there are cached"):
        model.replace_dim("gone", 1)


def test_a_dim_without_a_name_gets_one() -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4]) for name in ("enc/x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["enc/x"], ["y"])], "g", ends[:1], ends[1:])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert str(model.fact("y")) == "float32[x.0,4]"
    with pytest.raises(EditError, match=r"there are x\.0$"):
        model.replace_dim("batch", 1)
    assert model.replace_dim("x.0", "batch") == 1
    assert str(model.fact("y")) == "float32[batch,4]"
    model.undo()
    assert str(model.fact("y")) == "float32[x.0,4]"


def test_a_value_that_is_given_twice_is_cut_at_once() -> None:
    twice, once = onnxlab.load(detector()), onnxlab.load(detector())
    twice.cut(outputs=["scores", "scores"], inputs=["f", "f"])
    once.cut(outputs=["scores"], inputs=["f"])
    assert twice.to_bytes() == once.to_bytes()
