"""Statements of formats on a whole model: for Python, and for the page that shows it."""

from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab.errors import SaveWarning
from onnxlab.notebook.session.hub import ROWS
from onnxlab.notebook.session.session import Session
from tests.formats.glow.glow_models import model as glow
from tests.support.samples import FORMATS, samples

CHECKPOINT = samples("training/artifacts")["checkpoint_opt.ckpt"]


def test_a_checkpoint_is_a_table() -> None:
    about = onnxlab.load(CHECKPOINT).files.about()
    assert about.title == "a training checkpoint"
    assert about.columns[:3] == ("Parameter", "Group", "Type")
    first = dict(zip(about.columns, about.rows[0], strict=True))
    assert first["Group"] in ("trained", "frozen")
    assert first["Norms of momentums"].startswith("momentum0 ")
    assert "Steps of group0" in about.pairs
    assert str(about).splitlines()[0] == "a training checkpoint"


def test_partitions_of_glow_are_a_table() -> None:
    about = onnxlab.load(glow()).files.about()
    assert about.title == "ONNX in Glow's dialect"
    assert about.rows == [("main_p0", "CPU", "1, 0", "1600", "1", "executionUnits=0, opt=v")]


@pytest.mark.parametrize(
    "path", [FORMATS / "ge" / "ge_onnx_00000003_graph_3_Build.pbtxt", FORMATS / "pt2" / "module.pt2"]
)
def test_formats_without_inference_say_so(path: Path) -> None:
    about = onnxlab.load(path).files.about()
    assert about.uninferred.startswith("Nothing is inferred of ")
    assert onnxlab.load().files.about().uninferred == ""


def test_descriptors_are_notes_of_their_nodes() -> None:
    model = onnxlab.load(FORMATS / "ge" / "ge_onnx_00000001_graph_1_PreRunBegin.pbtxt")
    notes = model.files.notes(model.node("net/conv:1").proto)
    assert any("NC1HWC0" in text for title, text in notes.items() if title.startswith("input"))


def test_the_page_gets_a_table_of_bounded_length() -> None:
    proto = onnxlab.load(CHECKPOINT).proto
    assert _asked(CHECKPOINT)["more"] == 0
    assert len(_asked(CHECKPOINT)["rows"]) == len(proto.graph.initializer)
    copy = onnx.ModelProto()
    copy.CopyFrom(glow())
    names = {entry.key: entry.value for entry in copy.metadata_props if entry.key.startswith("partition_0_")}
    for number in range(1, ROWS + 5):
        for key, value in names.items():
            copy.metadata_props.add(key=key.replace("_0_", f"_{number}_", 1), value=value)
    next(entry for entry in copy.metadata_props if entry.key == "numPartitions").value = str(ROWS + 5)
    answer = _asked(copy)
    assert (len(answer["rows"]), answer["more"]) == (ROWS, 5)


def _asked(source: bytes | onnx.ModelProto) -> dict[str, object]:
    sent: list[dict[str, object]] = []
    session = Session(onnxlab.load(source), lambda message, buffers: sent.append(message))
    session.receive({"id": 1, "method": "format", "params": {}})
    return next(message["result"] for message in sent if message.get("id") == 1)  # type: ignore[return-value]


def test_what_another_format_held_says_nothing_of_the_file(tmp_path: Path) -> None:
    model = onnxlab.load(samples("ort/configs")["qdq_conv.with_runtime_opt.ort"])
    with pytest.warns(SaveWarning, match="a checkpoint does not hold nodes"):
        model.save(tmp_path / "weights.ckpt")
    assert model.files.about().title == "a training checkpoint"
    assert model.files.notes(model.proto.graph.initializer[0]) == {}
    model = onnxlab.load(CHECKPOINT)
    model.save(tmp_path / "weights.ort")
    assert (model.files.about().title, model.files.about().rows) == ("ORT format", ())


def test_a_file_of_the_runtime_lists_its_optimizations() -> None:
    files = samples("ort/configs")
    about = onnxlab.load(files["qdq_conv.with_runtime_opt.ort"]).files.about()
    assert about.pairs["Version"] == "6"
    (row,) = about.rows
    assert dict(zip(about.columns, row, strict=True)) | {"Nodes": ""} == {
        "Optimizer": "QDQSelectorActionTransformer", "Action": "Conv", "Nodes": "", "Makes": "QLinearConv",
    }  # fmt: skip
    assert onnxlab.load(files["mnist.ort"]).files.about().columns == ()
