"""Arguments of a wrong type are refused in words: TypeError for a type, ValueError for a number out of range."""

from collections.abc import Callable
from typing import Any

import pytest

import onnxlab

WRONG: dict[str, Callable[[Any], object]] = {
    "explain": lambda model: onnxlab.explain_error(None),  # type: ignore[arg-type]
    "extract a number": lambda model: model.extract(3),
    "extract nothing": lambda model: model.extract(None),
    "insert": lambda model: model.insert_node("Relu", model.value("logits")),
    "operator": lambda model: setattr(next(iter(model.nodes)), "op_type", 3),
    "limits": lambda model: model.run(limits=5),
    "seed": lambda model: model.sample_inputs(seed="a"),
    "threads": lambda model: model.run(threads="two"),
    "deadline": lambda model: onnxlab.Limits(deadline="a"),  # type: ignore[arg-type]
    "save": lambda model: onnxlab.save(3, "m.onnx"),  # type: ignore[arg-type]
    "serve": lambda model: onnxlab.serve(3),  # type: ignore[arg-type]
    "yes": lambda model: onnxlab.Limits(iterations=True),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_types_are_refused_in_words(name: str) -> None:
    with pytest.raises(TypeError, match=": expected "):
        WRONG[name](onnxlab.load())


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Limits.bytes is -10: expected a number from 0 on"):
        onnxlab.Limits(bytes=-10)


def test_bytes_may_be_in_words() -> None:
    assert onnxlab.Limits(bytes="2GiB").bytes == 2 << 30  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'much' is no size"):
        onnxlab.Limits(bytes="much")  # type: ignore[arg-type]


def test_a_node_is_no_value() -> None:
    model = onnxlab.load()
    with pytest.raises(onnxlab.OnnxlabError, match="is a node, not a value"):
        model.extract(next(iter(model.nodes)))  # type: ignore[arg-type]


def test_what_is_no_model_is_not_checked() -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="not from int"):
        onnxlab.check(5)


def test_an_exception_is_explained_by_its_text() -> None:
    error = RuntimeError("Unsupported model IR version: 99, max supported IR version: 13")
    assert onnxlab.explain_error(error) == onnxlab.explain_error(str(error))
