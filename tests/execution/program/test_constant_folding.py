"""Nodes that read constants alone run once, until an edit changes what they read."""

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.program import executor
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}, float[2] v = {3, 4}, float[2] u = {1, 1}>
{ a = Abs (w)  b = Neg (v)  c = Add (x, a)  d = Mul (c, u)  y = Add (d, b)  z = Mul (x, a) }
"""
X = np.ones(2, np.float32)


@pytest.fixture
def calls(monkeypatch):
    """The operators of the instructions that ran."""
    seen: list[str] = []
    execute = executor.execute

    def noted(program, frame, run, observer=None, rows=None, border=None):
        seen.extend(row[0].step.op for row in rows)
        return execute(program, frame, run, observer, rows, border)

    monkeypatch.setattr(executor, "execute", noted)
    return seen


def runner():
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    return model, Runner(model.graph, model.inference.fact, [NumpyProvider()])


def replace(model, name, array):
    value = next(value for value in model.graph.values.values() if value.name == name)
    edits.set_initializer(model.graph, value, np.array(array, np.float32))


def test_a_node_of_constants_runs_once_for_a_program_and_after_edits_of_what_it_reads(calls):
    model, run = runner()
    for _ in range(3):
        run.run({"x": X}, ["y", "z"], keep=False)
    for factor in (1, 2, 3):
        replace(model, "u", [factor, factor])
        expected = (X + np.array([1, 2])) * factor - np.array([3, 4])
        np.testing.assert_array_equal(run.run({"x": X}, keep=False)["y"], expected)
    replace(model, "u", [1, 1])
    assert calls[:6] == ["Abs", "Neg", "Add", "Mul", "Add", "Mul"]
    assert "Abs" not in calls[6:]
    assert "Neg" not in calls[6:]
    for factor in (1, 2, 3):
        replace(model, "v", [factor, factor])
        np.testing.assert_array_equal(run.run({"x": X}, keep=False)["y"], X + np.array([1, 2]) - factor)
    assert calls.count("Neg") == 4
    replace(model, "w", [5, 6])
    np.testing.assert_array_equal(run.run({"x": X}, keep=False)["z"], [5, 6])


def test_results_of_constants_belong_to_the_caller_and_stay_as_they_are():
    _, run = runner()
    for _ in range(3):
        result = run.run({"x": X}, ["a"], keep=False)["a"]
        np.testing.assert_array_equal(result, [1, 2])
        result[:] = 9


def test_what_takes_too_much_memory_is_computed_in_each_run(calls, monkeypatch):
    monkeypatch.setattr("onnxlab.execution.program.constant_folding.SHARE_OF_MEMORY", 0)
    _, run = runner()
    for _ in range(2):
        np.testing.assert_array_equal(run.run({"x": X}, ["y"], keep=False)["y"], [-1, -1])
    assert calls.count("Abs") == 2
