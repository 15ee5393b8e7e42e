"""Values that went wrong, found with the node where it begins."""

import json
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.cli import main

HEADER = '<ir_version: 9, opset_import: ["" : 18]> g (float[1,2,2] x) => (float[1,2,2] y)'


def parsed(body: str) -> onnxlab.Model:
    return onnxlab.load(onnx.parser.parse_model(f"{HEADER} {{ {body} }}"))


def image(*numbers: float) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return {"x": np.array(numbers, np.float32).reshape(1, 2, 2)}


def test_nan_is_told_where_it_begins() -> None:
    findings = parsed("a = Log(x) b = Neg(a) y = Add(b, x)").hunt(image(1, -1, 2, 3))
    assert [(finding.value, finding.begins) for finding in findings if finding.kind == "nan"] == [
        ("a", True),
        ("b", False),
        ("y", False),
    ]
    first = findings.first("nan")
    assert first is not None
    assert (first.node, first.count, first.first) == ("Log#0", 1, (0, 0, 1))
    assert str(findings).splitlines()[1] == "a (Log#0): 1 of 4 elements nan, first at [0, 0, 1], begins here"


def test_nan_that_was_given_begins_nowhere() -> None:
    findings = parsed("a = Neg(x) y = Neg(a)").hunt(image(1, np.nan, 2, 3))
    assert [finding.begins for finding in findings] == [False, False]


def test_infinities_large_numbers_dead_channels_and_saturation() -> None:
    findings = parsed("a = Exp(x) y = Relu(a)").hunt(image(100, 12, 0, 0))
    kinds = {(finding.kind, finding.value) for finding in findings}
    assert kinds == {("infinite", "a"), ("infinite", "y"), ("beyond float16", "a"), ("beyond float16", "y")}
    dead = parsed("y = Relu(x)").hunt(image(-1, -2, 3, 4)).first("dead")
    assert dead is not None
    assert (dead.channels, dead.count, dead.total) == ((0,), 1, 2)
    assert parsed("y = Sigmoid(x)").hunt(image(50, 50, 50, 0)).first("saturated") is not None
    assert not parsed("y = Sigmoid(x)").hunt(image(50, 0, 1, 0))
    assert str(parsed("y = Neg(x)").hunt(image(1, 2, 3, 4))) == "nothing found in 1 values"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = parsed("y = Log(x)").save(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([[[1, -1], [2, 3]]], np.float32))
    assert main(["hunt", str(path), f"x={tmp_path / 'x.npy'}", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(finding["kind"], finding["value"], finding["begins"]) for finding in document["findings"]] == [
        ("nan", "y", True)
    ]
    np.save(tmp_path / "x.npy", np.ones((1, 2, 2), np.float32))
    assert main(["hunt", str(path), f"x={tmp_path / 'x.npy'}"]) == 0
