"""Watches: what expressions say and refuse, when they are checked, and the tests that they become."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.analysis.watches.expression import Expression, WatchError

MEASURES = {"abs_max": 3.0, "min": -3.0, "nan": 0, "shape": (2, 80, 5), "dtype": "float32", "rank": 3}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("abs_max < 65504", True),
        ("abs_max < 1e0", False),
        ("nan == 0 and min >= -3", True),
        ("not nan == 0 or min > 0", False),
        ("shape == (batch, 80, None)", True),
        ("shape == (n, 80, n)", False),
        ("shape != (2, 80)", True),
        ("(abs_max + 1) * 2 - 8 / 1 == 0", True),
        ("-min == abs_max", True),
        ('dtype == "float32"', True),
        ("dtype == float16", False),
        ("rank == 3", True),
    ],
)
def test_what_expressions_say(text: str, holds: bool) -> None:
    assert Expression(text)(MEASURES.__getitem__) is holds


@pytest.mark.parametrize(
    "text",
    [
        "", "abs_max <", "(nan == 0", "nan = 0", "__import__('os')", "min.real > 0", "nan[0] == 0", "nan == 0 nan",
        "lambda: 0", "max(1, 2) > 0", "(" * 200 + "1" + ")" * 200, "not " * 200 + "nan", "1" * 2000, "nan == 0; 1",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(WatchError):
        Expression(text)(MEASURES.__getitem__)


def test_what_has_no_answer_is_refused() -> None:
    for text in ("shape < 3", "dtype + 1 == 2", "1 / nan == 0", "batch < 3"):
        with pytest.raises(WatchError, match="has no answer"):
            Expression(text)(MEASURES.__getitem__)


def image() -> dict[str, Any]:
    return {"image": np.ones((1, 1, 8, 8), np.float32)}


def test_watches_follow_runs_and_edits() -> None:
    model = onnxlab.load()
    model.watch("stem/relu_out", "min >= 0")
    model.watch("stem/relu_out", "shape == (batch, 8, 8, 8)")
    assert [checked.state for checked in model.watches] == ["unknown", "holds"]
    model.run(image())
    assert [checked.state for checked in model.watches] == ["holds", "holds"]
    model.nodes["/stem/relu/Relu"].op_type = "Neg"
    assert [checked.state for checked in model.watches] == ["unknown", "holds"]
    model.run()
    (failing,) = model.watches.failing
    assert str(failing).startswith("fails   stem/relu_out: min >= 0 (min = -")
    model.undo()
    model.run()
    assert model.watches.failing == []


def test_a_hundred_watches_take_milliseconds_after_an_edit() -> None:
    model = onnxlab.load()
    names = [value for node in model.nodes for value in node.proto.output]
    for number in range(100):
        model.watch(names[number % len(names)], f"abs_max < {number + 1}e9 and nan == 0")
    model.run(image())
    model.watches.check()
    seconds, node = [], model.nodes["/head/Softmax"]
    for name in ("one", "two", "three", "four", "five"):
        node.name = name
        start = time.thread_time()
        model.watches.check()
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.02  # 5 ms are promised; others work on this machine


@pytest.mark.slow
def test_the_exported_tests_fail_where_the_watches_do(tmp_path: Path) -> None:
    model = onnxlab.load()
    model.watch("stem/relu_out", "min >= 0")
    model.watch("logits", "shape == (batch, 10) and nan == 0")
    np.savez(tmp_path / "inputs.npz", **image())
    (tmp_path / "test_model.py").write_text(model.watches.to_pytest("model.onnx", "inputs.npz"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py"]
    model.save(tmp_path / "model.onnx")
    assert "2 passed" in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    model.nodes["/stem/relu/Relu"].op_type = "Neg"
    model.save(tmp_path / "model.onnx")
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "1 failed, 1 passed" in output
