"""Arrays that a caller fed or got, and then writes to: what a run keeps shares no memory with them."""

from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.base import background

FED = """
<ir_version: 9, opset_import: ["" : 17]>
g (float[n,6] x) => (float[n,6] y) <int64 first = {0},
    float[6,6] w = {1,0,0,0,0,0, 0,1,0,0,0,0, 0,0,1,0,0,0, 0,0,0,1,0,0, 0,0,0,0,1,0, 0,0,0,0,0,1}> {
    kept = SequenceConstruct(x, x)
    item = SequenceAt(kept, first)
    t = Tanh(item)
    y = MatMul(t, w)
}
"""
RETURNED = """
<ir_version: 9, opset_import: ["" : 17]>
g (float[n,6] x) => (float[n,6] y, float[n,6] z) <int64 first = {0},
    float[6,6] w = {1,0,0,0,0,0, 0,1,0,0,0,0, 0,0,1,0,0,0, 0,0,0,1,0,0, 0,0,0,0,1,0, 0,0,0,0,0,1}> {
    t = Tanh(x)
    y = MatMul(t, w)
    kept = SequenceConstruct(y, x)
    item = SequenceAt(kept, first)
    s = Exp(item)
    z = MatMul(s, w)
}
"""


@pytest.mark.parametrize("text", [FED, RETURNED])
@pytest.mark.parametrize("providers", [None, ["numpy"], ["numba", "numpy"]])
def test_values_of_a_run_after_the_caller_wrote_to_its_arrays(text, providers):
    model = onnxlab.load(onnx.parser.parse_model(text))
    for number in range(8):
        x = np.full((2, 6), number / 8, np.float32)
        feeds = {"x": x.copy()}
        results = model.run(feeds, providers=providers)
        expected = onnxlab.load(model.to_bytes())
        expected.run({"x": x}, exact=True)
        for array in (*feeds.values(), *results.values()):
            array[...] = 77
        for name in ("item", "kept"):
            np.testing.assert_allclose(model.values[name], expected.values[name], rtol=1e-5, err_msg=f"{name} {number}")
        if number == 3:
            assert background.wait(100)


SEQUENCE = """
<ir_version: 9, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
g (float[n,2] x) => (seq(map(string, float)) z) {
    s = SequenceConstruct(x, x)
    e = Exp(x)
    z = ai.onnx.ml.ZipMap<classlabels_strings = ["a", "b"]>(e)
}
"""


@pytest.mark.parametrize("exact", [True, False])
def test_lists_and_maps_after_the_caller_wrote_to_them(exact):
    model, x = onnxlab.load(onnx.parser.parse_model(SEQUENCE)), np.zeros((2, 2), np.float32)
    for results in (model.run({"x": x}, exact=exact), model.run(), model.values):
        results["z"][0]["a"] = 99
        assert model.values["z"][0]["a"] == 1
    items: Any = model.values["s"]
    items[0] = items.append(x)
    assert [array.shape for array in model.values["s"]] == [(2, 2)] * 2
