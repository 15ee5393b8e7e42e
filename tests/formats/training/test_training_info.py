"""Training that a model describes itself: a few steps by numbers computed by hand."""

from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.protos import tensors
from onnxlab.model.training_info import TrainingInfo

HEAD = '<ir_version: 10, opset_import: ["": 20]>'
MAIN = f"{HEAD} main (float[N] x) => (float[N] y) <float w = {{2}}> {{ y = Mul(x, w) }}"
STEP = f"""{HEAD} algorithm (float x, float target) => (float loss, float new_w, float next)
<float rate = {{0.1}}, float count = {{0}}, float one = {{1}}, float two = {{2}}> {{
    y = Mul(x, w)
    error = Sub(y, target)
    loss = Mul(error, error)
    doubled = Mul(two, error)
    gradient = Mul(doubled, x)
    change = Mul(rate, gradient)
    new_w = Sub(w, change)
    next = Add(count, one)
}}"""
START = f"{HEAD} start () => (float begin) {{ begin = Constant <value_float = 5.0> () }}"


def described() -> onnx.ModelProto:
    model = onnx.parser.parse_model(MAIN)
    info = model.training_info.add()
    info.algorithm.CopyFrom(onnx.parser.parse_model(STEP).graph)
    info.initialization.CopyFrom(onnx.parser.parse_model(START).graph)
    info.initialization_binding.add(key="w", value="begin")
    info.update_binding.add(key="w", value="new_w")
    info.update_binding.add(key="count", value="next")
    return model


FEEDS = {"x": np.float32(3), "target": np.float32(12)}


def test_steps_are_those_computed_by_hand() -> None:
    training = TrainingInfo(onnxlab.load(described()))
    results = training.step(FEEDS)
    # y = 6, error = -6, gradient = 2 · -6 · 3 = -36, w = 2 + 0.1 · 36
    assert results["loss"] == 36
    assert training.variables["w"] == pytest.approx(5.6)
    results = training.step(FEEDS)
    # y = 16.8, error = 4.8, gradient = 28.8, w = 5.6 - 2.88
    assert results["loss"] == pytest.approx(23.04, rel=1e-5)
    assert training.variables["w"] == pytest.approx(2.72, rel=1e-5)
    assert training.variables["count"] == 2


def test_initialization_sets_what_is_bound_to_it() -> None:
    training = TrainingInfo(onnxlab.load(described()))
    training.step(FEEDS)
    training.initialize()
    assert training.variables["w"] == 5
    assert training.variables["count"] == 1
    assert training.step(FEEDS)["loss"] == 9


def test_the_result_goes_into_the_model_as_one_step() -> None:
    model = onnxlab.load(described())
    before = model.proto.SerializeToString()
    training = TrainingInfo(model)
    training.step(FEEDS)
    assert training.apply() == 2
    assert tensors.to_array(model.proto.graph.initializer[0]) == pytest.approx(5.6)
    held = {tensor.name: tensors.to_array(tensor) for tensor in model.proto.training_info[0].algorithm.initializer}
    assert held["count"] == 1
    assert model.run({"x": np.ones(1, np.float32)})["y"] == pytest.approx(5.6)
    model.undo()
    assert model.proto.SerializeToString() == before


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(EditError, match="the model has 0 entries of training_info, and none at place 0"):
        TrainingInfo(onnxlab.load())
    model = described()
    model.training_info[0].update_binding.add(key="w", value="nothing")
    with pytest.raises(
        EditError, match="the algorithm binds 'w' to 'nothing', which are no initializer and output of it"
    ):
        TrainingInfo(onnxlab.load(model))


def test_bindings_are_edited_as_steps_that_can_be_undone() -> None:
    model = onnxlab.load(described())
    before = model.proto.SerializeToString()
    model.bind("w", "next")
    model.bind("count", None)
    assert [(entry.key, entry.value) for entry in model.proto.training_info[0].update_binding] == [("w", "next")]
    training = TrainingInfo(model)
    training.step(FEEDS)
    assert (training.variables["w"], training.variables["count"]) == (1, 0)
    model.bind("w", None, initialization=True)
    assert not model.proto.training_info[0].initialization_binding
    model.undo(to=0)
    assert model.proto.SerializeToString() == before


@pytest.mark.parametrize(
    ("binding", "words"),
    [
        (("nothing", "next"), "'nothing' is no initializer of the model or of the algorithm"),
        (("x", "next"), "'x' is no initializer"),
        (("w", "y"), "'y' is no output of the algorithm"),
        (("w", "next", True), "'next' is no output of the initialization"),
        (("one", None), "'one' is bound to nothing"),
        (("w", "next", False, 1), "the model has 1 entries of training_info, and none at place 1"),
    ],
)
def test_bindings_that_lead_nowhere_are_refused(binding: tuple[Any, ...], words: str) -> None:
    model = onnxlab.load(described())
    with pytest.raises(EditError, match=words):
        model.bind(*binding)
    assert model.version == 0


def test_a_graph_of_training_is_edited_and_takes_effect() -> None:
    model = onnxlab.load(described())
    change = next(node for node in model.graph.nodes.values() if node.proto.output[0] == "new_w")
    model.node(change.id).op_type = "Add"
    training = TrainingInfo(model)
    training.step(FEEDS)
    assert training.variables["w"] == pytest.approx(2 - 3.6)  # w + 0.1 · -36


def test_both_graphs_are_scopes_with_facts() -> None:
    model = onnxlab.load(described())
    values = {value.name: str(model.inference.fact(value.id)) for value in model.graph.values.values()}
    assert values["gradient"] == "float32[]"
    assert values["begin"] == "float32[]"


def test_trained_variables_are_put_into_nothing_else() -> None:
    model = onnxlab.load(described())
    training = TrainingInfo(model)
    training.step(FEEDS)
    model.value("w").name = "weight"
    before = model.to_bytes()
    with pytest.raises(EditError, match="'w' is no initializer of the model any more"):
        training.apply()
    assert model.to_bytes() == before
    double = described()
    double.training_info[0].algorithm.node[6].CopyFrom(
        onnx.helper.make_node("Cast", ["change"], ["new_w"], to=onnx.TensorProto.DOUBLE)
    )
    double.training_info[0].algorithm.output[1].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    training = TrainingInfo(onnxlab.load(double))
    training.step(FEEDS)
    with pytest.raises(EditError, match=r"'w' is float32\[\], and float64\[\] after training"):
        training.apply()


def test_initializers_of_one_name_in_two_graphs_are_refused() -> None:
    model = described()
    model.training_info[0].algorithm.initializer.append(onnx.numpy_helper.from_array(np.float32(7), "w"))
    with pytest.raises(EditError, match="'w' is an initializer of the main graph and one of the algorithm"):
        TrainingInfo(onnxlab.load(model))
