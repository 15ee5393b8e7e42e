"""The inspector over every node and value of real models."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import NameLookupError
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.notebook.panels import inspector as inspect
from onnxlab.notebook.panels.operator_docs import first_sentence, unwrapped
from onnxlab.notebook.protocol.messages import from_wire, number
from onnxlab.notebook.session.hub import hub_of
from onnxlab.notebook.widgets import html_page
from tests.notebook.conftest import Page
from tests.support.corpus import Corpus

MODELS = ["functions_ts", "script_control", "silero_vad_if", "skl_rf", "string_ops", "minilm_int8", "llama12_dyn_ext"]


@pytest.mark.parametrize("name", MODELS)
def test_every_node_and_value_can_be_inspected(corpus: Corpus, name: str) -> None:
    model = onnxlab.load(corpus[name])
    hub = hub_of(model)
    for node in model.graph.nodes.values():
        inspected = hub.inspector.node(node.id, model.diagnostics)
        assert [item["value"] for item in inspected["inputs"]] == node.inputs
        assert [item["value"] for item in inspected["outputs"]] == node.outputs
        json.dumps([inspected, hub.inspector.documentation(node.id)], allow_nan=False)
    for value in model.graph.values:
        json.dumps(hub.inspector.value(value), allow_nan=False)


def test_attributes_are_typed_by_the_schema(model: onnxlab.Model) -> None:
    inspected = hub_of(model).inspector.node(model.nodes["/stem/conv"].id, [])
    attributes = {item["name"]: item for item in inspected["attributes"]}
    assert attributes["strides"] | {"doc": ""} == {
        "name": "strides", "type": "ints", "value": [1, 1], "set": True, "required": False, "default": None, "doc": "",
        "choices": None, "editable": True, "reference": None,
    }  # fmt: skip
    assert attributes["group"]["value"] == attributes["group"]["default"] == 1
    assert not attributes["group"]["set"]
    assert attributes["auto_pad"]["choices"] == ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
    assert inspected["inputs"][1]["formal"] == "W"
    assert inspected["path"] == "stem"


def test_a_reference_to_an_attribute_of_the_function_is_not_editable(corpus: Corpus) -> None:
    model = onnxlab.load(corpus["functions_ts"])
    hub = hub_of(model)
    references = [
        attribute
        for node in model.graph.nodes
        for attribute in hub.inspector.node(node, [])["attributes"]
        if attribute["reference"]
    ]
    assert references
    assert not any(attribute["editable"] for attribute in references)


def test_text_that_is_not_utf8_is_shown_and_not_editable() -> None:
    node = helper.make_node("Custom", ["x"], ["y"], domain="own", blob=b"\xff\xfe")
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, [1])], [])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("own", 1)]))
    (attribute,) = hub_of(model).inspector.node(model.nodes[0].id, [])["attributes"]
    assert attribute["value"] == "\\xff\\xfe"
    assert not attribute["editable"]


def test_what_is_gone_is_an_error(model: onnxlab.Model) -> None:
    inspector = hub_of(model).inspector
    with pytest.raises(NameLookupError, match="not in the model"):
        inspector.node(0, [])
    with pytest.raises(NameLookupError, match="not in the model"):
        inspector.value(0)


@pytest.mark.parametrize(
    ("value", "kind", "sent"),
    [
        (float("nan"), "float", "nan"),
        (float("-inf"), "float", "-inf"),
        (2**63 - 1, "int", str(2**63 - 1)),
        (3, "int", 3),
    ],
)
def test_numbers_that_json_cannot_hold(value: float, kind: str, sent: object) -> None:
    assert number(value) == sent
    back = from_wire(sent, kind)
    assert back == value or back != back


def test_text_that_looks_like_a_number_stays_text() -> None:
    assert from_wire("nan", "string") == "nan"
    assert from_wire(["1", "x"], "strings") == ["1", "x"]
    assert from_wire(["1", "x"], "ints") == [1, "x"]


def test_the_first_sentence_of_every_operator_is_short() -> None:
    for schema in onnx.defs.get_all_schemas():
        assert len(first_sentence(schema.doc or "")) <= 300
        assert "\n" not in first_sentence(schema.doc or "")


def test_paragraphs_are_unwrapped_and_code_is_not() -> None:
    assert unwrapped("One line\nand its end.\n\n* a point\n  of two lines\n* another") == (
        "One line and its end.\n\n* a point of two lines\n* another"
    )
    code = "```\ncode\nmore\n```\nend\n    kept\n    too"
    assert unwrapped(code) == code


def test_large_weights_in_files_are_read_at_their_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "MAX_SUMMARIZED", 1000)
    weight = numpy_helper.from_array(np.arange(4000, dtype=np.float32).reshape(40, 100), "w")
    graph = helper.make_graph(
        [helper.make_node("Neg", ["w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 1, None)], [weight]
    )
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), file, save_as_external_data=True, location="w.bin", size_threshold=0)
    model = onnxlab.load(file)
    read: list[int] = []
    elements = LazyTensor.elements

    def counted(tensor: LazyTensor, start: int, count: int) -> object:
        read.append(count)
        return elements(tensor, start, count)

    monkeypatch.setattr(LazyTensor, "elements", counted)
    inspected = hub_of(model).inspector.value(model.value("w").id)
    assert inspected["initializer"]["preview"] == "[0., 1., 2., ..., 3997., 3998., 3999.]"
    assert (inspected["statistics"], sum(read)) == (None, 6)


def test_a_broken_tensor_is_shown_as_it_stands() -> None:
    """In an attribute and as an initializer; so is the page that is exported."""
    broken = onnx.TensorProto(name="w", data_type=-3, dims=[2], raw_data=b"1234")
    short = onnx.TensorProto(data_type=TensorProto.STRING, dims=[2], string_data=[b"one"])
    nodes = [helper.make_node("Constant", [], ["c"]), helper.make_node("Custom", ["w"], ["y"], domain="my")]
    nodes[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=short)
    nodes[1].attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=broken)
    graph = helper.make_graph(nodes, "g", [], [onnx.ValueInfoProto(name="y")], [broken])
    opened = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    page = Page(opened)
    for ident, dtype in zip(opened.graph.main.node_ids, ("string", "element type -3"), strict=True):
        (value,) = [
            attribute["value"]
            for attribute in page.ask("inspect", node=ident)["attributes"]
            if attribute["name"] == "value"
        ]
        assert value == {"dtype": dtype, "shape": [2], "preview": ""}
    assert len(html_page.record(hub_of(opened))["answers"]["value"]) == len(opened.graph.values)
