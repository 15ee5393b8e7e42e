"""Glow's dialect: doc strings, partitions, attributes of its own, and saving as it was read."""

import difflib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf import text_format as protobuf_text
from hypothesis import given
from hypothesis import strategies as st

import onnxlab
from onnxlab.errors import EditError, FeedError, MissingKeyError, RunError, SaveError, SaveWarning
from onnxlab.formats.base.numerals import as_written, numerals_of
from onnxlab.graph.protos import glow_dialect
from onnxlab.notebook.panels.overlay import measured
from onnxlab.notebook.protocol.messages import ProtocolError
from tests.formats.glow.glow_models import model, quantized
from tests.support.samples import samples

DOC = "$offline:0$trainable:0$layout:*$elemKind:i8$qScale:1.20000004768372$qOffset:5$saveName:y_save"


@pytest.mark.parametrize("doc", [DOC, "$layout:", "$a:b:c", "$strides:31,1"])
def test_properties_are_printed_as_they_were_read(doc: str) -> None:
    parsed = glow_dialect.parse_doc(doc)
    assert parsed is not None
    assert glow_dialect.print_doc(parsed) == doc


@pytest.mark.parametrize("doc", ["", "ui8fused", "$", "$a", "$:b", "$a:1$a:2", "x$a:1", "a $b:c"])
def test_other_doc_strings_are_left_alone(doc: str) -> None:
    assert glow_dialect.parse_doc(doc) is None


@given(st.text())
def test_whatever_is_read_is_printed_the_same(doc: str) -> None:
    parsed = glow_dialect.parse_doc(doc)
    assert parsed is None or glow_dialect.print_doc(parsed) == doc


def test_a_property_is_edited_alone() -> None:
    opened = onnxlab.load(model())
    value = opened.value("a")
    assert dict(value.glow)["strides"] == "31,1"
    value.glow["layout"] = "NHWC"
    assert value.doc_string == "$offline:0$trainable:0$layout:NHWC$strides:31,1$elemKind:float"
    del value.glow["strides"]
    assert list(value.glow) == ["offline", "trainable", "layout", "elemKind"]
    opened.undo(to=0)
    assert value.glow["layout"] == "*"
    opened.value("b").glow["layout"] = "*"
    assert opened.value("b").doc_string == "$layout:*"


def test_what_has_no_place_is_refused() -> None:
    opened = onnxlab.load(model())
    with pytest.raises(EditError, match="keep \\$ out of it"):
        opened.value("a").glow["layout"] = "a$b"
    with pytest.raises(EditError, match="not of the form"):
        opened.value("filter").glow["layout"] = "*"
    assert opened.value("filter").doc_string == "ui8fused"
    with pytest.raises(MissingKeyError, match="'qScale'; there is 'offline'"):
        opened.value("a").glow["qScale"]
    assert opened.version == 0


def test_partitions_are_listed_with_all_they_say() -> None:
    opened = onnxlab.load(model())
    (only,) = glow_dialect.partitions(opened.metadata)
    assert (only.name, only.devices, only.backend, only.size) == ("main_p0", (1, 0), "CPU", 1600)
    assert (dict(only.hints), dict(only.options), only.replication) == ({"executionUnits": "0"}, {"opt": "v"}, 1)
    assert [glow_dialect.partition_of(node.proto) for node in opened.nodes] == ["", "main_p0", "main_p0"]
    assert glow_dialect.options_of(opened.nodes[0].proto) == {("CPU", "tile"): ("1", "2")}


@pytest.mark.parametrize("count", ["-1", "x", "2", "999999999999"])
def test_odd_lists_of_partitions_are_none(count: str) -> None:
    assert glow_dialect.partitions({"numPartitions": count, "partition_0_name": "p"}) == ()


def test_attributes_of_its_own_are_no_errors_there_and_are_elsewhere() -> None:
    opened = onnxlab.load(model())
    assert not [problem for problem in opened.check() if problem.severity == "error"]
    feeds = {name: np.eye(2, dtype=np.float32) for name in "ab"}
    np.testing.assert_array_equal(opened.run(feeds)["y"], 2 * np.eye(2))
    other = model()
    other.producer_name = "other"
    assert "attribute-unknown" in {problem.code for problem in onnxlab.load(other).check()}


