"""Values of random operators, and what they make, looked at after a run: those that the run used."""

import numpy as np
import pytest

from tests.execution.support.internals import By
from tests.execution.support.models import runner
from tests.execution.support.regions import Eager

RANDOM = """
g (float[64] x) => (float[64] y) {
    r = RandomNormalLike (x)
    a = Add (r, x)
    b = Relu (a)
    y = Neg (b)
}
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_what_was_drawn_at_random_is_what_the_run_used(compiled: bool) -> None:
    run = runner(RANDOM)
    hot = By(run, [Eager(), "numpy"] if compiled else ["numpy"])
    for _ in range(3):
        output = hot.run({"x": np.zeros(64, np.float32)}, keep="border")["y"]
        np.testing.assert_array_equal(run.value("b"), -output)
        np.testing.assert_array_equal(np.maximum(run.value("r"), 0), -output)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_an_output_drawn_at_random_is_that_of_the_run_after_short_runs_too(compiled: bool, at_once: bool) -> None:
    run = runner("g (float[4] x) => (float[4] y, float[4] r) { r = RandomUniformLike (x) y = Add (r, x) q = Neg (r) }")
    hot = By(run, [Eager(), "numpy"] if compiled else ["numpy"])
    for turn in range(6):
        outputs = hot.run({"x": np.full(4, turn, np.float32)}, keep="border")
        if at_once:
            run.on_demand.keep_all()
        np.testing.assert_array_equal(run.value("q"), -outputs["r"])
        for name, array in outputs.items():
            np.testing.assert_array_equal(run.value(name), array)
