"""Models to measure on: of the corpus, and made up where a size is needed that no corpus has."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.corpus import FOLDER, Corpus

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
            shape, batch, target, folded = (f"{prefix}_{block}" for prefix in ("shape", "batch", "target", "folded"))
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


@cache
def transformer_blocks(blocks: int = 48, width: int = 2304, heads: int = 12, data: str = "sparse") -> Path:
    """A file of equal transformer blocks, whose matrices lie in one file of external data, 48 · width² bytes a block.

    Args:
        blocks, width, heads: the structure; "block_0_out" is what the first block makes.
        data: "sparse" for zeros that take no space on the disk, "random" for numbers.
    """
    folder = FOLDER / f"blocks_{blocks}_{width}_{data}"
    path = folder / "model.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        model, count = _transformer(blocks, width, heads)
        with (folder / "model.onnx.data").open("wb") as file:
            if data == "random":
                file.write((np.random.default_rng(0).standard_normal(count) * width**-0.5).astype(np.float32).tobytes())
            file.truncate(4 * count)
        onnx.save(model, path)
    return path


def _transformer(blocks: int, width: int, heads: int) -> tuple[onnx.ModelProto, int]:
    """The model, and the number of elements of its external data."""
    graph, placed = onnx.GraphProto(name="blocks"), 0

    def matrix(name: str, rows: int, columns: int) -> str:
        nonlocal placed
        tensor = graph.initializer.add(
            name=name, dims=[rows, columns], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
        )
        place = {"location": "model.onnx.data", "offset": 4 * placed, "length": 4 * rows * columns}
        for key, entry in place.items():
            tensor.external_data.add(key=key, value=str(entry))
        placed += rows * columns
        return name

    def node(op_type: str, inputs: list[str], output: str, **attributes: Any) -> str:
        graph.node.append(helper.make_node(op_type, inputs, [output], output, **attributes))
        return output

    for name, dims in (("ones", [1.0] * width), ("zeros", [0.0] * width), ("scale", [(width / heads) ** -0.5])):
        graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT, [len(dims)], dims))
    for name, shape in (("split", [0, 0, heads, width // heads]), ("merged", [0, 0, width])):
        graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape))
    state = "x"
    for number in range(blocks):
        at = f"block_{number}_"
        normal = node("LayerNormalization", [state, "ones", "zeros"], f"{at}norm1", axis=-1)
        parts = []
        for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            product = node("MatMul", [normal, matrix(f"{at}w{part}", width, width)], f"{at}{part}")
            split = node("Reshape", [product, "split"], f"{at}{part}_heads")
            parts.append(node("Transpose", [split], f"{at}{part}_turned", perm=order))
        scores = node("Mul", [node("MatMul", parts[:2], f"{at}scores"), "scale"], f"{at}scaled")
        mixed = node("MatMul", [node("Softmax", [scores], f"{at}weights", axis=-1), parts[2]], f"{at}mixed")
        turned = node("Transpose", [mixed], f"{at}back", perm=[0, 2, 1, 3])
        joined = node("Reshape", [turned, "merged"], f"{at}joined")
        attended = node("MatMul", [joined, matrix(f"{at}wo", width, width)], f"{at}attended")
        state = node("Add", [state, attended], f"{at}sum")
        normal = node("LayerNormalization", [state, "ones", "zeros"], f"{at}norm2", axis=-1)
        wide = node("MatMul", [normal, matrix(f"{at}w1", width, 4 * width)], f"{at}wide")
        active = node("Relu", [wide], f"{at}active")
        narrow = node("MatMul", [active, matrix(f"{at}w2", 4 * width, width)], f"{at}narrow")
        state = node("Add", [state, narrow], f"{at}out")
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "words", width]))
    graph.output.append(helper.make_tensor_value_info(state, TensorProto.FLOAT, ["batch", "words", width]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), placed


@cache
def forest(entries: int = 10_000_000, trees: int = 1_000) -> Path:
    """A file with one TreeEnsembleRegressor, whose eleven attributes have about so many entries together.

    Every tree is a complete binary tree, cut off at its last level, on 64 features; thresholds and weights are random.
    """
    path = FOLDER / f"forest_{entries}_{trees}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(_forest(trees, round((entries / trees + 7) / 18)), path)
    return path


def _forest(trees: int, leaves: int) -> onnx.ModelProto:
    """Seven entries for each of 2 · leaves - 1 nodes of a tree, four for each leaf."""
    rng = np.random.default_rng(17)
    count, inner = 2 * leaves - 1, leaves - 1
    number = np.arange(count)
    is_inner = np.tile(number < inner, trees)
    left = np.where(number < inner, 2 * number + 1, 0)
    leaf_ids = number[inner:]
    attributes = {
        "nodes_treeids": np.repeat(np.arange(trees), count),
        "nodes_nodeids": np.tile(number, trees),
        "nodes_featureids": np.where(is_inner, rng.integers(0, 64, trees * count), 0),
        "nodes_values": np.where(is_inner, rng.normal(size=trees * count), 0).astype(np.float32),
        "nodes_modes": np.where(is_inner, "BRANCH_LEQ", "LEAF"),
        "nodes_truenodeids": np.tile(left, trees),
        "nodes_falsenodeids": np.tile(np.where(left, left + 1, 0), trees),
        "target_treeids": np.repeat(np.arange(trees), leaves),
        "target_nodeids": np.tile(leaf_ids, trees),
        "target_ids": np.zeros(trees * leaves, np.int64),
        "target_weights": rng.normal(size=trees * leaves).astype(np.float32),
    }
    lists = {name: array.tolist() for name, array in attributes.items()}
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], "forest", domain="ai.onnx.ml", n_targets=1, **lists
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 1])
    imports = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 21)]
    return helper.make_model(helper.make_graph([node], "forest", [x], [y]), opset_imports=imports, ir_version=10)
