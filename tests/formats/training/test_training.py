"""A few steps of training on NumPy have the losses and parameters that onnxruntime-training 1.19.2 gave.

losses.npz was written by onnxruntime-training in another environment: five batches, with AdamW, SGD, and AdamW
resumed from a checkpoint with its state.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.formats.ort.checkpoint import decode
from onnxlab.graph.protos import tensors
from onnxlab.model.training import Training
from tests.support.samples import samples

FILES = samples("training/artifacts")
GIVEN = dict(np.load(Path(__file__).parent / "losses.npz"))
CASES = {
    "adamw": ("training_model.onnx", "optimizer_model.onnx", "checkpoint"),
    "sgd": ("sgd_training_model.onnx", "sgd_optimizer_model.onnx", "sgd_checkpoint"),
    "resumed": ("training_model.onnx", "optimizer_model.onnx", "checkpoint_opt.ckpt"),
    "adamw as .ort": ("ort_training_model.ort", "ort_optimizer_model.ort", "ort_checkpoint"),
}


def training(case: str) -> Training:
    graph, optimizer, checkpoint = (FILES[name] for name in CASES[case])
    return Training(onnxlab.load(graph), onnxlab.load(optimizer), decode(checkpoint))


def farthest(case: str) -> float:
    """The largest difference of a loss, as a part of it, over the stored batches."""
    session = training(case)
    losses = [session.step({"x": x, "target": y}) for x, y in zip(GIVEN["x"], GIVEN["y"], strict=True)]
    return float(np.max(np.abs(np.array(losses) - GIVEN[f"{case}.losses"]) / GIVEN[f"{case}.losses"]))


@pytest.mark.parametrize("case", ["adamw", "sgd", "resumed"])
def test_losses_and_parameters_are_those_of_onnxruntime_training(case: str) -> None:
    session = training(case)
    losses = [session.step({"x": x, "target": y}) for x, y in zip(GIVEN["x"], GIVEN["y"], strict=True)]
    np.testing.assert_allclose(losses, GIVEN[f"{case}.losses"], rtol=2e-6)
    for name, array in session.parameters.items():
        np.testing.assert_allclose(array, GIVEN[f"{case}.{name}"], rtol=1e-5, atol=1e-6)


def test_graphs_in_ort_format_train_the_same() -> None:
    session, other = training("adamw"), training("adamw as .ort")
    feeds = {"x": GIVEN["x"][0], "target": GIVEN["y"][0]}
    np.testing.assert_allclose(session.step(feeds), other.step(feeds), rtol=1e-6)
    assert set(session.parameters) == set(other.parameters)


def test_the_graphs_open_with_types_and_no_problems() -> None:
    for name, data in FILES.items():
        if name.endswith(("training_model.onnx", "optimizer_model.onnx", "eval_model.onnx")):
            model = onnxlab.load(data)
            problems = [problem for problem in model.check() if problem.severity == "error" and problem.node]
            assert problems == [], name
            assert all(str(model.fact(value.id)) != "?" for node in model.nodes for value in node.outputs), name


def test_gradients_add_up_until_a_step() -> None:
    once, twice = training("sgd"), training("sgd")
    feeds = {"x": GIVEN["x"][0], "target": GIVEN["y"][0]}
    before = {name: array.copy() for name, array in once.parameters.items()}
    once.step(feeds)
    twice.backward(feeds)
    twice.step(feeds)
    for name in ("fc1.weight", "fc2.weight"):
        single, double = (before[name] - session.parameters[name] for session in (once, twice))
        np.testing.assert_allclose(double, 2 * single, rtol=1e-3, atol=1e-6)
    with pytest.raises(EditError, match="no gradients to make a step by"):
        once.step()


def test_state_goes_into_a_checkpoint_and_on_from_it() -> None:
    session = training("adamw")
    batches = [{"x": x, "target": y} for x, y in zip(GIVEN["x"], GIVEN["y"], strict=True)]
    for batch in batches[:3]:
        session.step(batch)
    stored = decode(session.checkpoint().to_bytes())
    assert stored.groups[0].step == 3
    graph, optimizer, _ = (FILES[name] for name in CASES["adamw"])
    resumed = Training(onnxlab.load(graph), onnxlab.load(optimizer), stored)
    for batch in batches[3:]:
        assert resumed.step(batch) == session.step(batch)


def test_trained_parameters_go_into_a_model_for_inference() -> None:
    session = training("adamw")
    session.step({"x": GIVEN["x"][0], "target": GIVEN["y"][0]})
    model = onnxlab.load(FILES["mlp.onnx"])
    session.export(model)
    assert len(model.history) == 1
    held = {tensor.name: tensors.to_array(tensor) for tensor in model.proto.graph.initializer}
    assert held["fc1.weight"].tobytes() == session.parameters["fc1.weight"].tobytes()
    with pytest.raises(EditError, match="the model has no initializer of the names"):
        session.export(onnxlab.load())
    model.value("fc1.weight").array = held["fc1.weight"].astype(np.float16)
    with pytest.raises(EditError, match=r"'fc1.weight' is float16\[.* in the model and float32\["):
        session.export(model)


def test_other_graphs_are_refused() -> None:
    mlp, optimizer = onnxlab.load(FILES["mlp.onnx"]), onnxlab.load(FILES["optimizer_model.onnx"])
    with pytest.raises(EditError, match="is no training graph"):
        Training(mlp, optimizer, decode(FILES["checkpoint"]))
    with pytest.raises(EditError, match="is no optimizer graph"):
        Training(onnxlab.load(FILES["training_model.onnx"]), mlp, decode(FILES["checkpoint"]))
    assert isinstance(mlp.proto, onnx.ModelProto)


# -- checkpoints that are written here, in onnxruntime-training -------------------------------------------------------

VARIABLE = "ONNXLAB_ORT_TRAINING_PYTHON"
"""The variable of the environment with the path of an interpreter that has onnxruntime-training."""
CHILD = Path(__file__).parents[2] / "support" / "ort_training_child.py"


def losses_there(case: str, checkpoint: bytes) -> list[float]:
    """The losses of onnxruntime-training for the stored batches, from a checkpoint on."""
    graph, optimizer, _ = CASES[case]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for target, data in (
            ("training_model.onnx", FILES[graph]), ("optimizer_model.onnx", FILES[optimizer]),
            ("eval_model.onnx", FILES[graph.replace("training", "eval")]), ("checkpoint", checkpoint),
        ):  # fmt: skip
            (folder / target).write_bytes(data)
        np.savez(folder / "batches.npz", x=GIVEN["x"], y=GIVEN["y"])
        command = [os.environ[VARIABLE], str(CHILD), name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [float.fromhex(loss) for loss in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no interpreter with onnxruntime-training")
@pytest.mark.parametrize("case", ["adamw", "sgd", "resumed"])
def test_a_checkpoint_that_is_written_anew_gives_the_same_losses(case: str) -> None:
    original = FILES[CASES[case][2]]
    rewritten = decode(original).to_bytes()
    assert losses_there(case, rewritten) == losses_there(case, original)
    np.testing.assert_allclose(losses_there(case, rewritten), GIVEN[f"{case}.losses"], rtol=2e-6)
