"""Memory and shapes for other sizes, as the page asks for them."""

import itertools

import onnx
from onnx import TensorProto, helper

import onnxlab
from onnxlab.notebook.panels import memory_curve
from tests.notebook.conftest import Page
from tests.notebook.hand import small


def test_a_curve_has_its_peak_and_the_shapes_follow() -> None:
    model = onnxlab.load(small())
    four = memory_curve.curve(model, {"n": 4})
    assert four["peak"] == 4 * memory_curve.curve(model, {"n": 1})["peak"] == model.memory(n=4).peak
    assert max(four["alive"]) == four["peak"]
    assert four["peak_node"] in four["nodes"]
    assert dict(zip(four["values"], four["labels"], strict=True)) == {
        model.value("x").id: "4×3×8×8", model.value("y").id: "4×4×8×8",
    }  # fmt: skip
    assert (four["assumed"], memory_curve.curve(model, None)["assumed"]) == ([], ["n"])
    assert four["at_peak"][0]["nbytes"] == 4 * 4 * 8 * 8 * 4


def test_many_steps_are_columns_of_the_most_of_each() -> None:
    names = [f"v{place}" for place in range(2001)]
    nodes = [helper.make_node("Neg", [start], [end]) for start, end in itertools.pairwise(names)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    points = memory_curve.curve(onnxlab.load(helper.make_model(graph)), {})
    assert (points["steps"], len(points["nodes"]), len(points["alive"])) == (2000, 600, 600)
    empty = helper.make_model(helper.make_graph([], "g", ends[:1], ends[:1]))
    assert memory_curve.curve(onnxlab.load(empty), {})["alive"] == []


def test_sizes_that_cannot_be_are_refused(page: Page, model: onnxlab.Model) -> None:
    assert page.refused("memory", sizes={"depth": 2})["code"] == "nothing"
    assert page.refused("memory", sizes={"depth": -2})["code"] == "malformed"
    assert page.refused("memory", sizes={"depth": "2"})["code"] == "malformed"
    assert page.ask("memory", sizes=None)["peak"] == model.memory().peak


def test_what_does_not_fit_is_told() -> None:
    weight = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(helper.make_tensor("", 1, [3], [1, 2, 3])), "w")
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    model = onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])))
    assert memory_curve.curve(model, {"n": 3})["refused"] == []
    assert memory_curve.curve(model, {"n": 5})["refused"] != []
