"""The codec of journals: every change comes back as it was."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnxlab
from onnxlab.formats.journals import change_codec
from onnxlab.graph.edit import changes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos import tensors
from tests.formats.journals import random_edits, reopened
from tests.graph.support.models import branches


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))


def all_changes() -> set[type]:
    """Every change that there is: the dataclasses that have an `apply`."""
    return {
        kind for _, kind in inspect.getmembers(changes, inspect.isclass)
        if dataclasses.is_dataclass(kind) and hasattr(kind, "apply")
    }  # fmt: skip


def test_every_change_has_a_form_and_every_field_of_it() -> None:
    assert set(change_codec.FIELDS) == all_changes()
    for kind, fields in change_codec.FIELDS.items():
        assert list(fields) == [field.name for field in dataclasses.fields(kind)], kind
        left_out = {name for name, how in fields.items() if how is None}
        assert left_out <= {"ids", "image", "images"}, "only ids may be left out"


def same_field(value: Any, other: Any) -> bool:
    if isinstance(value, tuple) and isinstance(other, tuple):
        return len(value) == len(other) and all(map(same_field, value, other))
    return bool(value == other) and type(value) is type(other)


@pytest.mark.parametrize("seed", range(3))
def test_changes_come_back_as_they_were(seed: int, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a body, a function and a training graph, each inverse included."""
    model = reopened(file)
    seen = []

    def note(change: changes.Change) -> None:
        graph = model.graph
        head, (packed,) = change_codec.unpack(change_codec.pack({"kind": "edit"}, [change_codec.encode(graph, change)]))
        assert head == {"kind": "edit"}
        again = change_codec.decode(graph, packed)
        for name, how in change_codec.FIELDS[type(change)].items():
            if how:
                assert same_field(getattr(again, name), getattr(change, name)), (change, name)
        seen.append(type(change))

    monkeypatch.setattr(model.graph.journal, "note", note)
    monkeypatch.setattr(model.graph.journal, "knows", lambda kind: False)
    monkeypatch.setattr(model.graph.journal, "append", lambda *_: None)
    for _ in random_edits(model, 60, seed):
        pass
    assert len(set(seen)) >= 6


def test_odd_values_survive() -> None:
    graph = ModelGraph(branches())
    odd = [
        changes.SetField(("model", 0), "doc_string", None),
        changes.SetField(("model", 0), "metadata_props", (onnx.StringStringEntryProto(key="ключ"),)),
        changes.SetField(("model", 0), "model_version", -(2**63)),
        changes.InsertFormal(graph.index.function_ids[0], "input", 0, "name"),
        changes.InsertEntry(
            graph.main.id, "sparse_initializer", 0,
            onnx.SparseTensorProto(dims=[3], values=onnx.TensorProto(name="s", dims=[0], data_type=TensorProto.FLOAT)),
        ),
    ]  # fmt: skip
    for change in odd:
        _, (note,) = change_codec.unpack(change_codec.pack({}, [change_codec.encode(graph, change)]))
        assert change_codec.decode(graph, note) == change


def test_a_note_that_does_not_fit_is_refused() -> None:
    graph = ModelGraph(branches())
    note = change_codec.encode(graph, changes.RemoveNode(graph.main.node_ids[-1]))
    with pytest.raises(onnxlab.OnnxlabError, match="does not fit the model"):
        change_codec.decode(ModelGraph(onnx.ModelProto(graph=onnx.GraphProto(name="empty"))), note)
    with pytest.raises(onnxlab.OnnxlabError, match="Unheard"):
        change_codec.decode(graph, ("Unheard", [], []))


def test_a_tensor_beside_its_bytes_is_written_whole(file: Path) -> None:
    graph = reopened(file).graph
    tensor = tensors.raw_tensor(np.arange(6, dtype=np.float32).reshape(2, 3), "added")
    note = change_codec.encode(graph, changes.SetInitializer(graph.main.id, "added", tensor))
    again = change_codec.decode(graph, note)
    assert isinstance(again, changes.SetInitializer)
    assert again.tensor == tensors.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "added")
    graph.apply(changes.SetInitializer(graph.main.id, "added", tensor))
    assert graph.proto.graph.initializer[-1] == again.tensor
