"""A part cut out as a model of its own, and a model inserted by chosen wires: what is told before, and undo."""

import base64

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from tests.notebook.conftest import Page, edit
from tests.notebook.hand import small


def two_sided() -> onnx.ModelProto:
    """p, q → p * w + q → r."""
    nodes = [helper.make_node("Mul", ["p", "w"], ["m"], "mul"), helper.make_node("Add", ["m", "q"], ["r"], "add")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4, 8, 8]) for name in "pqr"]
    weight = numpy_helper.from_array(np.full((1,), 2, np.float32), "w")
    graph = helper.make_graph(nodes, "two", ends[:2], ends[2:], [weight])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


@pytest.fixture
def page() -> Page:
    page = Page(onnxlab.load(small()))
    data = base64.b64encode(two_sided().SerializeToString()).decode()
    page.ask("upload", file="two", name="two.onnx", offset=0, data=data)
    return page


def _part(page: Page, *names: str) -> list[int]:
    return [page.model.nodes[name].id for name in names]


def _preview(page: Page, nodes: list[int]) -> dict[str, object]:
    answer: dict[str, object] = page.ask("cut_preview", outputs=[], inputs=[], part=nodes, siblings=False, behind=False)
    return answer


def test_a_part_is_told_before_it_is_cut_out_and_changes_nothing(page: Page) -> None:
    nodes = _part(page, "add", "relu")
    before = page.model.to_bytes()
    effect = _preview(page, nodes)
    assert (effect["kept"], effect["stored"]) == (3, 0), "the Constant that add reads comes along"
    assert effect["nodes"] == _part(page, "conv")
    assert effect["inputs"] == ["c float32[n,4,8,8]"]
    assert effect["outputs"] == ["y float32[n,4,8,8]"]
    page.ask("open", nodes=nodes)
    part = page.session.model
    assert [node.name for node in part.nodes] == ["one", "add", "relu"]
    assert [value.name for value in (*part.inputs, *part.outputs)] == ["c", "y"]
    onnx.checker.check_model(part.proto, full_check=True)
    assert page.model.to_bytes() == before
    page.ask("open", file=None)
    assert page.session.model is page.model


def test_what_cannot_be_cut_out_is_refused(page: Page) -> None:
    assert (
        "not in the model any more"
        in page.refused("cut_preview", outputs=[], inputs=[], part=[9_999], siblings=False, behind=False)["message"]
    )
    assert page.refused("open", nodes=[9_999])["code"] == "gone"


def test_a_model_is_inserted_by_chosen_wires_and_undone(page: Page) -> None:
    offer = page.ask("file", file="two")
    assert [value["name"] for value in offer["inputs"]] == ["p", "q"]
    assert [value["name"] for value in offer["outputs"]] == ["r"]
    assert offer["outputs"][0]["label"].startswith("float32[")
    model = page.model
    c, a, y = (model.value(name).id for name in "cay")
    before = model.to_bytes()
    done = page.ask("edit", **edit("insert_model", file="two", connect=[0, c], feed=[], prefix="in/", outputs=False))
    assert done["python"] == "model.insert('two.onnx', {'q': 'c'}, prefix='in/', add_outputs=False)"
    assert [value.name for value in model.inputs] == ["x", "in/p"]
    assert [value.name for value in model.outputs] == ["y"]
    assert model.nodes["in/add"].inputs[1].name == "c"
    model.undo()
    assert model.to_bytes() == before
    page.ask("edit", **edit("insert_model", file="two", connect=[a, c], feed=[a], prefix="", outputs=True))
    assert model.nodes["relu"].inputs[0].name == "r"
    assert model.nodes["add"].outputs[0].uses[0][0].name == "mul"
    arrays = model.run(model.sample_inputs(), ["r", "y"])
    assert np.array_equal(arrays["y"], np.maximum(arrays["r"], 0))
    model.undo()
    assert model.to_bytes() == before
    assert (
        "1 outputs, got 2"
        in page.refused("edit", **edit("insert_model", file="two", connect=[], feed=[a, y], prefix="", outputs=True))[
            "message"
        ]
    )