def test_a_save_node_and_its_output_keep_each_others_names() -> None:
    opened = onnxlab.load(model())
    opened.node("y_save").name = "kept"
    assert opened.value("y").glow["saveName"] == "kept"
    opened.value("y").name = "result"
    assert (opened.node("kept").name, opened.value("result").glow["saveName"]) == ("kept", "kept")
    with pytest.raises(EditError, match="keep \\$ out of it"):
        opened.node("kept").name = "a$b"
    with pytest.raises(EditError, match=r"kept .*is how Glow saves the output 'result'"):
        opened.remove(["kept"], bypass=True)
    opened.undo(to=0)
    assert opened.proto == model()
    opened.simplify(verify=False)
    assert opened.node("y_save").op_type == "Identity"


QUANTIZED = {"a": np.array([[1, 3], [-127, 127]], np.int8), "b": np.array([[-2, 2], [-128, 127]], np.int8)}


def test_quantized_inputs_stand_for_what_their_doc_strings_say() -> None:
    opened = onnxlab.load(quantized())
    # reals: a = (q - 1) / 2, b = (q + 2) / 4, y = 2 * (a + b) + 3
    np.testing.assert_array_equal(opened.run(QUANTIZED)["y"], np.array([[3, 7], [-128, 127]], np.int8))
    opened.value("a").glow["qOffset"] = "3"  # an edit takes effect: a is 1 less
    np.testing.assert_array_equal(opened.run(QUANTIZED)["y"], np.array([[1, 5], [-128, 127]], np.int8))
    opened.undo()
    np.testing.assert_array_equal(opened.run(QUANTIZED)["y"], np.array([[3, 7], [-128, 127]], np.int8))


def test_it_is_written_by_the_specification_on_request(tmp_path: Path) -> None:
    for proto, feeds in ((quantized(), QUANTIZED), (model(), {name: np.eye(2, dtype=np.float32) for name in "ab"})):
        opened = onnxlab.load(proto)
        report = opened.files.loss_report("standard")
        assert {"properties"} <= {loss.what for loss in report}
        with pytest.warns(SaveWarning, match="what Glow says besides: properties"):
            path = opened.save(tmp_path / "m.onnx", format="standard")
        written = onnxlab.load(path)
        onnx.checker.check_model(written.proto, full_check=True)
        assert not [problem for problem in written.check() if problem.severity == "error"]
        assert not any(node.op_type.startswith("Glow_") for node in written.nodes)
        np.testing.assert_array_equal(written.run(feeds)["y"], onnxlab.load(proto).run(feeds)["y"])
    assert onnxlab.load(quantized()).save(tmp_path / "same.onnx").read_bytes() == quantized().SerializeToString()


def test_what_has_no_operators_of_onnx_is_refused(tmp_path: Path) -> None:
    proto = model()
    proto.graph.node[0].op_type = "Glow_Other"
    (refused,) = onnxlab.load(proto).files.loss_report("standard").refused
    assert refused.where == "Glow_Other 'p'"
    with pytest.raises(SaveError, match="Glow_Other 'p': no operators of ONNX are known for it"):
        onnxlab.load(proto).save(tmp_path / "m.onnx", format="standard")
    with pytest.raises(SaveError, match="it is not Glow's"):
        onnxlab.load().save(tmp_path / "m.onnx", format="standard")
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("damage", ["no output", "no input", "a kind that there is not", "an Identity of nothing"])
def test_nodes_that_are_not_those_of_their_operators_are_refused(damage: str, tmp_path: Path) -> None:
    proto = model()
    node = proto.graph.node[0]
    node.op_type = (
        "Identity" if damage == "an Identity of nothing" else "Glow_TopK" if damage == "no input" else "Glow_Relu"
    )
    del node.input[1 if damage.startswith("a ") else 0 :]
    if damage == "no output":
        del node.output[:]
    node.attribute.add(name="o0_elemKind", type="STRING", s=b"nothing" if damage.startswith("a ") else b"float")
    opened = onnxlab.load(proto)
    with pytest.raises((SaveError, RunError, FeedError)):
        opened.run()
    if damage != "an Identity of nothing":
        with pytest.raises(SaveError, match=node.op_type):
            opened.save(tmp_path / "m.onnx", format="standard")


