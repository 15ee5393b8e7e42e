"""Exact runs: node by node with NumPy's kernels, whatever was run and kept before."""

import random

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.execution.base import background

FILTER = "stem/relu_out"


@pytest.fixture
def images() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.random((3, 1, 8, 8)).astype(np.float32) for _ in range(2)]


def fresh(
    model: onnxlab.Model, feeds: dict[str, np.ndarray], outputs: list[str] | None = None
) -> dict[str, np.ndarray]:
    return onnxlab.load(onnx.ModelProto.FromString(model.to_bytes())).run(feeds, outputs, exact=True)


def test_an_exact_run_takes_nothing_of_a_plain_one(images: list[np.ndarray]) -> None:
    model, feeds = onnxlab.load(), {"image": images[0]}
    expected = fresh(model, feeds)
    for _ in range(4):
        plain = model.run(feeds)
        assert background.wait(120)
    assert not np.array_equal(plain["probabilities"], expected["probabilities"])
    for again in (feeds, None, feeds):
        assert np.array_equal(model.run(again, exact=True)["probabilities"], expected["probabilities"])
    assert np.array_equal(model.values[FILTER], fresh(model, feeds, [FILTER])[FILTER])


def test_an_exact_what_if_takes_nothing_of_a_plain_run(images: list[np.ndarray]) -> None:
    model, feeds = onnxlab.load(), {"image": images[0]}
    for _ in range(4):
        model.run(feeds)
        assert background.wait(120)
    state = model.runner.store.state
    gemm = next(node for node in model.nodes if node.op_type == "Gemm")
    bias = {gemm.inputs[2].name: np.arange(10, dtype=np.float32)}
    result = model.run(bias, exact=True)
    assert np.array_equal(result["probabilities"], fresh(model, feeds | bias)["probabilities"])
    assert model.runner.store.state is state


@pytest.mark.parametrize("seed", range(12))
def test_exact_runs_among_plain_ones_edits_and_looks(seed: int, images: list[np.ndarray]) -> None:
    rng, model, feeds = random.Random(seed), onnxlab.load(), {"image": images[0]}
    relu = next(node for node in model.nodes if node.op_type == "Relu")
    model.run(feeds)
    for _ in range(14):
        match rng.randrange(6):
            case 0:
                feeds = {"image": images[rng.randrange(2)]}
                model.run(feeds)
                background.wait(120)
            case 1:
                model.run()
            case 2:
                model.values[rng.choice([FILTER, "logits"])]
            case 3:
                relu.op_type = "Sigmoid" if relu.op_type == "Relu" else "Relu"
            case 4:
                outputs = rng.choice([None, ["logits"], [FILTER]])
                model.run(feeds, outputs, exact=True)
            case 5:
                model.undo(to=0)
        outputs = rng.choice([None, ["logits", FILTER]])
        if rng.random() < 0.5:
            result, expected = model.run(exact=True, outputs=outputs), fresh(model, feeds, outputs)
            assert all(np.array_equal(result[name], expected[name]) for name in expected)
