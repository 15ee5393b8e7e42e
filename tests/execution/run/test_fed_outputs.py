"""Nodes with several outputs, of which the caller feeds one, or nothing reads one."""

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.base import background

WEIGHTS = "float[6,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}"
BOTH = f"""
<ir_version: 9, opset_import: ["" : 17]>
g (float[n,3] x) => (float[n,3] z) <{WEIGHTS}> {{ p, q = Split<axis=0>(w)  a = MatMul(x, p)  z = MatMul(a, q) }}
"""
ONE = f"""
<ir_version: 9, opset_import: ["" : 17]>
g (float[n,3] x) => (float[n,3] z) <{WEIGHTS}> {{ p, q = Split<axis=0>(w)  a = MatMul(x, p)  z = MatMul(a, p) }}
"""
PROVIDERS = [None, ["numpy"], ["numba", "numpy"], ["onnxruntime", "numpy"]]


@pytest.mark.parametrize("providers", PROVIDERS)
@pytest.mark.parametrize("name", ["p", "q"])
def test_a_pinned_or_fed_output_is_not_made_by_the_part_of_its_node(providers, name):
    x, array = np.ones((2, 3), np.float32), np.eye(3, dtype=np.float32)
    pinned, fed = (onnxlab.load(onnx.parser.parse_model(BOTH)) for _ in range(2))
    weights = np.split(pinned.value("w").array, 2)
    weights["pq".index(name)] = array
    pinned.pin(name, array)
    for number in range(5):
        for results in (
            pinned.run({"x": x}, providers=providers),
            fed.run({"x": x, name: array}, providers=providers),
        ):
            np.testing.assert_allclose(results["z"], x @ weights[0] @ weights[1], err_msg=str(number))
        assert background.wait(100)


@pytest.mark.parametrize("providers", PROVIDERS)
def test_an_output_that_nothing_reads(providers):
    model, x = onnxlab.load(onnx.parser.parse_model(ONE)), np.ones((2, 3), np.float32)
    part = model.value("w").array[:3]
    for _ in range(4):
        np.testing.assert_allclose(model.run({"x": x}, providers=providers)["z"], x @ part @ part)
        assert background.wait(100)
