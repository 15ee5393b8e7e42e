"""Arrays that a model holds for runs, pins and the last inputs, after edits that change what they have to be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab import ops
from onnxlab.errors import FeedError, NotComputedError
from onnxlab.schemas import Schema

TEXT = """<ir_version: 9, opset_import: ["" : 17]>
g (float[n] x, float[n] v) => (float[n] y) <float[1] w = {2}> { z = Mul (x, w)  a = Relu (z)  y = Add (a, v) }"""
FEEDS = {"x": np.arange(-1, 3, dtype=np.float32), "v": np.ones(4, np.float32)}


def halved() -> tuple[onnxlab.Model, dict[str, np.ndarray[Any, Any]]]:
    """A model that was run in single precision and has been edited to half precision since, and feeds for it."""
    model = onnxlab.load(onnx.parser.parse_model(TEXT).SerializeToString())
    model.run(FEEDS)
    model.pin("z", np.ones(4, np.float32))
    for value in model.inputs:
        value.set_dtype("float16")
    model.value("w").array = np.array([2], np.float16)
    return model, {name: array.astype(np.float16) for name, array in FEEDS.items()}


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"providers": ["numpy"]}])
def test_a_pin_of_another_type_than_its_value_has_now_is_refused(options: dict[str, Any]) -> None:
    """Seen: the pinned array went in as it was, and outputs had its type instead of the declared one."""
    model, feeds = halved()
    with pytest.raises(FeedError, match=r"'z' takes float16\[\?\]; given float32\[4\]"):
        model.run(feeds, **options)
    model.unpin("z")
    assert model.run(feeds, **options)["y"].dtype == np.float16
    model.pin("z", np.ones(4, np.float16))
    assert model.run(feeds, **options)["y"].tolist() == [2, 2, 2, 2]


def test_a_pinned_input_has_the_sizes_of_those_that_are_fed() -> None:
    model = onnxlab.load(onnx.parser.parse_model(TEXT).SerializeToString())
    model.pin("v", np.ones(1, np.float32))
    with pytest.raises(FeedError, match="axis 0 is n, which is"):
        model.run({"x": FEEDS["x"]})


@pytest.mark.parametrize("feeds", [None, {"a": np.ones(4, np.float16)}])
def test_a_selection_reads_no_inputs_of_a_type_from_before(feeds: dict[str, Any] | None) -> None:
    model, _ = halved()
    model.unpin()
    with pytest.raises((FeedError, NotComputedError), match="takes float16"):
        model.subgraph([0, 2]).run(feeds)


def test_values_are_stale_once_a_custom_operator_is_another_one() -> None:
    def times(factor: float) -> Callable[..., Any]:
        return lambda x: x * np.float32(factor)

    model = onnxlab.load(onnx.parser.parse_model(TEXT).SerializeToString())
    model.run(FEEDS)
    model.values["a"]
    assert not model.values.is_stale("a")
    ops.register(Schema("", "Relu", 14), kernel=times(3))
    try:
        assert model.values.is_stale("a")
        assert model.values["a"].tolist() == [-6, 0, 6, 12]
        assert not model.values.is_stale("a")
    finally:
        ops.unregister("", "Relu")
    assert model.values.is_stale("a")
