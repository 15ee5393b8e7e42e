"""Models as text: what goes out comes back, and what a format does not carry is said."""

import contextlib
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxlab
from onnxlab.errors import LoadError, SaveError, SaveWarning, TextError
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats import textual
from onnxlab.formats.base.text import text_format
from tests.analysis.mutations import bases
from tests.graph.support.models import branches, chain
from tests.support.corpus import Corpus

LOSSLESS = [".textproto", ".pbtxt", ".txtpb", ".json"]


@pytest.mark.parametrize("suffix", LOSSLESS)
@pytest.mark.parametrize("number", range(6))
def test_every_field_survives(suffix: str, number: int, tmp_path: Path) -> None:
    model = bases()[number]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is lost, so nothing is said
        path = onnxlab.load(model.SerializeToString()).save(tmp_path / f"m{suffix}")
    assert onnxlab.load(path).proto == model


@pytest.mark.parametrize("name", ["script_control", "skl_rf", "string_ops", "functions_ts"])
@pytest.mark.parametrize("suffix", [".textproto", ".json"])
def test_real_models_survive(name: str, suffix: str, corpus: Corpus, tmp_path: Path) -> None:
    path = onnxlab.load(corpus[name]).save(tmp_path / f"m{suffix}")
    assert onnxlab.load(path).save(tmp_path / "back.onnx").read_bytes() == corpus[name].read_bytes()


@pytest.mark.parametrize("suffix", LOSSLESS)
def test_unknown_fields_are_said_to_be_lost(suffix: str, tmp_path: Path) -> None:
    model = onnxlab.load(chain().SerializeToString() + b"\xfa\x7f\x02hi")
    with pytest.warns(SaveWarning, match=r"does not carry all of this model; lost or changed: \(unknown fields\)"):
        model.save(tmp_path / f"m{suffix}")


def test_onnx_text_says_what_it_leaves_out(tmp_path: Path) -> None:
    model = branches()
    model.graph.node[0].doc_string = "kept nowhere"
    with pytest.warns(SaveWarning, match=r"m\.onnxtxt: ONNX text does not carry all .*graph\.node\[…\]\.doc_string"):
        path = onnxlab.load(model).save(tmp_path / "m.onnxtxt")
    again = onnxlab.load(path)
    assert [node.op_type for node in again.nodes] == ["Twice", "If", "Twice"]
    assert again.check() == []
    assert onnxlab.load(model).to_text() == path.read_text()


def test_onnx_text_says_nothing_of_other_storage_and_absent_domains(tmp_path: Path) -> None:
    model = chain()
    model.graph.node[0].domain = ""
    model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.5, 2.5]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(3), "raw"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnxlab.load(model.SerializeToString()).save(tmp_path / "m.onnxtxt")


def test_an_entry_that_a_text_brings_is_a_change() -> None:
    def decode(text: str) -> onnx.ModelProto:
        model = onnx.ModelProto.FromString(bytes.fromhex(text))
        model.metadata_props.add(key="a", value="b")
        return model

    brings = text_format(
        "brings",
        "A text",
        (".brings",),
        re.compile("x"),
        lambda model: model.SerializeToString().hex(),
        decode,
        rank=99,
    )
    (loss,) = brings.losses(chain(), None)
    assert loss.where == "metadata_props[…]"


def test_onnx_text_that_cannot_be_read_back_is_not_written(tmp_path: Path) -> None:
    model = chain()
    model.graph.initializer.append(onnx.helper.make_tensor("q", onnx.TensorProto.INT4, [2], [1, 2]))
    with pytest.raises(SaveError, match=r"could not be read back .*; \.textproto and \.json carry all of a model"):
        onnxlab.load(model).save(tmp_path / "m.onnxtxt")
    assert not list(tmp_path.iterdir())
    assert "int4[2] q" in onnxlab.load(model).to_text()


TEXT = """
<ir_version: 9, opset_import: ["": 20]>
agraph (float[N] x) => (float[N] y) { y = Relu(x) }
"""


