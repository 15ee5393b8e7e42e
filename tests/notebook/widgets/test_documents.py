"""Requests of a tab of JupyterLab to its kernel: a file opened in a view that fills it, saved, refused in words."""

import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab.errors import SaveWarning
from onnxlab.model.opening import EXAMPLE
from onnxlab.notebook.widgets import documents
from onnxlab.notebook.widgets.documents import open_document, save_document
from onnxlab.notebook.widgets.magic import suffixes
from tests.support.samples import samples

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The kernel's folder, with a model in it."""
    shutil.copy(EXAMPLE, tmp_path / "digits.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(documents, "_open", {})
    yield tmp_path
    for _, view in documents._open.values():
        view.close()


def test_a_page_that_is_loaded_again_gets_the_model_with_its_edits(folder: Path) -> None:
    first = open_document("digits.onnx").data["view"]
    model, view = documents._open[folder / "digits.onnx"]
    assert (view.model_id, view.height) == (first, "fill")
    model.nodes[0].name = "renamed"
    second = open_document("digits.onnx").data["view"]
    assert second != first
    assert not view.is_open, "the view of the page that is gone follows the model no longer"
    assert documents._open[folder / "digits.onnx"][1].model.nodes[0].name == "renamed"


def test_saving_writes_the_file_and_a_copy_stays_in_the_folder(folder: Path) -> None:
    assert "is not open in this kernel" in save_document("digits.onnx").data["problem"]["message"]
    open_document("digits.onnx")
    documents._open[folder / "digits.onnx"][0].nodes[0].name = "renamed"
    assert save_document("digits.onnx").data == {"saved": str(folder / "digits.onnx"), "notes": []}
    assert onnx.load(folder / "digits.onnx").graph.node[0].name == "renamed"
    for name in ("../out.onnx", "/tmp/out.onnx", "", ".."):
        assert "is no name of a file" in save_document("digits.onnx", name).data["problem"]["message"]
    assert "is there already" in save_document("digits.onnx", "digits.onnx").data["problem"]["message"]
    assert save_document("digits.onnx", "other.onnx").data == {"saved": str(folder / "other.onnx"), "notes": []}
    assert (folder / "other.onnx").read_bytes() == (folder / "digits.onnx").read_bytes()


def test_what_a_format_does_not_carry_is_noted(folder: Path) -> None:
    open_document("digits.onnx")
    (note,) = save_document("digits.onnx", "digits.onnxtxt").data["notes"]
    assert "does not carry all of this model" in note


def test_a_file_that_was_renamed_is_saved_under_its_name_of_now(folder: Path) -> None:
    open_document("digits.onnx")
    model = documents._open[folder / "digits.onnx"][0]
    model.nodes[0].name = "renamed"
    (folder / "digits.onnx").rename(folder / "moved.onnx")
    assert save_document("moved.onnx").data == {"saved": str(folder / "moved.onnx"), "notes": []}
    assert onnx.load(folder / "moved.onnx").graph.node[0].name == "renamed"
    assert not (folder / "digits.onnx").exists()


def test_a_dropped_model_is_not_saved_over_the_file_of_the_tab(folder: Path) -> None:
    open_document("digits.onnx")
    documents._open[folder / "digits.onnx"][1].show_model(onnxlab.load())
    assert "shows another model" in save_document("digits.onnx").data["problem"]["message"]


def test_every_kind_of_file_that_a_tab_takes_is_opened(folder: Path) -> None:
    """The endings are those of widgets/lab/file_types.ts; dumps and graphs that are texts are opened too."""
    types = (REPOSITORY / "widgets" / "lab" / "file_types.ts").read_text(encoding="utf-8")
    endings = set(re.findall(r'"(\.\w+)"', types)) - {".txt", ".json"}
    assert {".onnx", ".ort", ".textproto", ".safetensors"} <= endings <= set(suffixes())
    model = onnxlab.load(EXAMPLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SaveWarning)  # of the parts that texts do not hold
        for ending in endings - {".onnx", ".safetensors"}:
            model.save(folder / f"digits{ending}")
    model.files.save_weights(folder / "digits.safetensors")
    formats = REPOSITORY / "tests" / "formats"
    shutil.copy(next((formats / "ge").glob("*PreRunBegin.pbtxt")), folder / "dump.txt")
    (folder / "glow.txt").write_bytes(samples("glow/samples")["if_true.onnxtxt"])
    for name in [*(f"digits{ending}" for ending in endings), "dump.txt", "glow.txt"]:
        assert "view" in (answer := open_document(name).data), (name, answer)


def test_what_cannot_be_opened_or_saved_is_said_in_words(folder: Path) -> None:
    (folder / "broken.onnx").write_text("no model")
    assert open_document("broken.onnx").data["problem"]["title"] == "broken.onnx cannot be opened"
    assert "not an ONNX model" in open_document("broken.onnx").data["problem"]["message"]
    assert "missing.onnx" in open_document("missing.onnx").data["problem"]["message"]
    open_document("digits.onnx")
    documents._open[folder / "digits.onnx"][0].nodes[0].name = "renamed"
    (folder / "digits.onnx").write_bytes(b"of another program")
    assert save_document("digits.onnx").data["problem"]["title"] == "digits.onnx cannot be saved"
    assert (folder / "digits.onnx").read_bytes() == b"of another program"
