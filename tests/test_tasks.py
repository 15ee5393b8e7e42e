"""README's table of what is done most, a line each, on four models of different kinds: it works, or says why not."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab import cli
from onnxlab.errors import OnnxlabError
from tests.support.corpus import Corpus

README = Path(__file__).resolve().parents[1] / "README.md"
TABLE = README.read_text(encoding="utf-8").partition("## I want to")[2].partition("\n## ")[0]
ROWS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:-1]]
    for line in TABLE.splitlines()
    if line.startswith("| ") and "---" not in line and "I want to" not in line
]
TASKS = [line for row in ROWS for line in row[1]]
COMMANDS = [line for row in ROWS for cell in row[2:] for line in cell]
MODELS = {
    "light_resnet50": {"value": "r3", "node": "n2", "weight": "gpu_0/conv1_w_0"},
    "rapidocr_cls": {},
    "logreg_iris": {"weight": "coefficients"},
    "silero_vad_if": {"value": "output", "node": "Equal_0"},
}
"""Models, and the names that take the places of `value`, `node` and `weight`, where they are not found by kind."""
INT8 = 'model.quantize("int8_weights")'
BY_INPUTS = 'model.quantize("int8", calibrate=[feeds])'
REFUSED = {
    ("logreg_iris", "np.histogram(model.run(feeds, [weight])[weight])"): "no value .*is called 'coefficients'",
    ("silero_vad_if", "model.run(model.sample_inputs())"): "a window of 128 does not fit into 40",
    ("silero_vad_if", "onnxlab.compare(model, other)"): "neither model runs: .*a window of 128 does not fit into 40",
    ("light_resnet50", INT8): "convert it first: model.convert_opset\\(13\\)",
    ("light_resnet50", BY_INPUTS): "convert it first: model.convert_opset\\(13\\)",
    ("rapidocr_cls", INT8): "convert it first: model.convert_opset\\(13\\)",
    ("rapidocr_cls", BY_INPUTS): "convert it first: model.convert_opset\\(13\\)",
    ("logreg_iris", INT8): "convert it first: model.convert_opset\\(13\\)",
    ("logreg_iris", BY_INPUTS): "convert it first: model.convert_opset\\(13\\)",
    ("logreg_iris", 'model.quantize("float16")'): "convert it first: model.convert_opset\\(6\\)",
}
"""Reasons: attributes hold the weights of linear models; how long a sound is, its user knows; older opsets have
no scales of channels and no Cast to such types."""


def names_of(name: str, model: onnxlab.Model, path: Path) -> dict[str, Any]:
    """The objects of the table's names."""
    feeds: dict[str, Any] = {}
    if name == "silero_vad_if":  # 32 ms of sound
        feeds = {
            "input": np.zeros((1, 512), np.float32),
            "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.array(16000),
        }
    unary = [node for node in model.nodes if node.op_type in ("Relu", "Identity", "Normalizer", "Clip", "Equal")]
    constants = [node.outputs[0].name for node in model.nodes if node.op_type == "Constant"]
    names: dict[str, Any] = {
        "model": model, "other": onnxlab.load(path), "onnxlab": onnxlab, "np": np, "path": path,
        "feeds": model.sample_inputs(feeds), "name": model.inputs[0].name,
        "value": model.nodes[len(model.nodes) // 2].outputs[0].name,
        "node": unary[0].name or unary[0].outputs[0].name, "weight": (constants or ["none"])[-1],
        "text": "No Op registered for Relo with domain_version of 17",
    }  # fmt: skip
    return names | MODELS[name]


def test_the_table_has_the_sixteen_tasks() -> None:
    assert len(ROWS) >= 16
    assert len(TASKS) >= 17


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", MODELS)
def test_a_line_does_it_or_says_why_not(
    name: str, task: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(corpus[name])
    monkeypatch.chdir(tmp_path)
    model = onnxlab.load(path)
    before = model.to_bytes()
    names = names_of(name, model, path)
    stored = {value.name: value.array for value in model.find_values(kind="initializer")}
    np.savez("w.npz", **{key: array for key, array in stored.items() if array is not None and array.dtype != object})
    if (name, task) in REFUSED:
        with pytest.raises(OnnxlabError, match=REFUSED[name, task]):
            exec(task, names)
        assert model.to_bytes() == before
        return
    exec(f"result = {task}", names)
    assert names["result"] is not None or task.startswith("print(") or model.to_bytes() != before
    if model.to_bytes() != before:
        model.undo()
        assert model.to_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_the_shell_has_these_words(command: str) -> None:
    program, *words = shlex.split(command)
    assert program == "onnxlab"
    options, rest = cli.parser().parse_known_args(words)
    assert callable(options.command)
    assert not [word for word in rest if word.startswith("-")]
