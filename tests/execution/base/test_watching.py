"""Values inside bodies."""

import numpy as np
import pytest

from onnxlab.errors import NameLookupError, RunError
from tests.execution.support.models import runner

BRANCH = """
g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <
        then_branch = t () => (float[2] t2) { t1 = Add (x, x) t2 = Neg (t1) },
        else_branch = e () => (float[2] e1) { e1 = Neg (x) }
    >
}"""

LOOP = """
g (int64 n, float[2] x) => (float[2] y) <bool yes = {1}> {
    y = Loop (n, yes, x) <
        body = b (int64 i, bool c, float[2] v) => (bool c1, float[2] w) {
            c1 = Identity (c)
            d = Add (v, v)
            w = Neg (d)
        }
    >
}"""


def path(run, name):
    """The path of a value, as people write it."""
    (value,) = [v for v in run.graph.values.values() if v.name == name]
    return f"{run.graph.scope_path(run.graph.scopes[value.scope])}/{name}"


def test_a_value_of_a_branch():
    run = runner(BRANCH)
    inner = path(run, "t1")
    results = run.run({"c": True, "x": [1.0, 2.0]}, ["y", inner])
    assert {name: array.tolist() for name, array in results.items()} == {"y": [-2, -4], inner: [2, 4]}
    with pytest.raises(RunError, match=r"has no value: If#0 did not take this branch"):
        run.run({"c": False, "x": [1.0, 2.0]}, [inner])


def test_a_value_of_a_loop_is_a_list():
    run = runner(LOOP)
    inner = path(run, "d")
    assert [a.tolist() for a in run.run({"n": 3, "x": [1.0, 2.0]}, [inner])[inner]] == [[2, 4], [-4, -8], [8, 16]]
    assert run.run({"n": 0, "x": [1.0, 2.0]}, [inner])[inner] == []
    np.testing.assert_array_equal(run.run({"n": 3, "x": [1.0, 2.0]})["y"], [-8, -16])


def test_a_path_that_leads_nowhere():
    with pytest.raises(NameLookupError):
        runner(LOOP).run({"n": 3, "x": [1.0, 2.0]}, ["Loop#0/body/nothing"])
