"""Calls of functions seen through by partitions: the same values, in fewer parts."""

import numpy as np
import onnx
import pytest

from onnxlab.execution.inlining import Flattened
from tests.execution.compiled.regions import Both, assert_close

TEXT = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2, "n"] x, float[4] w) => (float[2, "m"] y, float z)
{
    a = local.Twice <slope = 0.5> (x)
    y = local.Outer <slope = 2.0> (a, w)
    s = ReduceSum <keepdims = 0> (y)
    z, unused = local.Both (s, )
}
<domain: "local", opset_import: ["" : OPSET]>
Twice <slope> (x) => (y) { t = LeakyRelu <alpha: float = @slope> (x)  y = Add (t, x) }
<domain: "local", opset_import: ["" : 21, "local" : 1]>
Outer <slope, high: int = 1> (x, w) => (y) {
    u = local.Twice <slope: float = @slope> (x)
    y = Softmax <axis: int = @high> (u)
}
<domain: "local", opset_import: ["" : 21]>
Both (x, absent) => (a, b) { a = Neg (x)  b = Abs (a) }
"""


def model(opset=21):
    return onnx.parser.parse_model(TEXT.replace("OPSET", str(opset)))


@pytest.mark.parametrize(("opset", "calls"), [(21, 0), (15, 2)])
def test_values_are_those_of_calls(opset, calls):
    """A function at another opset stays a call, within others too."""
    both = Both(model(opset))
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 5), dtype=np.float32), "w": np.ones(4, np.float32)}
    ours, theirs = both.run(feeds)
    for name, expected in theirs.items():
        assert_close(ours[name], expected, 2e-6, name)
    scope = both.hot._compiled[0].main
    flat = Flattened(scope, scope.scope.nodes)
    nodes = flat.needed(["y", "z"], {"x", "w"})
    assert sum(node.op_type == "Twice" for node in nodes) == calls
    assert "Abs" not in [node.op_type for node in nodes], "what only an unused output needs is left out"
    assert len({node.id for node in nodes}) == len(nodes)
    if not calls:
        assert len(both.hot.partition().parts) == 1


def test_a_function_that_passes_an_input_on_stays_a_call():
    text = """
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y, z = local.F (x) }
    <domain: "local", opset_import: ["" : 21]>
    F (x) => (x, b) { b = Neg (x) }
    """
    both = Both(onnx.parser.parse_model(text))
    ours, _ = both.run({"x": np.ones(2, np.float32)})
    assert ours["y"].tolist() == [1, 1]
    assert ours["z"].tolist() == [-1, -1]
