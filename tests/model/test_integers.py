"""Integers of NumPy, and whatever counts as an index, are taken wherever the interface takes an int; bools are not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnxlab


class Index:
    """An integer of no library."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


CALLS: dict[str, Callable[[onnxlab.Model, Any], object]] = {
    "convert_opset": lambda model, n: model.convert_opset(n(18)),
    "opsets": lambda model, n: model.opsets.__setitem__("", n(18)),
    "model_version": lambda model, n: model.set_field("model_version", n(9)),
    "add_input, shape": lambda model, n: model.add_input("q", "float32", [n(2), "N"]),
    "add_input, position": lambda model, n: model.add_input("q", "float32", [2], position=n(0)),
    "add_output": lambda model, n: model.add_output("stem/relu_out", position=n(0)),
    "add_node": lambda model, n: model.add_node("Relu", ["stem/relu_out"], position=n(5)),
    "insert_node": lambda model, n: model.insert_node(helper.make_node("Relu", ["stem/relu_out"], ["z"]), n(3)),
    "can_connect": lambda model, n: model.can_connect("stem/conv_out", model.nodes[2], n(0)),
    "connect": lambda model, n: model.connect("stem/conv_out", model.nodes[2], n(0)),
    "insert_before": lambda model, n: model.nodes[1].insert_before(n(0), "Relu"),
    "move": lambda model, n: model.nodes[1].move(n(1)),
    "set_input": lambda model, n: model.nodes[1].set_input(n(0), model.nodes[1].inputs[0]),
    "set_dim, axis": lambda model, n: model.inputs[0].set_dim(n(0), 3),
    "set_dim": lambda model, n: model.inputs[0].set_dim(0, n(3)),
    "set_shape": lambda model, n: model.inputs[0].set_shape([n(3), 1, 8, 8]),
    "replace_dim": lambda model, n: model.replace_dim(n(1), n(2), axis=n(1)),
    "attribute": lambda model, n: model.nodes[0].attributes.__setitem__("group", n(1)),
    "attributes": lambda model, n: model.nodes[0].attributes.__setitem__("strides", [n(1), n(1)]),
    "node": lambda model, n: model.nodes[n(0)],
    "node from the end": lambda model, n: model.nodes[n(-1)],
    "node by id": lambda model, n: model.node(n(model.nodes[0].id)),
    "nodes to duplicate": lambda model, n: model.duplicate([n(0)]),
    "one node to duplicate": lambda model, n: model.duplicate(n(0)),
    "subgraph": lambda model, n: model.subgraph([n(0)]),
    "value by id": lambda model, n: model.value(n(model.value("logits").id)),
    "fact": lambda model, n: model.fact(n(model.value("logits").id)),
    "explain": lambda model, n: model.explain("logits", n(0)),
    "changes_since": lambda model, n: model.changes_since(n(0)),
    "earlier": lambda model, n: model.earlier(n(0)),
    "undo": lambda model, n: model.undo(to=n(0)),
    "compare": lambda model, n: onnxlab.compare(model, since=n(0)),
    "budget": lambda model, n: setattr(model.history, "budget", n(10**9)),
    "with_dims": lambda model, n: model.with_dims(batch=n(2)),
    "memory": lambda model, n: model.memory(batch=n(2)),
    "cost": lambda model, n: model.cost(batch=n(2)),
    "cost, threads": lambda model, n: model.cost(threads=n(1)),
    "profile": lambda model, n: model.profile(runs=n(1)),
    "run, threads": lambda model, n: model.run(model.sample_inputs(), threads=n(1)),
    "run, seed": lambda model, n: model.run(model.sample_inputs(), seed=n(1)),
    "sample_inputs": lambda model, n: model.sample_inputs(seed=n(1)),
    "limits": lambda model, n: onnxlab.Limits(bytes=n(10**9), iterations=n(100)).begin(),
    "fold": lambda model, n: model.fold(budget=n(1000)),
    "svg": lambda model, n: model.to_svg(boxes=n(10)),
    "view": lambda model, n: model.view(height=n(300)),
    "statistics": lambda model, n: onnxlab.statistics(model, [model.sample_inputs()], chunk=n(1), progress=False),
}


@pytest.mark.parametrize("kind", [np.int64, np.int32, Index])
@pytest.mark.parametrize("name", CALLS)
def test_integers_of_other_libraries_do_what_plain_ones_do(name: str, kind: Callable[[int], object]) -> None:
    model, twin = onnxlab.load(), onnxlab.load()
    CALLS[name](model, kind)
    CALLS[name](twin, int)
    assert model.proto == twin.proto
    if name not in ("attribute", "attributes", "set_shape"):  # whose statements keep the arguments' own types
        assert model.history.to_python() == twin.history.to_python()


def test_shards_have_as_many_bytes_as_an_integer_says(tmp_path: Path) -> None:
    for number, shard in enumerate((4096, np.int64(4096), Index(4096))):
        (tmp_path / str(number)).mkdir()
        onnxlab.load().save(tmp_path / str(number) / "m.onnx", external_data=True, shard_bytes=shard)  # type: ignore[arg-type]
    sizes = [sorted(file.stat().st_size for file in (tmp_path / str(number)).iterdir()) for number in range(3)]
    assert sizes[0] == sizes[1] == sizes[2]
    assert len(sizes[0]) > 2


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"view", "attribute", "attributes", "budget"}))
@pytest.mark.parametrize("kind", [bool, np.bool_, float])
def test_bools_and_fractions_are_no_integers(name: str, kind: Callable[[int], object]) -> None:
    model = onnxlab.load()
    with pytest.raises((TypeError, ValueError, LookupError, onnxlab.OnnxlabError), match=r"True|False|\d\.0"):
        CALLS[name](model, kind)
    assert model.version == 0
