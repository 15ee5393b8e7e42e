"""Comparisons with other tools. Each function yields rows of the table."""

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx_ir
import onnxruntime

import onnxlab
from bench import models
from bench.measure import Row, compare
from onnxlab.formats import onnx as onnx_format
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.support.corpus import FOLDER, inputs


def imports() -> Iterator[Row]:
    """Fresh interpreters that import one package each; the start of the interpreter is within both."""
    for statement, against, promise in (
        ("import onnxlab", "import onnx", 1.0),
        ("import onnxlab; onnxlab.load", "import onnx", None),
    ):
        yield compare(
            statement,
            partial(fresh_interpreter, statement),
            partial(fresh_interpreter, against),
            against=against,
            promise=promise,
        )


def fresh_interpreter(statement: str) -> None:
    """Run a statement in a new Python process."""
    subprocess.run([sys.executable, "-c", statement], check=True)


def loading() -> Iterator[Row]:
    """Opening files: into an editable graph, and all the way with the facts of every value."""
    many = models.many_nodes()
    yield compare(
        "open 100,000 nodes as a graph",
        partial(open_graph, many),
        partial(onnx_ir.load, many),
        against="onnx_ir.load",
        promise=0.35,
        repeats=3,
    )
    for name in ("swin_s", "bert_base", "resnet50"):
        path = models.CORPUS[name]
        yield compare(
            f"open {name} as a graph", partial(open_graph, path), partial(onnx.load, path), against="onnx.load"
        )
        yield compare(
            f"load {name} with all shapes",
            partial(onnxlab.load, path),
            partial(load_and_infer, path),
            against="onnx.load + infer_shapes",
            promise=1.0,
            repeats=3,
        )
    large = models.large_external()
    yield compare(
        "load 1 GiB of external data",
        partial(onnxlab.load, large),
        partial(onnx.load, large),
        against="onnx.load",
        repeats=2,
    )


def open_graph(path: Path) -> ModelGraph:
    """Read a file and build its graph, without inference."""
    proto, source = onnx_format.read(path)
    return ModelGraph(proto, source.base_dir)


def load_and_infer(path: Path) -> onnx.ModelProto:
    """Load a file and infer its shapes with onnx."""
    return onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)


def editing() -> Iterator[Row]:
    """One edit with every fact up to date after it, against inferring the whole model anew."""
    model = onnxlab.load(models.many_nodes())
    turn = model.nodes["turn_12500"]
    yield compare(
        "edit 1 of 100,000 nodes, local effect",
        toggle(turn, "perm", [0, 2, 1], [1, 0, 2]),
        partial(onnx.shape_inference.infer_shapes, model.proto),
        against="infer_shapes",
        promise=1 / 1000,
        repeats=3,
        inner=20,
    )
    for name, node, attribute, values in (
        ("resnet50", first(onnxlab.load(models.CORPUS["resnet50"]), "Conv"), "strides", ([1, 1], [2, 2])),
        ("bert_base", first(onnxlab.load(models.CORPUS["bert_base"]), "Softmax"), "axis", (-1, -2)),
    ):
        proto = onnx.load(models.CORPUS[name])
        yield compare(
            f"edit {attribute} in {name}",
            toggle(node, attribute, *values),
            partial(onnx.shape_inference.infer_shapes, proto),
            against="infer_shapes",
            inner=4,
        )


def first(model: onnxlab.Model, op_type: str) -> Any:
    """The first node of an operator."""
    return next(node for node in model.nodes if node.op_type == op_type)


def toggle(node: Any, attribute: str, *values: Any) -> Any:
    """An action that sets an attribute to each of `values` in turn."""
    state = [0]

    def action() -> None:
        state[0] += 1
        node.attributes[attribute] = values[state[0] % len(values)]

    return action


def running() -> Iterator[Row]:
    """A whole run, against onnxruntime as it is usually used: all optimizations, all cores."""
    for name in ("resnet50", "minilm_int8"):
        path = models.CORPUS[name]
        model = onnxlab.load(path)
        # other inputs each time: with the same ones nothing would be computed again, since values stay
        ours, theirs = (itertools.cycle([inputs(name, path, seed) for seed in (0, 1)]) for _ in range(2))
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        yield compare(
            f"run {name}",
            partial(call_with_next, model.run, ours),
            partial(call_with_next, partial(session.run, None), theirs),
            against="onnxruntime",
            repeats=5,
        )


def call_with_next(run: Callable[[Any], Any], feeds: Iterator[Any]) -> None:
    """Run with the next feeds of an iterator."""
    run(next(feeds))


def saving() -> Iterator[Row]:
    """Saving after an edit. Ours syncs to the disk and renames, onnx.save does neither."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for name, path in (("100,000 nodes", models.many_nodes()), ("swin_s", models.CORPUS["swin_s"])):
            model = onnxlab.load(path)
            model.nodes[0].name = "renamed"
            yield compare(
                f"save {name}",
                partial(model.save, Path(folder) / "ours.onnx"),
                partial(onnx.save, model.proto, Path(folder) / "theirs.onnx"),
                against="onnx.save",
            )


GROUPS = {"imports": imports, "loading": loading, "editing": editing, "running": running, "saving": saving}
