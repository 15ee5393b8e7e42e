"""Models whose attributes have long lists."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

KINDS = {"ints": onnx.AttributeProto.INTS, "floats": onnx.AttributeProto.FLOATS, "strings": onnx.AttributeProto.STRINGS}


def items(kind: str, count: int, seed: int = 0) -> Any:
    """Odd ones among them: negative, NaN with a payload, infinite, no UTF-8, empty."""
    rng = np.random.default_rng(seed)
    if kind == "ints":
        return rng.integers(-(2**63), 2**63 - 1, count) >> rng.integers(0, 63, count)
    if kind == "floats":
        return rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    return rng.choice([b"LEAF", b"BRANCH_LEQ", b"", b"\xff\xfe", "é".encode()], count).tolist()


def attribute(kind: str, values: Any) -> onnx.AttributeProto:
    proto = onnx.AttributeProto(name="a", type=KINDS[kind])
    if kind == "floats":
        data = np.asarray(values, "<f4").tobytes()
        proto.MergeFromString(b"\x3a" + varint(len(data)) + data)
    else:
        getattr(proto, kind).extend(np.asarray(values).tolist() if kind == "ints" else values)
    return proto


def varint(number: int) -> bytes:
    encoded = b""
    while number > 127:
        encoded, number = encoded + bytes([number & 127 | 128]), number >> 7
    return encoded + bytes([number])


def custom(kind: str, values: Any) -> onnx.ModelProto:
    """A model with one node of an unknown operator, with one attribute."""
    node = onnx.NodeProto(op_type="Odd", domain="some", input=["x"], output=["y"], name="odd")
    node.attribute.append(attribute(kind, values))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("some", 1)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports, ir_version=10)


def forest(trees: int = 2100, seed: int = 0, kind: str = "Regressor") -> onnx.ModelProto:
    """Trees with three nodes each: one branch, two leaves."""
    rng = np.random.default_rng(seed)
    votes = "target" if kind == "Regressor" else "class"
    lists = {
        "nodes_treeids": np.repeat(np.arange(trees), 3), "nodes_nodeids": np.tile([0, 1, 2], trees),
        "nodes_featureids": np.where(np.arange(3 * trees) % 3, 0, rng.integers(0, 4, 3 * trees)),
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * trees,
        "nodes_values": rng.normal(size=3 * trees).astype(np.float32),
        "nodes_truenodeids": np.tile([1, 0, 0], trees), "nodes_falsenodeids": np.tile([2, 0, 0], trees),
        f"{votes}_treeids": np.repeat(np.arange(trees), 2), f"{votes}_nodeids": np.tile([1, 2], trees),
        f"{votes}_ids": rng.integers(0, 3, 2 * trees), f"{votes}_weights": rng.normal(size=2 * trees),
    }  # fmt: skip
    plain = {name: np.asarray(values).tolist() for name, values in lists.items()}
    rest = {"n_targets": 3} if kind == "Regressor" else {"classlabels_int64s": [3, 5, 9]}
    outputs = ["y"] if kind == "Regressor" else ["label", "y"]
    node = helper.make_node(f"TreeEnsemble{kind}", ["x"], outputs, "forest", domain="ai.onnx.ml", **plain, **rest)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    for info, elem in zip(reversed(infos), (TensorProto.FLOAT, TensorProto.INT64), strict=False):
        info.type.tensor_type.elem_type = elem
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [x], infos), opset_imports=imports, ir_version=10)
