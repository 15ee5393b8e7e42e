"""Elements behind the last one of a row are not worked on: see `poisoned`."""

import numpy as np
import pytest

import onnxlab
from bench.regions import hot
from tests.execution.support.regions import Recipe, check
from tests.execution.support.subnormal_memory import HERE, poisoned
from tests.support.corpus import inputs, path

pytestmark = pytest.mark.skipif(not HERE, reason="the flag of x86, by glibc's means")


@pytest.mark.parametrize("name", ["functions_ts", "light_shufflenet", "lstm_gru", "silero_vad_if", "stft_audio"])
def test_no_kernel_works_on_leftovers(name):
    with poisoned() as counts:
        hot(onnxlab.load(path(name))).run(inputs(name, path(name)), keep=False)
    assert counts == {}


def test_the_flag_tells():
    """A model whose own numbers are subnormal."""
    recipe = Recipe()
    x = np.full(64, 1e-40, np.float32)
    twice = recipe.node("Add", recipe.input("x", x), "x")
    with poisoned() as counts:
        check(recipe.model(twice), {"x": x})
    assert counts == {"elementwise": 1}
