"""The graph model: what is lost on the way through it, and how quick it is at 100,000 nodes."""

import importlib.util
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx_ir

import onnxlab
from bench import growth, models
from bench.growth import read
from bench.measure import Figure, Line, compare
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import MoveNode
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord

NODES = 100_000


def rows() -> Iterator[Line]:
    """All lines of the topic."""
    yield from losses()
    yield from opening(models.many_nodes(NODES), "")
    yield from opening(models.residual(NODES), ", residual with shape chains")
    yield from growth.rows()
    yield from saving()
    yield from editing()
    yield from memory()
    if importlib.util.find_spec("bench.model_files"):
        yield from importlib.import_module("bench.model_files").rows()


def losses() -> Iterator[Line]:
    """Models that come back byte for byte after edits that were undone, with every other field after one that stays."""
    from tests.graph.support import lossless

    groups = (
        ("corpus", lossless.corpus(), 33),
        ("onnx's node cases", lossless.cases(), 1884),
        ("simple, light and pytorch models of the onnx wheel", lossless.wheel(), 149),
        ("models with everything, IR 3 to 14, also in unusual order and packing", lossless.tortures(), 15),
    )
    for name, sources, least in groups:
        intact, count = 0, 0
        for label, source, data in sources:
            lost = lossless.lost(source, data)
            intact, count = intact + (not lost), count + 1
            if lost:
                print(f"{label}: {lost[:5]}", file=sys.stderr)
        yield Figure(f"lossless: {name}", intact, f"of {count}", at_least=max(count, least))
    yield Figure("the same through onnx-ir: models of the wheel", *_kept_by_ir(lossless.wheel()))
    yield Figure("the same through onnx-ir: models with everything", *_kept_by_ir(lossless.tortures()))


def _kept_by_ir(sources: Iterable[tuple[str, Any, bytes]]) -> tuple[int, str]:
    """Count models that onnx-ir writes as they were, without any edit."""
    intact = count = 0
    for _, _, data in sources:
        count += 1
        try:
            model = onnx_ir.serde.deserialize_model(onnx.ModelProto.FromString(data))
            intact += onnx_ir.serde.serialize_model(model).SerializeToString() == data
        except Exception as error:
            print(f"onnx-ir: {error!r}"[:100], file=sys.stderr)
    return intact, f"of {count}"


def opening(path: Path, suffix: str) -> Iterator[Line]:
    """A file with its index, without inference, as `onnx_ir.load` gives it."""
    load = lambda: onnx_ir.load(path)  # noqa: E731 - a name for two lines
    yield compare(f"open {NODES:,} nodes{suffix}", lambda: read(path), load, against="onnx_ir.load", promise=0.35)
    yield compare(
        f"open {NODES:,} nodes{suffix}, and ask for networkx",
        lambda: read(path).nx(), load, against="onnx_ir.load", promise=0.6,
    )  # fmt: skip
    yield compare(f"onnxlab.load {NODES:,} nodes{suffix}", lambda: onnxlab.load(path), load, against="onnx_ir.load",
                  repeats=3)  # fmt: skip


def saving() -> Iterator[Line]:
    """A save after an edit, synced to the disk, against onnx-ir's to_proto and serializing alone."""
    path = models.residual(NODES)
    model = onnxlab.load(path)
    model.nodes[0].name = "renamed"
    other = onnx_ir.load(path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        yield compare(
            f"save {NODES:,} nodes",
            lambda: model.save(Path(folder) / "model.onnx"),
            lambda: onnx_ir.to_proto(other).SerializeToString(),
            against="onnx_ir.to_proto", promise=0.1, repeats=3,
        )  # fmt: skip


Edit = Callable[[ModelGraph, NodeRecord, int], Any]

EDITS: dict[str, Edit] = {
    "rename a node": lambda graph, node, count: edits.rename_node(graph, node, f"renamed {count}"),
    "rename a value": lambda graph, node, count: edits.rename_value(graph, _output(graph, node), f"renamed {count}"),
    "rewire an input": lambda graph, node, count: edits.set_input(graph, node, 0, "x"),
    "remove a node, bypassed": lambda graph, node, count: edits.remove_nodes(graph, [node], bypass=True),
    "add a node": lambda graph, node, count: edits.add_node(
        graph, onnx.NodeProto(op_type="Neg", input=[_output(graph, node).name], output=[f"added {count}"])
    ),
    "move a node": lambda graph, node, count: graph.apply(MoveNode(node.id, graph.main.position(node))),
}


def _output(graph: ModelGraph, node: NodeRecord) -> Any:
    return graph.values[node.outputs[0]]


def editing() -> Iterator[Line]:
    """Each edit with its undo, at a hundred places from the first node to the last; the slowest tenth is left out."""
    graph = read(models.many_nodes(NODES))
    size = len(graph.main.node_ids)
    count = itertools.count()
    for name, edit in EDITS.items():
        seconds = []
        for place in range(100):
            best = float("inf")
            for _ in range(15):
                node = graph.nodes[graph.main.node_ids[place * (size - 1) // 99]]
                start = time.perf_counter()
                edit(graph, node, next(count))
                graph.undo()
                best = min(best, time.perf_counter() - start)
            seconds.append(best)
        seconds.sort()
        yield Figure(
            f"{name} and undo, {NODES:,} nodes", seconds[89], "s", at_most=200e-6,
            note=f"median {seconds[50] * 1e6:.0f} µs",
        )  # fmt: skip


MEMORY = """
import re, sys
import onnx, onnx_ir, onnxlab
from pathlib import Path
from bench.model import read
def peak():  # not ru_maxrss, which a process inherits from the one that started it
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
model = {"ours": read, "theirs": onnx_ir.load, "networkx": lambda path: read(path).nx()}[sys.argv[1]](Path(sys.argv[2]))
print(peak() - before)
"""


def memory() -> Iterator[Line]:
    """Peak memory of opening, each side in a process of its own."""
    path = models.residual(NODES)
    peaks = {}
    for side in ("ours", "theirs", "networkx"):
        command = [sys.executable, "-c", MEMORY, side, str(path)]
        peaks[side] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024
    note = f"{peaks['ours']:.0f} MB, onnx-ir {peaks['theirs']:.0f} MB"
    yield Figure(f"peak memory to open {NODES:,} nodes ÷ onnx-ir's", peaks["ours"] / peaks["theirs"], "", at_most=2,
                 note=note)  # fmt: skip
    yield Figure("the same with networkx", peaks["networkx"] / peaks["theirs"], note=f"{peaks['networkx']:.0f} MB")
