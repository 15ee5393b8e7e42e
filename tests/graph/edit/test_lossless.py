"""Nothing is lost: bytes are the same without a net edit, and with one every other field is."""

import os
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxlab
from tests.graph.support.lossless import cases, corpus, lost, node_cases, tortures, wheel
from tests.graph.support.torture import torture

SMALL = 1 << 20
LONG = bool(os.environ.get("ONNXLAB_LONG"))


@pytest.mark.parametrize(("name", "source", "data"), [pytest.param(*case, id=case[0]) for case in tortures()])
def test_a_model_with_everything_in_it(name: str, source: Any, data: bytes) -> None:
    assert lost(source, data) == []


@pytest.mark.slow
def test_small_models_of_the_corpus() -> None:
    losses = {name: lost(path, data) for name, path, data in corpus() if len(data) < SMALL}
    assert len(losses) > 8
    assert not any(losses.values()), losses


def test_models_of_the_wheel() -> None:
    losses = {name: lost(path, data) for name, path, data in list(wheel())[::7]}
    assert len(losses) > 15
    assert not any(losses.values()), losses


@pytest.mark.skipif(not LONG, reason="making the node cases takes 15 s; python -m bench model goes through all")
def test_node_cases() -> None:
    losses = {name: lost(data, data) for name, _, data in list(cases())[::40]}
    assert len(node_cases()) >= 1884
    assert not any(losses.values()), losses


def test_the_saved_file_is_the_loaded_one(tmp_path: Path) -> None:
    data = torture().SerializeToString()
    path = tmp_path / "torture.onnx"
    path.write_bytes(data)
    model = onnxlab.load(path)
    model.nodes["first"].name = "other"
    model.undo()
    model.save(path)
    assert path.read_bytes() == data


def test_the_torture_model_has_every_field_of_onnx_proto() -> None:
    """A field that onnx adds one day must not be forgotten here."""
    seen: dict[str, set[str]] = {}

    def visit(message: Any) -> None:
        known = seen.setdefault(message.DESCRIPTOR.name, set())
        for field, value in message.ListFields():
            known.add(field.name)
            if field.message_type is not None:
                for inner in value if field.is_repeated else [value]:
                    visit(inner)

    visit(torture())
    missing = {
        f"{name}.{field.name}"
        for name, known in seen.items()
        for field in _descriptor(name).fields
        if field.name not in known
    }
    assert missing == set()


def _descriptor(name: str) -> Any:
    descriptors: list[Any] = [onnx.ModelProto.DESCRIPTOR]
    for descriptor in descriptors:
        if descriptor.name == name:
            return descriptor
        descriptors += [
            field.message_type
            for field in descriptor.fields
            if field.message_type and field.message_type not in descriptors
        ]
    raise LookupError(name)
