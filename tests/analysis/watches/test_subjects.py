"""Watches of nodes, of everything, against recorded values, and those that a model file brings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.analysis.watches.expression import WatchError
from onnxlab.analysis.watches.watches import METADATA
from onnxlab.errors import NameLookupError


def image(value: float = 1.0) -> dict[str, Any]:
    return {"image": np.full((1, 1, 8, 8), value, np.float32)}


def test_a_node_is_watched_by_what_it_makes_and_everything_by_each_value() -> None:
    model = onnxlab.load()
    assert model.watch("/stem/relu/Relu", "min >= 0").value == "/stem/relu/Relu"
    model.watch("*", "nan == 0")
    assert [checked.state for checked in model.watches] == ["unknown", "unknown"]
    model.run(image())
    assert [checked.state for checked in model.watches] == ["holds", "holds"]
    model.run(image(np.nan))
    first, second = model.watches.check()
    assert first.state == "fails"
    assert second.state == "fails"
    assert second.why.startswith("stem/conv_out: nan = ")
    assert model.value("stem/conv_out").id in second.values
    model.nodes["/stem/relu/Relu"].name = "act"
    assert model.watches.check()[0].value == "act"
    with pytest.raises(NameLookupError):
        model.watch("nowhere", "nan == 0")


def test_values_are_compared_with_files_beside_the_model(tmp_path: Path) -> None:
    loaded = onnxlab.load()
    path = loaded.save(tmp_path / "model.onnx")
    reference = loaded.run(image(), ["logits"])["logits"]
    np.savez(tmp_path / "ref.npz", logits=reference)
    np.save(tmp_path / "ref.npy", reference * 1.01)
    model = onnxlab.load(path)
    model.watch("logits", 'close_to("ref.npz", 1e-4)')
    model.watch("logits", 'close_to("ref.npy", 1e-4)')
    model.watch("logits", 'close_to("ref.npy", 0.02) and nan == 0')
    assert [checked.state for checked in model.watches] == ["unknown"] * 3
    model.run(image())
    states = model.watches.check()
    assert [checked.state for checked in states] == ["holds", "fails", "holds"]
    assert states[1].why.startswith("off by = 0.0099")
    np.save(tmp_path / "ref.npy", reference)
    assert [checked.state for checked in model.watches] == ["holds"] * 3


@pytest.mark.parametrize(
    "file", ["../secret.npz", "/etc/passwd", "link.npz", "missing.npz", "bad.npz", "other.npz", ""]
)
def test_files_elsewhere_and_broken_ones_are_refused(tmp_path: Path, file: str) -> None:
    (folder := tmp_path / "folder").mkdir()
    np.savez(tmp_path / "secret.npz", logits=np.zeros((1, 10), np.float32))
    (folder / "link.npz").symlink_to(tmp_path / "secret.npz")
    (folder / "bad.npz").write_bytes(b"PK\x03\x04 no archive")
    np.savez(folder / "other.npz", another=np.zeros(3))
    model = onnxlab.load(onnxlab.load().save(folder / "model.onnx"))
    model.watch("logits", f'close_to("{file}", 1)')
    model.run(image())
    (checked,) = model.watches
    assert checked.state == "fails"
    assert checked.why


@pytest.mark.parametrize("text", ["close_to", "close_to()", 'close_to("a")', 'close_to("a", 1, 2)', 'close_to("a", 1'])
def test_the_function_has_two_arguments(text: str) -> None:
    with pytest.raises(WatchError):
        onnxlab.load().watch("logits", text)


def test_a_model_file_brings_its_watches(tmp_path: Path) -> None:
    model = onnxlab.load()
    model.watch("logits", "nan == 0")
    model.watch("*", "inf == 0")
    model.metadata[METADATA] = model.watches.to_json()
    again = onnxlab.load(model.save(tmp_path / "model.onnx"))
    again.run(image())
    assert [str(checked) for checked in again.watches] == ["holds   logits: nan == 0", "holds   *: inf == 0"]


@pytest.mark.parametrize(
    "text", ["", "no json", "{}", "[1]", "[[1, 2, 3]]", json.dumps([["logits", "__import__('os')"]]), "[" * 5000]
)
def test_what_a_file_brings_is_not_trusted(text: str) -> None:
    model = onnxlab.load()
    model.metadata[METADATA] = text
    again = onnxlab.load(model.to_bytes())
    assert len(again.watches) == 0
    assert again.watches.refused


def test_names_that_a_file_brings_may_be_gone() -> None:
    model = onnxlab.load()
    model.metadata[METADATA] = json.dumps([["nowhere", "nan == 0"], ["logits", "nan == 0"]] * 2)
    again = onnxlab.load(model.to_bytes())
    assert (len(again.watches), len(again.watches.refused)) == (2, 2)


def test_a_watch_is_forgotten_by_its_place() -> None:
    model = onnxlab.load()
    for number in range(3):
        model.watch("logits", f"nan == {number}")
    model.watches.remove(1)
    model.watches.remove(9)
    assert [checked.text for checked in model.watches] == ["nan == 0", "nan == 2"]
