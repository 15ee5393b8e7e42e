"""Notes of a file's format besides ONNX are in the answers that the inspector shows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.notebook.protocol.records import CONTROL
from onnxlab.notebook.session.hub import hub_of
from tests.support.samples import FORMATS, samples


def inspected(path: Path, data: bytes) -> tuple[onnxlab.Model, Any]:
    path.write_bytes(data)
    model = onnxlab.load(path)
    return model, hub_of(model).inspector


def test_runtime_optimizations_stand_at_the_nodes_that_they_cover(tmp_path: Path) -> None:
    model, inspector = inspected(tmp_path / "m.ort", samples("ort/configs")["qdq_conv.with_runtime_opt.ort"])
    notes = {node.op_type: inspector.node(node.id, [])["notes"] for node in model.nodes}
    covered = {"Runtime optimization": "QDQSelectorActionTransformer: Conv makes QLinearConv, 4 nodes"}
    assert notes["Conv"] == covered
    conv = next(node for node in model.nodes if node.op_type == "Conv")
    conv.name = "edited"
    assert "not any more: the node was edited" in inspector.node(conv.id, [])["notes"]["Runtime optimization"]


def test_momentums_stand_at_the_parameters(tmp_path: Path) -> None:
    data = samples("training/artifacts")["checkpoint_opt.ckpt"]
    model, inspector = inspected(tmp_path / "state.ckpt", data)
    notes = inspector.value(model.value("fc1.weight").id)["notes"]
    assert (notes["In training"], notes["Steps of group0"]) == ("trained", "3")
    assert float(notes["Norm of momentum0"]) > 0
    assert inspector.value(model.value("fc2.bias").id)["notes"] == {"In training": "frozen"}


def test_most_formats_have_none() -> None:
    model = onnxlab.load()
    assert model.files.notes(model.nodes[0].proto) == {}
    assert hub_of(model).inspector.node(model.nodes[0].id, [])["notes"] == {}


def test_control_edges_of_a_dump_are_marked_for_the_page() -> None:
    model = onnxlab.load(next((FORMATS / "ge").glob("*PreRunBegin.pbtxt")))
    content, buffer = hub_of(model).scene.snapshot()
    ints = np.frombuffer(buffer, "<i4")
    columns = {name: ints[offset : offset + length] for name, (offset, length) in content["sections"].items()}
    flags = dict(zip(columns["value_id"], columns["value_flags"], strict=True))
    marked = {value.name for value in model.graph.values.values() if flags[value.id] & CONTROL}
    assert marked == {value.name for value in model.graph.values.values() if value.name.endswith(":-1")}
    assert len(marked) > 0


@pytest.mark.parametrize("name", ["pt2/module.pt2", "caffe2"])
def test_operators_that_nothing_is_inferred_of_are_no_problems(name: str) -> None:
    data = samples("caffe2/samples")["fc_predict_net.pbtxt"] if name == "caffe2" else (FORMATS / name).read_bytes()
    model = onnxlab.load(data)
    assert model.files.about().uninferred
    assert (model.diagnostics, model.check(), onnxlab.check(data)) == ([], [], [])
    plain = onnxlab.load(model.to_bytes())
    assert "unknown-operator" in {problem.code for problem in plain.diagnostics}, "as ONNX they are"
