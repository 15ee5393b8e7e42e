"""Saves requested by a page: their changes are listed before, and their paths are checked."""

import os
from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab.errors import SaveWarning
from tests.graph.support.models import chain
from tests.notebook.conftest import Page


def test_saving_without_a_path_says_what_to_do(page: Page) -> None:
    error = page.refused("save")
    assert error["code"] == "no_path"
    assert "model.save(" in error["hint"]


def test_saving_writes_where_python_said(page: Page, model: onnxlab.Model, tmp_path: Path) -> None:
    path = model.save(tmp_path / "m.onnx")
    model.nodes[0].name = "renamed"
    assert page.ask("save") == {"path": str(path), "bytes": path.stat().st_size}
    assert page.events[-1]["event"] == "history"
    assert not page.events[-1]["dirty"]
    assert path.read_bytes() == model.to_bytes()


def test_what_saving_would_change_is_told_before(page: Page, model: onnxlab.Model, tmp_path: Path) -> None:
    assert page.refused("unsaved")["code"] == "no_path"
    path = model.save(tmp_path / "m.onnx")
    empty = {"path": str(path), "copy": "m-edited.onnx", "edits": [], "fields": [], "more": [0, 0], "notes": []}
    assert page.ask("unsaved") == empty
    model.nodes[0].name = "renamed\x1b"
    model.nodes[1].name = "second"
    (tmp_path / "m-edited.onnx").symlink_to("nowhere")
    os.link(path, tmp_path / "other.onnx")
    unsaved = page.ask("unsaved")
    assert model.files.unsaved == model.history.labels
    assert unsaved["edits"] == [label.replace("\x1b", r"\x1b") for label in model.files.unsaved]
    assert [field.partition(":")[0] for field in unsaved["fields"]] == ["graph.node[0].name", "graph.node[1].name"]
    assert unsaved["copy"] == "m-edited-2.onnx"
    (note,) = unsaved["notes"]
    assert note.startswith("m.onnx has another name (a hard link), which keeps the old content")
    with pytest.warns(SaveWarning, match="hard link"):
        page.ask("save")
    assert page.ask("unsaved")["edits"] == []
    model.undo()
    assert page.ask("unsaved")["edits"] == [f"undo {model.history.redo_labels[-1]}"]
    onnx.save(chain(), path)
    assert "changed on disk" in page.ask("unsaved")["notes"][0]
    assert "changed on disk" in page.refused("save")["message"]
    path.unlink()
    assert "cannot be read" in page.ask("unsaved")["notes"][0]


def test_a_copy_leaves_the_file_alone_and_is_saved_to_from_then_on(
    page: Page, model: onnxlab.Model, tmp_path: Path
) -> None:
    path = model.save(tmp_path / "m.onnx")
    before = path.read_bytes()
    model.nodes[0].name = "renamed"
    copy = tmp_path / "m-edited.onnx"
    assert page.ask("save", copy=True) == {"path": str(copy), "bytes": copy.stat().st_size}
    assert path.read_bytes() == before
    assert copy.read_bytes() == model.to_bytes()
    assert (page.events[-1]["path"], page.events[-1]["dirty"]) == (str(copy), False)
    model.nodes[0].name = "again"
    page.ask("save")
    assert copy.read_bytes() == model.to_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m-edited.onnx", "m.onnx"]


def test_what_was_not_shown_is_not_saved(page: Page, model: onnxlab.Model, tmp_path: Path) -> None:
    path = model.save(tmp_path / "m.onnx")
    before, shown = path.read_bytes(), page.ask("snapshot")["version"]
    model.nodes[0].name = "meanwhile"
    assert page.refused("save", version=shown)["code"] == "conflict"
    assert path.read_bytes() == before
    page.ask("save", version=page.ask("snapshot")["version"])
    assert path.read_bytes() == model.to_bytes()


def test_a_save_from_python_is_told_too(page: Page, model: onnxlab.Model, tmp_path: Path) -> None:
    model.nodes[0].name = "renamed"
    assert page.events[-1]["dirty"]
    model.save(tmp_path / "m.onnx")
    assert not page.events[-1]["dirty"]
