"""Journals and history scripts that an older version wrote still make the same edits.

The files under `history_1` were written by the first version: `flat` with edits from Python and from a view, `nested`
with edits in bodies and functions.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

import onnxlab
from onnxlab.errors import JournalWarning
from onnxlab.formats.journals.journal import prefix

FOLDER = Path(__file__).parent / "history_1"


def labels(name: str) -> list[str]:
    return (FOLDER / f"{name}_labels.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", ["flat", "nested"])
def test_a_journal_of_the_first_version_is_recovered(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "model.onnx"
    shutil.copy(FOLDER / f"{name}.onnx", path)
    (tmp_path / "state" / "journals").mkdir(parents=True)
    shutil.copy(FOLDER / f"{name}.journal", tmp_path / "state" / "journals" / f"{prefix(path)}1-0.journal")
    with pytest.warns(JournalWarning):
        model = onnxlab.load(path)
    assert model.files.recover() > 0
    assert model.history.labels == labels(name)
    assert model.to_bytes() == (FOLDER / f"{name}_edited.onnx").read_bytes()


@pytest.mark.parametrize("name", ["flat", "nested"])
def test_a_script_of_the_first_version_is_replayed(name: str) -> None:
    model = onnxlab.load(FOLDER / f"{name}.onnx")
    namespace: dict[str, Any] = {"__name__": "script"}
    exec((FOLDER / f"{name}_script.txt").read_text(encoding="utf-8"), namespace)
    namespace["replay"](model)
    assert model.history.labels == labels(name)
    assert model.to_bytes() == (FOLDER / f"{name}_edited.onnx").read_bytes()
