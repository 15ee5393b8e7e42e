"""Archives of torch.export: a stored one of a small module, and archives made here."""

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import LoadError, SaveError, SaveWarning
from onnxlab.formats.pt2.symbols import dim_of

MODULE = Path(__file__).with_name("module.pt2")
"""Conv2d, BatchNorm2d, relu, mean, Linear with a symbolic batch, exported by torch 2.13."""


def calls(path: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        return json.loads(archive.read(name))["graph_module"]["graph"]["nodes"]


def test_nodes_and_edges_are_those_of_the_program() -> None:
    model = onnxlab.load(MODULE)
    expected = [
        (
            call["target"],
            [argument["arg"]["as_tensor"]["name"] for argument in call["inputs"] if "as_tensor" in argument["arg"]],
            [argument["as_tensor"]["name"] for argument in call["outputs"]],
        )
        for call in calls(MODULE)
    ]
    edges = [
        (f"torch.ops.{node.domain}.{node.op_type}.{node.overload}", list(node.input), list(node.output))
        for node in model.proto.graph.node
    ]
    assert edges == expected
    assert [value.name for value in model.inputs] == ["x"]
    assert [value.name for value in model.outputs] == ["linear"]


def test_types_constants_and_modules_come_along() -> None:
    model = onnxlab.load(MODULE)
    assert str(model.fact("conv2d")) == "float32[s77,8,8,8]"
    assert model.node("c/conv2d").attributes["stride"] == [1, 1]
    assert model.node("b/batch_norm").attributes["training"] == 0
    assert model.proto.graph.initializer[0].doc_string == "c.weight"
    assert model.tensor("p_c_weight").is_external
    assert not [problem for problem in model.check() if problem.severity == "error"]


def test_weights_are_those_of_the_file_with_a_path_and_without() -> None:
    with zipfile.ZipFile(MODULE) as archive:
        raw = archive.read(next(name for name in archive.namelist() if name.endswith("weights/weight_0")))
    expected = np.frombuffer(raw, np.float32).reshape(8, 3, 3, 3)
    for model in (onnxlab.load(MODULE), onnxlab.load(MODULE.read_bytes())):
        np.testing.assert_array_equal(np.asarray(model.tensor("p_c_weight")), expected)


def test_it_is_saved_as_onnx_only(tmp_path: Path) -> None:
    model = onnxlab.load(MODULE)
    with pytest.raises(SaveError, match=r"only read; save it as \.onnx"):
        model.save(tmp_path / "m.pt2")
    (loss,) = model.files.loss_report("onnx")
    assert str(loss).startswith("operators of the nodes: they stay those of a torch.export archive, which no runtime")
    with pytest.warns(
        SaveWarning, match=r"m\.onnx: operators of the nodes: they stay .*; to run it, let torch convert"
    ):
        path = model.save(tmp_path / "m.onnx")
    again = onnxlab.load(path)
    np.testing.assert_array_equal(np.asarray(again.tensor("p_l_bias")), np.asarray(model.tensor("p_l_bias")))


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("Symbol('s0', positive=True, integer=True)", "s0"),
        ("Mul(Integer(2), Symbol('s0'))", "2*s0"),
        ("Add(Symbol('a'), Mul(Integer(-1), Symbol('b')))", "a + (-1*b)"),
        ("FloorDiv(Add(Symbol('a'), Integer(1)), Integer(2))", "(a + 1)//2"),
        ("Max(Integer(1), Symbol('a'))", "max(1, a)"),
        ("__import__('os')", None),
        ("Symbol('a b')", None),
        ("(" * 500, None),
        ("Symbol()", None),
    ],
)
def test_sizes_become_dims(text: str, dim: str | None) -> None:
    size = {"as_expr": {"expr_str": text}}
    if dim == "a + (-1*b)":
        assert dim_of(size) in (dim, "a + ((-1)*b)")
    else:
        assert dim_of(size) == dim


def archive(program: Any, weights: Any = None, files: dict[str, bytes] | None = None, packed: bool = False) -> bytes:
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", kind) as target:
        target.writestr("m/models/model.json", json.dumps(program))
        if weights is not None:
            target.writestr("m/data/weights/model_weights_config.json", json.dumps(weights))
        for name, held in (files or {}).items():
            target.writestr(f"m/data/weights/{name}", held)
    return data.getvalue()


def program(*nodes: Any, **graph: Any) -> dict[str, Any]:
    spec = {"parameter": {"arg": {"name": "w"}, "parameter_name": "lin.w"}}
    inputs = [{"as_tensor": {"name": "w"}}, {"as_tensor": {"name": "x"}}]
    graph_json = {"inputs": inputs, "outputs": [], "nodes": list(nodes), "tensor_values": {}, **graph}
    return {"graph_module": {"graph": graph_json, "signature": {"input_specs": [spec]}}}


