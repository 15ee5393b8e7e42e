"""Objects without references are freed at once: nothing of a model waits for Python's garbage collector."""

import gc
import weakref

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.base import background
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from tests.execution.support.internals import programs_of
from tests.execution.support.regions import Eager
from tests.support.corpus import inputs, path

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { a = Add (x, w) y = Sigmoid (a) }
"""


@pytest.fixture
def uncollected():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def parts(model):
    return [weakref.ref(part) for part in (model, model.graph, model.inference, model.runner)]


@pytest.mark.parametrize("name", ["lstm_gru", "silero_vad_if"])
def test_a_model_that_was_run_edited_and_saved(name, uncollected, tmp_path):
    feeds = inputs(name, path(name))
    for provider in ("numpy", "numba"):
        model = onnxlab.load(path(name))
        for step in ("run", "edit", "undo", "save"):
            if step == "edit":
                model.nodes[-1].name = "renamed"
            elif step == "undo":
                model.undo()
            elif step == "save":
                model.save(tmp_path / "model.onnx")
            model.run(feeds, providers=[provider])
            model.runner.run(feeds, keep=False, by=model.runner.by([provider]))
            assert background.wait(100)
        model.check()
        seen = parts(model)
        del model
        assert [part() for part in seen] == [None] * 4


def test_a_compiled_region_and_its_weights(uncollected):
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    runner = Runner(model.graph, model.inference.fact, [Eager(), NumpyProvider()])
    runner.run({"x": np.ones(4, np.float32)}, keep=False)
    (program,) = programs_of(runner)
    (region,) = [
        instruction.call for instruction in program.instructions if type(instruction.call).__name__ == "Region"
    ]
    seen = [*parts(model), *map(weakref.ref, (runner, region, region._packed, region._packed.shared.pasts))]  # type: ignore[attr-defined]
    del model, runner, program, region
    assert [part() for part in seen] == [None] * 8


def test_parts_that_are_held_follow_edits_without_their_model():
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    node, inference, runner, feeds = model.nodes[0], model.inference, model.runner, {"x": np.zeros(4, np.float32)}
    sum_of, (output,) = runner.run(feeds)["y"], model.graph.main.outputs
    del model
    node.op_type = "Sub"
    np.testing.assert_allclose(runner.run(feeds)["y"], 1 - sum_of, atol=1e-6)
    assert inference.fact(output).shape == (4,)
