"""Networks of Caffe2 as text, written here by the format's rules."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import LoadError, SaveError, SaveWarning
from tests.support.samples import samples

PREDICT = """
name: "net"
op { input: "data" input: "w" output: "fc" name: "first" type: "FC" engine: "DNNLOWP" unknown_field: 3 }
op { input: "fc" output: "fc" type: "Relu" control_input: "c"
     device_option { device_type: 1 device_id: 2 extra { a: 1 } } }
op {
  input: "fc" input: "data" output: "data" output: "info" type: "Concat"
  arg { name: "axis" i: 1 } arg { name: "eps" f: 0.5 } arg { name: "order" s: "NCHW" }
  arg { name: "sizes" ints: 1 ints: 2 } arg { name: "scales" floats: 0.5 } arg { name: "names" strings: "a" }
  arg { name: "none" } arg { name: "body" n { op { input: "q" output: "r" type: "Copy" } } }
}
external_input: "data"
external_input: "w"
external_output: "data"
"""
INIT = """
op { output: "w" type: "GivenTensorFill" arg { name: "shape" ints: 2 ints: 3 }
     arg { name: "values" floats: 1 floats: 2 floats: 3 floats: 4 floats: 5 floats: 6 } }
op { output: "q" type: "Int8GivenTensorFill" arg { name: "shape" ints: 2 } arg { name: "values" s: "\\001\\377" }
     arg { name: "Y_scale" f: 0.5 } arg { name: "Y_zero_point" i: 10 } }
op { output: "b" type: "GivenTensorBoolFill" arg { name: "shape" ints: 1 } arg { name: "values" ints: 1 } }
op { output: "s" type: "GivenTensorStringFill" arg { name: "shape" ints: 1 } arg { name: "values" strings: "x" } }
op { output: "u" type: "GivenTensorByteStringToUInt8Fill" arg { name: "shape" ints: 1 ints: 3 }
     arg { name: "values" strings: "\\000\\177\\377" } }
op { output: "h" type: "GivenTensorFp16Fill" arg { name: "shape" ints: 2 }
     arg { name: "values" floats: 0.5 floats: 2 } }
op { output: "z" type: "ConstantFill" arg { name: "shape" ints: 4 } }
"""


def test_a_value_that_is_written_again_gets_a_number() -> None:
    model = onnxlab.load(PREDICT.encode())
    wires = [(node.op_type, list(node.input), list(node.output)) for node in model.proto.graph.node]
    assert wires == [
        ("FC", ["data", "w"], ["fc@1"]),
        ("Relu", ["fc@1"], ["fc"]),
        ("Concat", ["fc", "data"], ["data@1", "info"]),
    ]
    assert [value.name for value in model.inputs] == ["data", "w"]
    assert [value.name for value in model.outputs] == ["data@1"]


def test_arguments_of_every_kind_are_attributes() -> None:
    nodes = onnxlab.load(PREDICT.encode()).nodes
    held = nodes[2].attributes
    assert (held["axis"], held["eps"], held["sizes"], held["scales"]) == (1, 0.5, [1, 2], [0.5])
    assert held["none"] == []
    assert nodes[0].metadata["caffe2.engine"] == "DNNLOWP"
    assert nodes[1].metadata["caffe2.device"] == "1:2"
    assert nodes[2].proto.attribute[-1].g.node[0].op_type == "Copy"


def test_the_init_net_beside_gives_the_initializers(tmp_path: Path) -> None:
    (tmp_path / "my_predict_net.pbtxt").write_text(PREDICT)
    (tmp_path / "my_init_net.pbtxt").write_text(INIT)
    model = onnxlab.load(tmp_path / "my_predict_net.pbtxt")
    np.testing.assert_array_equal(np.asarray(model.tensor("w")), [[1, 2, 3], [4, 5, 6]])
    assert [value.name for value in model.inputs] == ["data"]
    with pytest.raises(SaveError):
        model.save()
    with pytest.warns(SaveWarning, match="operators of the nodes: they stay those of a Caffe2 network"):
        model.save(tmp_path / "m.onnx")


def test_an_init_net_alone_is_a_graph_of_initializers() -> None:
    model = onnxlab.load(INIT.encode())
    np.testing.assert_array_equal(np.asarray(model.tensor("q")), np.array([1, 255], np.uint8))
    np.testing.assert_array_equal(np.asarray(model.tensor("u")), np.array([[0, 127, 255]], np.uint8))
    np.testing.assert_array_equal(np.asarray(model.tensor("h")), np.array([0.5, 2], np.float16))
    assert np.asarray(model.tensor("b")).tolist() == [True]
    assert np.asarray(model.tensor("s")).tolist() == ["x"]
    assert [node.op_type for node in model.nodes] == ["ConstantFill"]
    stored = {tensor.name: tensor for tensor in model.proto.graph.initializer}
    assert {entry.key: entry.value for entry in stored["q"].metadata_props} == {
        "caffe2.Y_scale": "0.5",
        "caffe2.Y_zero_point": "10",
    }


def test_a_network_without_operators_opens() -> None:
    model = onnxlab.load(b'external_input: "x"\nexternal_output: "y"\n')
    assert (len(model.nodes), [value.name for value in model.outputs]) == (0, ["y"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('op { type: "FC" input }', "no text of a Caffe2 network"),
        (INIT.replace("ints: 2 ints: 3", "ints: -2 ints: -3"), "of shape"),
        (INIT.replace("ints: 2 ints: 3", "ints: 2 ints: 4"), "with 6 elements"),
        ("op { arg { n { " * 200, "no text of a Caffe2 network"),
    ],
    ids=["syntax", "negative", "short", "deep"],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        onnxlab.load(text.encode())


# -- the samples of Glow -----------------------------------------------------------------------------------------------


def nets() -> dict[str, bytes]:
    """The samples by name."""
    return {name: data for name, data in samples("caffe2/samples").items() if name.endswith(".pbtxt")}


def said_and_read(data: bytes) -> tuple[Counter[str], Counter[str]]:
    """The operators with all that they read and make, and the ends of the net: in the text, and as they were opened."""
    text = re.sub(r"device_option \{[^}]*\}", "", data.decode())
    blocks = re.split(r"(?m)^op \{", text)[1:]
    stated: Counter[str] = Counter()
    for block in blocks:
        kind = re.search(r'\btype: "(\w+)"', block)
        assert kind is not None
        if not kind[1].endswith("Fill"):
            names = {field: re.findall(rf'^  {field}: "([^"]+)"', block, re.MULTILINE) for field in ("input", "output")}
            stated[f"{kind[1]} {names['input']} {names['output']}"] += 1
        else:
            stated[f"Fill {re.findall(r'^  output: .([^ ]+).$', block, re.MULTILINE)}"] += 1
    model = onnxlab.load(data)
    graph = model.proto.graph
    read = Counter(f"{node.op_type} {list(node.input)} {list(node.output)}" for node in graph.node)
    read.update(f"Fill {[tensor.name]}" for tensor in graph.initializer)
    return stated, read


@pytest.mark.parametrize("name", nets())
def test_samples_open_with_the_operators_and_edges_of_the_text(name: str) -> None:
    stated, read = said_and_read(nets()[name])
    assert stated
    assert read == stated
