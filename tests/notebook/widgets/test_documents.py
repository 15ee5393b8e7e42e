"""What a tab of JupyterLab asks of its kernel: a file opened in a view that fills it, saved, refused in words."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab.model.opening import EXAMPLE
from onnxlab.notebook.widgets import documents
from onnxlab.notebook.widgets.documents import open_document, save_document


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
    assert save_document("digits.onnx").data == {"saved": str(folder / "digits.onnx")}
    assert onnx.load(folder / "digits.onnx").graph.node[0].name == "renamed"
    for name in ("../out.onnx", "/tmp/out.onnx", "", ".."):
        assert "is no name of a file" in save_document("digits.onnx", name).data["problem"]["message"]
    assert "is there already" in save_document("digits.onnx", "digits.onnx").data["problem"]["message"]
    assert save_document("digits.onnx", "other.onnx").data == {"saved": str(folder / "other.onnx")}
    assert (folder / "other.onnx").read_bytes() == (folder / "digits.onnx").read_bytes()


def test_a_file_that_was_renamed_is_saved_under_its_name_of_now(folder: Path) -> None:
    open_document("digits.onnx")
    model = documents._open[folder / "digits.onnx"][0]
    model.nodes[0].name = "renamed"
    (folder / "digits.onnx").rename(folder / "moved.onnx")
    assert save_document("moved.onnx").data == {"saved": str(folder / "moved.onnx")}
    assert onnx.load(folder / "moved.onnx").graph.node[0].name == "renamed"
    assert not (folder / "digits.onnx").exists()


def test_a_dropped_model_is_not_saved_over_the_file_of_the_tab(folder: Path) -> None:
    open_document("digits.onnx")
    documents._open[folder / "digits.onnx"][1].show_model(onnxlab.load())
    assert "shows another model" in save_document("digits.onnx").data["problem"]["message"]


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
