"""All values of a run in which a node fails that no output needs."""

from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.analysis.computable_values import keep_computable
from onnxlab.errors import LimitError, OnnxlabWarning, RunError
from onnxlab.limits import Limits
from tests.execution.support.models import model

FAILING = """g (float[2] x, int64[1] s) => (float[2] y) { y = Relu (x)
    w = Reshape (x, s) z = Neg (w) q = Exp (x) r = Add (q, z) h = RandomNormalLike (q) k = Add (h, q) }"""


@pytest.mark.parametrize("keep", [True, "border"])
def test_all_values_are_had_but_those_behind_a_node_that_fails(keep: Any) -> None:
    """Seen: `items` raised where one node failed that no output needs, and gave nothing."""
    opened = onnxlab.load(model(FAILING))
    opened.runner.run({"x": np.ones(2, np.float32), "s": np.array([5])}, keep=keep)
    with pytest.warns(OnnxlabWarning, match=r"^3 of 9 values cannot be computed: 'w', 'z', 'r': .*Reshape") as warned:
        items = dict(opened.values.items())
    assert warned[0].filename == __file__
    assert items.keys() == set("xsyqhk")
    np.testing.assert_allclose(items["q"], np.exp(items["x"]), rtol=1e-6)
    np.testing.assert_array_equal(items["k"], items["h"] + items["q"])
    with pytest.warns(OnnxlabWarning):
        assert len(opened.values.values()) == 6
    with pytest.raises(RunError, match="Reshape"):
        opened.values["r"]


def test_a_dict_of_the_values_is_that_of_their_items() -> None:
    opened = onnxlab.load(model(FAILING))
    opened.runner.run({"x": np.ones(2, np.float32), "s": np.array([5])}, keep="border")
    with pytest.warns(OnnxlabWarning, match=r"^3 of 9 values cannot be computed"):
        values = dict(opened.values)
    assert values.keys() == set("xsyqhk")
    with pytest.warns(OnnxlabWarning):
        names = opened.values.keys()
    assert ("q" in names, "r" in names, len(names)) == (True, False, 6)
    assert ("r" in opened.values, "r" in [*opened.values], len(opened.values)) == (True, True, 9)  # nothing is computed
    with pytest.warns(OnnxlabWarning):
        assert opened.values == opened.values


def test_values_that_a_run_would_refuse_are_not_computed_either() -> None:
    """Seen: all values computed the sum of a float and an integer, and so a look gave it, which a run refuses."""
    text = """g (float[2] x) => (float[2] y) {
        a = Relu (x) i = Cast <to = 7> (x) f = Cast <to = 1> (i) y = Add (a, f) z = Neg (y) q = Exp (a) }"""
    opened = onnxlab.load(model(text))
    opened.run({"x": np.ones(2, np.float32)})
    opened.remove(["f"], bypass=True)
    with pytest.warns(OnnxlabWarning, match=r"^2 of 6 values cannot be computed: 'y', 'z': .*insert a Cast"):
        assert dict(opened.values.items()).keys() == set("xaiq")
    for look in (lambda: opened.values["y"], lambda: opened.values["z"], opened.run):
        with pytest.raises(RunError, match="insert a Cast"):
            look()
    assert opened.run(strict=False)["y"].tolist() == [2, 2]


def test_a_limit_ends_all_values() -> None:
    opened = onnxlab.load(model(FAILING))
    opened.runner.run({"x": np.ones(2, np.float32), "s": np.array([5])}, keep="border")
    with pytest.raises(LimitError):
        keep_computable(opened.runner, Limits(deadline=0.0))
