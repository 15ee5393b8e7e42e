"""Models for the command line, and standard input that holds bytes."""

import io
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

Pipe = Callable[[bytes], None]


def add_model(width: int = 3) -> onnx.ModelProto:
    """x: float32[n, 3], y: float32[n, width] -> Add -> z."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xyz"]
    values[1].type.tensor_type.shape.dim[1].dim_value = width
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"], name="add")], "g", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A sound model."""
    path = tmp_path / "add.onnx"
    onnx.save(add_model(), path)
    return str(path)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """The same with y of another width."""
    path = tmp_path / "broken.onnx"
    onnx.save(add_model(4), path)
    return str(path)


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """Give the next command these bytes on standard input."""
    return lambda data: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
