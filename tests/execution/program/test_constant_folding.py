"""Nodes that read constants alone run once, until an edit changes what they read."""

import gc
import weakref

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.program import constant_folding
from onnxlab.execution.program.constant_folding import Folder
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}, float[2] v = {3, 4}>
{ a = Abs (w)  b = Neg (v)  c = Add (x, a)  y = Add (c, b)  z = Mul (x, a) }
"""
X = np.ones(2, np.float32)


@pytest.fixture
def calls(monkeypatch):
    """The operators of the instructions that were run to be folded."""
    seen: list[str] = []
    needed = constant_folding.needed

    def noted(program, known, slots=None):
        rows = needed(program, known, slots)
        seen.extend(row[0].step.op for row in rows if slots is not None)
        return rows

    monkeypatch.setattr(constant_folding, "needed", noted)
    return seen


def runner():
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    return model, Runner(model.graph, model.inference.fact, [NumpyProvider()])


def test_a_node_of_constants_runs_once_for_all_programs_and_after_edits_elsewhere(calls):
    model, run = runner()
    for outputs in (["y"], ["z"], ["y", "z"]):
        run.run({"x": X}, outputs, keep=False)
    assert calls == ["Abs", "Neg"]
    for factor in (1, 2, 3):
        v = next(value for value in model.graph.values.values() if value.name == "v")
        edits.set_initializer(model.graph, v, np.full(2, factor, np.float32))
        np.testing.assert_array_equal(run.run({"x": X}, keep=False)["y"], X + np.array([1, 2]) - factor)
    assert calls.count("Abs") == 1
    assert calls.count("Neg") == 4
    w = next(value for value in model.graph.values.values() if value.name == "w")
    edits.set_initializer(model.graph, w, np.array([5, 6], np.float32))
    np.testing.assert_array_equal(run.run({"x": X}, keep=False)["z"], [5, 6])
    assert calls.count("Abs") == 2
    assert calls.count("Neg") == 4


def test_what_two_versions_of_a_model_do_not_ask_for_is_dropped():
    folder, array = Folder(budget=100), np.zeros(4, np.float64)
    folding = folder.of("key", len)
    folding.results[0] = array
    assert folder.room() == 100 - 32
    folder.turn()
    assert folder.room() == 100
    assert folder.of("key", len) is folding
    seen = weakref.ref(array)
    folder.turn()
    folder.turn()
    assert folder.of("key", len) is not folding
    del folding, array
    gc.collect()
    assert seen() is None