def test_text_is_told_by_its_content_whatever_the_name(tmp_path: Path) -> None:
    for number, data in enumerate([
        TEXT.encode(), b"\xef\xbb\xbf" + TEXT.encode(), b"# a comment\n" + chain().__str__().encode(),
        textual.text_of(chain(), ".json").encode(), chain().SerializeToString(),
    ]):  # fmt: skip
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(data)
        assert len(onnxlab.load(path).nodes) > 0
        assert len(onnxlab.load(data).nodes) > 0
    (tmp_path / "binary.json").write_bytes(chain().SerializeToString())
    assert onnxlab.load(tmp_path / "binary.json").proto == chain()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.json", '{"name": "jupyterlab"}', "it is no JSON of a model: .*no field named .name."),
        ("m.json", '{"graph": ', "it is no JSON of a model"),
        ("m.json", '{"irVersion": 8}', "JSON without a graph"),
        ("m.onnx", '{"name": "jupyterlab"}', "a text file, not an ONNX model; it begins with"),
        ("m.textproto", "graph { node { op_tpe: 3 } }", r"protobuf text of a model: 1:\d+ .*op_tpe"),
        ("m.onnxtxt", "<ir_version: 9> agraph (float x) => ", "it is no ONNX text: .*ParseError at position"),
        ("m.onnxtxt", f"<ir_version: {2**70}> g (float x) => (float y) {{ y = Neg(x) }}", "a number in it is out of"),
        ("m.onnxtxt", "<ir_version: 9> g (float x) => (float y) { y = F <a = 1e999>(x) }", "a number in it is out of"),
        ("m.pbtxt", "hello", "it is no protobuf text of a model"),
    ],
)
def test_text_that_is_no_model_says_where(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(LoadError, match=message) as error:
        onnxlab.load(tmp_path / name)
    assert name in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_text_file_is_edited_and_saved_in_place(tmp_path: Path) -> None:
    path = tmp_path / "m.textproto"
    content = "# by hand\n" + textual.text_of(chain(), ".textproto")
    path.write_text(content)
    model = onnxlab.load(path)
    assert model.save().read_text() == content, "without an edit the bytes stay"
    assert onnx.ModelProto.FromString(model.to_bytes()) == chain()
    model.nodes["r"].name = "renamed"
    (change,) = model.files.save_report()
    assert change.path == "graph.node[1].name"
    assert 'name: "renamed"' in model.save().read_text()
    model.undo()
    assert model.save(tmp_path / "m.onnx").read_bytes() == chain().SerializeToString()
    assert onnx.load(tmp_path / "m.onnx") == chain()


def test_what_a_text_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match=r"beside \.onnx files only"):
        onnxlab.load(chain()).save(tmp_path / "m.json", external_data=True)
    with pytest.raises(ValueError, match=r"'yaml' is no textual format of models; there are \.textproto"):
        onnxlab.load(chain()).to_text("yaml")
    assert list(tmp_path.iterdir()) == []


STARTS = ["", "{", '{"graph', '{"graph": {', "graph {", "<ir_version", "<ir_version: 9> g (float x) => (float y) {"]


@settings(max_examples=60, deadline=None)
@given(start=st.sampled_from(STARTS), rest=st.text(max_size=40))
def test_any_text_is_a_model_or_a_load_error(start: str, rest: str) -> None:
    data = (start + rest).encode("utf-8", "replace")
    with contextlib.suppress(LoadError):
        assert onnx_format.read(data)[0].HasField("graph")


def test_text_that_cannot_hold_a_model_is_refused_by_name() -> None:
    model = onnxlab.Model(chain())
    model.nodes[0].proto.attribute.add(name="odd", type=onnx.AttributeProto.STRING, s=b"\xff\xfe")
    with pytest.raises(TextError, match="no UTF-8, which ONNX text cannot hold"):
        model.to_text()
    assert "odd" in model.to_text(".json")
    with pytest.raises(TextError, match=r"'\.pdf' is no textual format"):
        model.to_text(".pdf")
