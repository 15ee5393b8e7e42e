"""Files of `run --save`: every result by its name, read again by onnxlab and NumPy."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxlab import cli
from onnxlab.cli.base import exits

Capture = pytest.CaptureFixture[str]


def saved(path: Path, nodes: list[onnx.NodeProto], inputs: dict[str, int], outputs: list[str]) -> str:
    ends = [helper.make_tensor_value_info(name, dtype, [2]) for name, dtype in inputs.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "g", ends, results)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path / "m.onnx")
    return str(path / "m.onnx")


def test_names_of_arguments_are_names_of_results_too(tmp_path: Path) -> None:
    names = ["file", "allow_pickle", "self", "a/../b"]
    model = saved(tmp_path, [helper.make_node("Neg", ["x"], [name]) for name in names], {"x": 1}, names)
    assert cli.main(["run", model, "--save", str(tmp_path / "y.npz")]) == 0
    with np.load(tmp_path / "y.npz") as arrays:
        assert arrays.files == names


@pytest.mark.parametrize("dtype", ["STRING", "BFLOAT16", "FLOAT8E5M2", "FLOAT8E4M3FN", "INT4", "BOOL", "COMPLEX64"])
def test_results_of_every_type_can_be_fed_again(dtype: str, tmp_path: Path) -> None:
    model = saved(
        tmp_path, [helper.make_node("Identity", ["x"], ["y"])], {"x": TensorProto.DataType.Value(dtype)}, ["y"]
    )
    first, second = tmp_path / "1.npz", tmp_path / "2.npz"
    assert cli.main(["run", model, "--seed", "3", "--save", str(first)]) == 0
    with np.load(first) as arrays:
        np.save(tmp_path / "x.npy", arrays["y"])
    assert cli.main(["run", model, f"x={tmp_path / 'x.npy'}", "--save", str(second)]) == 0
    with np.load(first) as before, np.load(second) as after:
        assert before["y"].tobytes() == after["y"].tobytes()


def test_sequences_are_saved_place_by_place_and_what_is_no_array_is_refused(tmp_path: Path, capsys: Capture) -> None:
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["w"], axis=0),
        helper.make_node("SequenceConstruct", ["x", "w"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": 1}, ["y"])
    assert cli.main(["run", model, "--save", str(tmp_path / "y.npz")]) == 0
    with np.load(tmp_path / "y.npz") as arrays:
        assert {name: arrays[name].shape for name in arrays.files} == {"y.0": (2,), "y.1": (4,)}
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    model = saved(tmp_path, [helper.make_node("Optional", [], ["y"], type=tensor)], {}, ["y"])
    before = (tmp_path / "y.npz").read_bytes()
    assert cli.main(["run", model, "--save", str(tmp_path / "y.npz")]) == exits.UNWRITABLE
    assert "has no place for 'y', which is none" in capsys.readouterr().err
    assert (tmp_path / "y.npz").read_bytes() == before
