"""Inputs and outputs of runs may be said by handles of values, as they are said to edits."""

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import NameLookupError


def test_feeds_and_outputs_by_handle() -> None:
    model = onnxlab.load()
    image = np.ones((1, 1, 8, 8), np.float32)
    by_name = model.run({"image": image}, outputs=["logits"])
    assert model.run({model.inputs[0]: image}, outputs=[model.value("logits")])["logits"].tolist() == (
        by_name["logits"].tolist()
    )
    assert list(model.run({model.inputs[0]: image}, outputs=model.value("logits"))) == ["logits"]  # type: ignore[arg-type]


def test_whatever_takes_feeds_takes_handles() -> None:
    model = onnxlab.load()
    value, image = model.inputs[0], np.ones((3, 1, 8, 8), np.float32)
    assert model.sample_inputs({value: image})["image"] is image  # type: ignore[dict-item]
    assert model.estimate({value: image}).peak == model.estimate({"image": image}).peak  # type: ignore[dict-item]
    assert model.memory(inputs={value: image}).peak == model.memory(batch=3).peak  # type: ignore[dict-item]
    assert model.cost(inputs={value: image}).total.flops == model.cost(batch=3).total.flops  # type: ignore[dict-item]
    assert model.profile({value: image}, [model.value("logits")], runs=1).entries  # type: ignore[dict-item, list-item]
    done = model.subgraph(["/stem/relu/Relu"]).run({model.value("stem/bn_out"): -image})  # type: ignore[dict-item]
    assert not done["stem/relu_out"].any()


def test_values_and_pins_by_handle() -> None:
    model = onnxlab.load()
    model.run({"image": np.ones((1, 1, 8, 8), np.float32)})
    relu = model.value("stem/relu_out")
    assert relu in model.values
    assert model.values[relu] is model.values["stem/relu_out"]  # type: ignore[index]
    assert not model.values.is_stale(relu)  # type: ignore[arg-type]
    model.pin(relu, np.zeros((1, 8, 8, 8), np.float32))  # type: ignore[arg-type]
    assert not model.run(outputs=[relu])["stem/relu_out"].any()  # type: ignore[list-item]
    model.unpin(relu)  # type: ignore[arg-type]
    assert model.run(outputs=[relu])["stem/relu_out"].any()  # type: ignore[list-item]


def test_handles_of_another_model_are_refused() -> None:
    model, other = onnxlab.load(), onnxlab.load()
    with pytest.raises(NameLookupError, match="belongs to another model; look it up by name"):
        model.run({other.inputs[0]: np.ones((1, 1, 8, 8), np.float32)})
    with pytest.raises(NameLookupError, match="belongs to another model"):
        model.run(outputs=[other.value("logits")])  # type: ignore[list-item]
