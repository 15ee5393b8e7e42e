"""The limits of noise: rounding that a model amplifies is no fault of a rule, and hides no wrong one."""

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.transforms import verification
from onnxlab.transforms.rounding import rounded_runs
from tests.support import corpus
from tests.support.regions import region

CANCELS, AMPLIFIES = 17, 984
"""Regions: a difference of two activations that are equal for large inputs; a normalization of what hardly varies."""


def parsed(body: str, opset: int = 20) -> onnx.ModelProto:
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> g (float[4,4] x) => (float[4,4] y) {{ {body} }}'
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("seed", [CANCELS, AMPLIFIES])
def test_rounding_that_is_amplified_is_noise(seed: int) -> None:
    model = onnxlab.load(region(seed))
    samples = [model.sample_inputs(seed=seed)]
    receipt = model.optimize("layout", microsoft=True, samples=samples)
    assert receipt.refused == ()
    assert receipt.verdict == "equal within noise"


@pytest.mark.parametrize("seed", [CANCELS, AMPLIFIES])
def test_it_is_told_by_running_the_model_off_by_a_rounding(seed: int) -> None:
    model = onnxlab.load(region(seed))
    feeds = [model.sample_inputs(seed=seed)]
    cases = verification.cases(model.run, feeds)
    runs = rounded_runs(model.graph, model.inference.fact)
    again = verification.with_noise(runs, cases)
    assert any(case.noise["y"] > 2 * before.noise["y"] for case, before in zip(again, cases, strict=True))
    for case in again:
        largest = max(float(np.abs(array[np.isfinite(array)]).max(initial=1.0)) for array in case.feeds.values())
        assert case.noise["y"] <= 1e-3 * largest


def test_whole_numbers_are_not_moved() -> None:
    model = onnxlab.load(parsed("r = Round(x) d = Add(r, r) y = Floor(d)"))
    feeds = model.sample_inputs(seed=0)
    before = model.run(feeds)["y"]
    for run in rounded_runs(model.graph, model.inference.fact):
        assert np.array_equal(run(feeds)["y"], before)


def test_a_wrong_rule_is_seen_where_the_model_amplifies_every_rounding() -> None:
    body = "big = Constant<value = float {100000000}>() a = Sigmoid(x) b = Tanh(a) c = Mul(b, big) y = Sin(c)"
    model = onnxlab.load(parsed(body))
    receipt = model.rewrite(onnxlab.rule("Tanh(x) => Sigmoid(x)", name="wrong"))
    assert [refusal.rule for refusal in receipt.refused] == ["wrong"]
    assert model.nodes["b"].op_type == "Tanh"


def test_the_place_where_most_differs_is_told() -> None:
    model = onnxlab.load(parsed("y = Relu(x)"))
    now = onnxlab.load(parsed("y = LeakyRelu<alpha = 0.5>(x)"))
    feeds = np.zeros((4, 4), np.float32)
    feeds[0, 1], feeds[2, 3] = -1, -8
    cases = verification.cases(model.run, [{"x": feeds}])
    assert verification.judge(now.run, cases).why == "y differs on normal inputs at [2, 3]: 0.0 before, -4.0 now"


@pytest.mark.parametrize("name", ["silero_vad_if", "silero_vad_op18_ifless", "stft_audio"])
def test_sizes_are_found_on_which_a_model_runs(name: str) -> None:
    model = onnxlab.load(corpus.path(name))
    receipt = model.simplify()
    assert receipt.verdict in ("bit equal", "equal within noise")
    assert (receipt.note, receipt.refused) == ("", ())


def test_a_model_that_never_runs_is_said_to_be_unverified() -> None:
    body = "s = Constant<value_ints = [5, 7]>() a = Identity(x) y = Reshape(a, s)"
    model = onnxlab.load(onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> g (float[n,4] x) => (float[5,7] y) {{ {body} }}'
    ))  # fmt: skip
    receipt = model.simplify()
    assert receipt.verdict == "not run"
    assert receipt.note.startswith("the model could not be run, so that nothing was verified: ")