def weight(sizes: list[int], strides: list[int], offset: int = 0, dtype: int = 7) -> dict[str, Any]:
    meta = {
        "dtype": dtype,
        "sizes": [{"as_int": size} for size in sizes],
        "strides": [{"as_int": stride} for stride in strides],
        "storage_offset": {"as_int": offset},
    }
    return {"config": {"lin.w": {"path_name": "weight_0", "use_pickle": False, "tensor_meta": meta}}}


@pytest.mark.parametrize("packed", [False, True])
def test_weights_with_strides_and_offsets(tmp_path: Path, packed: bool) -> None:
    stored = np.arange(8, dtype=np.float32)
    path = tmp_path / "m.pt2"
    views = (([2, 3], [1, 2], 1), ([3], [1], 4), ([2, 2], [0, 1], 0), ([], [], 7), ([0, 5], [5, 1], 0))
    for sizes, strides, offset in views:
        path.write_bytes(archive(program(), weight(sizes, strides, offset), {"weight_0": stored.tobytes()}, packed))
        expected = np.lib.stride_tricks.as_strided(stored[offset:], sizes, [step * 4 for step in strides])
        np.testing.assert_array_equal(np.asarray(onnxlab.load(path).tensor("w")), expected)


def test_arguments_of_every_kind_are_kept() -> None:
    body = program({"target": "torch.ops.aten.relu.default"})["graph_module"]["graph"]
    arguments: dict[str, Any] = {
        "several": {"as_tensors": [{"name": "x"}, {"name": "w"}]},
        "maybe": {"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "x"}}]},
        "size": {"as_sym_int": {"as_name": "s"}},
        "fixed": {"as_sym_int": {"as_int": 3}},
        "sizes": {"as_sym_ints": [{"as_int": 1}, {"as_int": 2}]},
        "none": {"as_none": True},
        "text": {"as_string": "mean"},
        "flag": {"as_bool": True},
        "number": {"as_float": 0.5},
        "numbers": {"as_floats": [0.5, 1]},
        "empty": {"as_ints": []},
        "huge": {"as_int": 2**70},
        "device": {"as_device": {"type": "cpu", "index": None}},
        "body": {"as_graph": {"name": "true", "graph": body}},
    }
    call = {
        "target": "torch.ops.my.op.out",
        "inputs": [{"name": name, "arg": held} for name, held in arguments.items()],
        "outputs": [{"as_tensor": {"name": "y"}}],
        "metadata": {"nn_module_stack": "L__self__,,M;L__self__enc,enc.0,N"},
    }
    node = onnxlab.load(archive(program(call, {"target": "_operator.getitem"}))).proto.graph.node[0]
    assert (node.domain, node.op_type, node.overload, node.name) == ("my", "op", "out", "enc/0/y")
    assert list(node.input) == ["x", "w", "", "x", "s"]
    assert node.metadata_props[0].value == "several[0],several[1],maybe[0],maybe[1],size"
    held = {attribute.name: attribute for attribute in node.attribute}
    assert held["fixed"].i == 3
    assert list(held["sizes"].ints) == [1, 2]
    assert held["text"].s == b"mean"
    assert held["flag"].i == 1
    assert list(held["numbers"].floats) == [0.5, 1.0]
    assert held["empty"].type == held["sizes"].type
    assert held["huge"].s == str(2**70).encode()
    assert held["body"].g.node[0].op_type == "relu"
    assert "none" not in held


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (archive([]), "no graph"),
        (archive(program(3)), "node 0 is no object"),
        (archive(program({})), "node 0 has no target"),
        (archive(program(nodes={})), "'nodes' in it is no list"),
        (archive(program(), weight([2], [1]), {}), "which is not there"),
        (archive(program(), weight([2], [1]), {"weight_0": b"1234"}), "needs more than the 4 bytes"),
        (archive(program(), weight([2**40], [0]), {"weight_0": b"1234"}), "by strides of 0"),
        (archive(program(), weight([2], [1], dtype=99), {"weight_0": bytes(8)}), "ONNX has no type for"),
        (archive(program(), weight([-2], [1]), {"weight_0": bytes(8)}), "sizes are no numbers"),
        (archive(program(), weight([2], []), {"weight_0": bytes(8)}), "needs more"),
        (archive(program(x=" " * 10**6), packed=True), "unpacks to"),
        (archive(program())[:-9], "no .pt2 archive that can be read"),
    ],
    ids=lambda item: item[:24] if isinstance(item, str) else None,
)
def test_damaged_archives_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        onnxlab.load(data)


def test_mutants_are_refused_or_models(tmp_path: Path) -> None:
    whole, rng, path = MODULE.read_bytes(), random.Random(0), tmp_path / "m.pt2"
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 4, 32])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            model = onnxlab.load(path)
        except LoadError:
            continue
        assert model.proto.HasField("graph")