def test_what_is_special_is_noted() -> None:
    opened = onnxlab.load(model())
    assert opened.files.notes(opened.nodes[0].proto) == {"tile of CPU": "1, 2"}
    assert opened.files.notes(opened.nodes[1].proto) == {"Partition": "main_p0"}
    assert opened.files.notes(opened.proto.graph.output[0])["saveName"] == "y_save"
    measures = measured(opened, "partition", {})
    assert (measures.kinds, list(measures.numbers.values())) == (("main_p0",), [0.0, 0.0])
    with pytest.raises(ProtocolError, match="No node of this model says"):
        measured(onnxlab.load(), "partition", {})


def test_it_is_saved_as_it_was_read(tmp_path: Path) -> None:
    opened = onnxlab.load(model())
    path = opened.save(tmp_path / "m.pbtxt")
    again = onnxlab.load(path)
    assert again.proto == opened.proto
    assert again.save(tmp_path / "n.pbtxt").read_bytes() == path.read_bytes()


# -- the samples of Glow itself ----------------------------------------------------------------------------------------


def texts() -> dict[str, bytes]:
    """The samples by name."""
    return {name: data for name, data in samples("glow/samples").items() if name.endswith(".onnxtxt")}


def docs(data: bytes) -> list[str]:
    """Every doc string of a sample."""
    graph = onnxlab.load(data).proto.graph
    bearers: list[Any] = [*graph.input, *graph.output, *graph.value_info, *graph.initializer, *graph.node]
    return [bearer.doc_string for bearer in bearers if bearer.doc_string]


def reprinted(doc: str) -> bool:
    """Whether a doc string is printed as it was read, or left alone as it is none of the grammar."""
    parsed = glow_dialect.parse_doc(doc)
    return (parsed is None) == (not doc.startswith("$")) and (parsed is None or glow_dialect.print_doc(parsed) == doc)


def changed_lines(data: bytes, folder: Path) -> list[str]:
    """The lines of a sample that are others, blanks and order apart, when its graph gets a doc string."""
    (folder / "sample.onnxtxt").write_bytes(data)
    opened = onnxlab.load(folder / "sample.onnxtxt")
    opened.graph_doc_string = "edited"
    edited = opened.save(folder / "edited.onnxtxt").read_text()
    before, after = (sorted(filter(None, text.replace(" ", "").splitlines())) for text in (data.decode(), edited))
    return [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]


@pytest.mark.parametrize("name", texts())
def test_samples_come_back_as_they_were(name: str, tmp_path: Path) -> None:
    data = texts()[name]
    (tmp_path / name).write_bytes(data)
    assert onnxlab.load(tmp_path / name).save(tmp_path / "same.onnxtxt").read_bytes() == data
    assert [doc for doc in docs(data) if not reprinted(doc)] == []
    assert changed_lines(data, tmp_path) == ['+ doc_string:"edited"']


def test_the_samples_have_doc_strings_of_both_kinds() -> None:
    every = [doc for data in texts().values() for doc in docs(data)]
    assert len(every) == 22
    assert [doc for doc in every if glow_dialect.parse_doc(doc) is None] == ["ui8fused"]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("f: 1", "f: 1"), ("f: 1e+10", "f: 1e+10"), ("f: 0.1", "f: 0.1"), ("f: 16777217", "f: 16777216"),
        ("f: 3.40282347e+38", "f: 3.40282347e+38"), ("f: 1e-45", "f: 1.4013e-45"), ("f: -7", "f: -7"),
        ("f: 1.2345678", "f: 1.23456776"),
    ],
)  # fmt: skip
def test_numbers_are_printed_as_the_program_prints_them_that_wrote_the_file(stored: str, shown: str) -> None:
    text = f'ir_version: 7\ngraph {{\n  node {{\n    attribute {{\n      name: "a"\n      {stored}\n    }}\n  }}\n}}\n'
    style = numerals_of("      f: 1\n")
    again = as_written(protobuf_text.MessageToString(protobuf_text.Parse(text, onnx.ModelProto())), style)
    assert again.split("\n")[5].strip() == shown
    assert numerals_of("f: 1.0\nf: 0.5\ni: 1\n") is None
    assert as_written("f: 1.0\n", None) == "f: 1.0\n"
