"""Loops that do not end on some inputs: what runs a model on made-up inputs ends all the same, and says so."""

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import LimitError
from onnxlab.execution.run import trial_runs
from onnxlab.transforms.verification_runs import Subject, Trust

TEXT = """<ir_version: 9, opset_import: ["" : 17]> w (float x) => (float y, float[K] h) {{
    t = Constant <value = bool {{1}}> ()
    a = {} (x)
    z = {} (a)
    y, h = Loop (, t, z) <body = b (int64 i, bool c, float s) => (bool co, float so, float sc) {{
        k = Constant <value = float {{1.7}}> ()
        end = Constant <value = float {{100.0}}> ()
        so = Mul (s, k)
        sc = Identity (so)
        co = Less (so, end)
    }}>
}}"""
"""A loop until a number is large enough: endless unless it is above 0."""


def loop(first: str, second: str = "Identity") -> onnxlab.Model:
    """The loop, begun with what two operators make of the input."""
    return onnxlab.Model(onnx.parser.parse_model(TEXT.format(first, second)))


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runs, "_ITERATIONS", 1000)


@pytest.mark.parametrize("job", ["simplify", "fold", "optimize"])
def test_inputs_on_which_the_model_does_not_end_say_nothing(job: str) -> None:
    receipt = getattr(loop("Identity"), job)()
    assert "zeros) the model did not end" in receipt.note
    assert "1,000 iterations" in receipt.note
    assert receipt.verdict == "bit equal"


@pytest.mark.parametrize("job", ["simplify", "fold", "optimize", "suggest"])
def test_a_model_that_ends_on_nan_alone(job: str) -> None:
    answer = getattr(loop("Exp", "Neg"), job)()
    assert job == "suggest" or "(normal, positive, large, tiny, integers, zeros) the model did not" in answer.note


def test_each_run_that_does_not_end_halves_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runs, "_QUICK", 0.0)
    model = loop("Neg")
    runs = trial_runs.TrialRuns(model.runner)
    for limit in ("1,000", "500", "250"):
        with pytest.raises(LimitError, match=f"more than {limit} iterations"):
            runs({"x": np.float32(1)})
    assert runs({"x": np.float32(-3)})["y"] > 100


def test_samples_of_the_user_are_limited_too() -> None:
    """The kinds of inputs that are made of them are not the user's."""
    model = loop("Identity")
    known = Subject(model.graph, model.inference).cases(Trust(samples=[{"x": np.array(3, np.float32)}]))
    assert {case.kind for case in known if case.endless} == {"zeros"}


def test_comparing_on_made_up_inputs_ends() -> None:
    endless = loop("Exp", "Neg")
    for call in (lambda: onnxlab.compare(endless, endless), endless.hunt):
        with pytest.raises(LimitError, match="10,000 iterations"):
            call()
