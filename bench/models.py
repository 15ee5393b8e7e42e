"""Models to measure on: of the corpus, and made up where a size is needed that no corpus has."""

from functools import cache
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from tests.corpus import FOLDER, Corpus

CORPUS = Corpus()


@cache
def many_nodes(count: int = 100_000) -> Path:
    """A file with `count` nodes: a chain of Relu, at every fourth of which a branch of three nodes hangs.

    The branch begins with a Transpose, "turn_<i>", whose `perm` can be edited with an effect on its own branch only.
    """
    path = FOLDER / f"nodes_{count}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(_chain_with_branches(count // 4), path)
    return path


def _chain_with_branches(blocks: int) -> onnx.ModelProto:
    nodes, value = [], "x"
    for block in range(blocks):
        turned, shifted = f"turned_{block}", f"shifted_{block}"
        nodes += [
            helper.make_node("Relu", [value], [f"y_{block}"], f"step_{block}"),
            helper.make_node("Transpose", [f"y_{block}"], [turned], f"turn_{block}", perm=[0, 2, 1]),
            helper.make_node("Neg", [turned], [shifted], f"negate_{block}"),
            helper.make_node("Shape", [shifted], [f"shape_{block}"], f"measure_{block}"),
        ]
        value = f"y_{block}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8, 16])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "many", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@cache
def residual(count: int = 100_000) -> Path:
    """A file with about `count` nodes: residual blocks of three, at every twentieth a chain from Shape to Reshape."""
    path = FOLDER / f"residual_{count}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(_residual_blocks(count * 20 // 64), path)
    return path


def _residual_blocks(blocks: int) -> onnx.ModelProto:
    nodes, value = [], "x"
    for block in range(blocks):
        scaled, active, joined = f"scaled_{block}", f"active_{block}", f"joined_{block}"
        nodes += [
            helper.make_node("Mul", [value, "scale"], [scaled], f"scale_{block}"),
            helper.make_node("Relu", [scaled], [active], f"relu_{block}"),
            helper.make_node("Add", [active, value], [joined], f"add_{block}"),
        ]
        value = joined
        if block % 20 == 0:
            shape, batch, target, folded = (f"{what}_{block}" for what in ("shape", "batch", "target", "folded"))
            nodes += [
                helper.make_node("Shape", [value], [shape], f"measure_{block}"),
                helper.make_node("Gather", [shape, "first"], [batch], f"gather_{block}", axis=0),
                helper.make_node("Concat", [batch, "rest"], [target], f"concat_{block}", axis=0),
                helper.make_node("Reshape", [value, target], [folded], f"reshape_{block}"),
            ]
            value = folded
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8, 16])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, None)
    weights = [
        helper.make_tensor("scale", TensorProto.FLOAT, [1], [1.5]),
        helper.make_tensor("first", TensorProto.INT64, [1], [0]),
        helper.make_tensor("rest", TensorProto.INT64, [2], [8, 16]),
    ]
    graph = helper.make_graph(nodes, "residual", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@cache
def large_external(size: int = 1 << 30) -> Path:
    """A model with `size` bytes of external data (zeros, which take no space on the disk)."""
    folder = FOLDER / f"external_{size}"
    path = folder / "model.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "model.onnx.data").open("wb") as data:
            data.truncate(size)
        onnx.save(_with_external(size, "model.onnx.data"), path)
    return path


def _with_external(size: int, location: str) -> onnx.ModelProto:
    """Sixteen MatMul side by side, with their weights one after the other in one file."""
    columns = size // 16 // 4 // 1024
    length = 1024 * columns * 4
    graph = onnx.GraphProto(name="large")
    for index in range(16):
        weight = graph.initializer.add(
            name=f"w_{index}", dims=[1024, columns], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
        )
        for key, entry in {"location": location, "offset": index * length, "length": length}.items():
            weight.external_data.add(key=key, value=str(entry))
        graph.node.append(helper.make_node("MatMul", ["x", weight.name], [f"y_{index}"], f"multiply_{index}"))
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1024]))
    graph.output.append(helper.make_tensor_value_info("y_15", TensorProto.FLOAT, ["batch", columns]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
