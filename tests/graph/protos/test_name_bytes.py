"""Texts from Python that no file can hold: half of a surrogate pair is refused, and changes nothing."""

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import EditError, MissingKeyError

HALF = "a\ud800b"

EDITS = {
    "name of a node": lambda model: setattr(model.nodes[0], "name", HALF),
    "name of a value": lambda model: setattr(model.nodes[0].outputs[0], "name", HALF),
    "name of an input": lambda model: setattr(model.inputs[0], "name", HALF),
    "operator": lambda model: setattr(model.nodes[0], "op_type", HALF),
    "documentation": lambda model: setattr(model.nodes[0], "doc_string", HALF),
    "metadata": lambda model: model.metadata.update({"key": HALF}),
    "key of metadata": lambda model: model.nodes[0].metadata.update({HALF: "text"}),
    "attribute": lambda model: model.nodes[0].attributes.update({HALF: 1}),
    "new node": lambda model: model.add_node(HALF, [model.inputs[0]]),
    "new input": lambda model: model.add_input(HALF, "float32", [1]),
    "new initializer": lambda model: model.add_initializer(HALF, np.zeros(2, np.float32)),
    "dim": lambda model: model.inputs[0].set_dim(0, HALF),
}


@pytest.mark.parametrize("edit", EDITS)
def test_half_a_character_is_refused(edit: str) -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(EditError):
        EDITS[edit](model)
    assert (model.to_bytes(), len(model.history)) == (before, 0)


def test_missing_keys_are_key_errors_and_ours() -> None:
    model = onnxlab.load()
    for mapping in (model.metadata, model.opsets, model.nodes[0].attributes):
        with pytest.raises(MissingKeyError, match="nope"):
            mapping["nope"]
        with pytest.raises(KeyError):
            del mapping["nope"]
        assert mapping.get("nope") is None
        assert mapping.pop("nope", 1) == 1
