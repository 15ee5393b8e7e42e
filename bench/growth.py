"""Ten times the nodes: how much longer a model takes to open, and what of that is the processor's and not ours.

Whatever makes a few Python objects for each of many things grows faster than their number as soon as they do not fit
into the processor's caches any more. A plain loop that makes about as many, with nothing of onnxlab in it, shows by how
much on the machine at hand.
"""

import gc
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import onnx

import onnxlab
from bench import models
from bench.measure import Figure, Line
from onnxlab.formats import onnx as onnx_format
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.notebook.session.hub import hub_of

NODES = 100_000
MILLION = 1_000_000
ROUNDS = 5
SMALL = 8
"""Openings of a tenth of the nodes in a round: about as long a time as that of all of them, which comes between."""


def rows() -> Iterator[Line]:
    """Processor time of openings, each in an interpreter of its own: in one, small models would get recycled memory.

    Both sides of a ratio are means over the same time: the least of several short runs finds a machine's best moments
    more often than the least of several long ones, and would let the small models look quick.
    """
    builds = {"": models.many_nodes, ", residual": models.residual}
    for kind, build in builds.items():
        name = f"time to open {NODES:,} nodes ÷ {NODES // 10:,}{kind}"
        yield Figure(name, *_growth("open", build), at_most=12)
    yield from a_million()
    ratio, note = _growth("plain", models.many_nodes)
    yield Figure("the same of a plain loop that makes as many objects", ratio, note)


def a_million() -> Iterator[Line]:
    """A million nodes: opened, edited first, pictured first; processor time, the least of a few in one process each.

    A first edit is that of a model just opened, of each kind that there is.
    """
    few, many = (_of_a_million(models.many_nodes(count)) for count in (NODES, MILLION))
    ratio, note = many["load"] / many["onnx"], f"{many['load']:.1f} s"
    yield Figure(f"load of {MILLION:,} nodes ÷ onnx.load", ratio, at_most=3, note=note)
    most_of = {**dict.fromkeys(FIRST_EDITS, 5), "first scene": 10, "first SVG": 10}
    for action, most in most_of.items():
        note = f"{many[action]:.3f} s"
        yield Figure(f"{action} of {MILLION:,} nodes ÷ {NODES:,}", many[action] / few[action], at_most=most, note=note)


def _of_a_million(path: Path) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "bench.growth", "all", str(path), str(models.many_nodes(50))]
    return json.loads(subprocess.check_output(command, text=True))  # type: ignore[no-any-return]


def _node(model: onnxlab.Model, position: int) -> NodeRecord:
    return model.graph.nodes[model.graph.main.node_ids[position]]


FIRST_EDITS: dict[str, Callable[[onnxlab.Model], object]] = {
    "first edit": lambda model: edits.rename_node(model.graph, _node(model, 0), "renamed"),
    "first edit of an attribute": lambda model: edits.set_attribute(model.graph, _node(model, 1), "perm", [1, 0, 2]),
    "first edit of inputs": lambda model: model.nodes[2].set_inputs(["x"]),
    "first edit of a value's name": lambda model: setattr(model.value("turned_0"), "name", "other"),
    "first node inserted": lambda model: model.insert_node(onnx.helper.make_node("Relu", ["x"], ["new"], "new"), 1),
    "first node removed": lambda model: model.nodes[3].remove(),
}
"""What is done to a model that was just opened, by what it is called; the nodes are those of `models.many_nodes`."""


def first_times(path: Path, repeats: int = 3) -> dict[str, float]:
    """Seconds of processor time of onnx.load, load, and the first edits, scene and SVG of a model just opened."""
    least: dict[str, float] = {}

    def timed(label: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = call()
        least[label] = min(least.get(label, math.inf), time.process_time() - start)
        return result

    for _ in range(repeats):
        timed("onnx", lambda: onnx.load(path))
        model = timed("load", lambda: onnxlab.load(path))
        for label, edit in FIRST_EDITS.items():
            timed(label, partial(edit, model))
            model = onnxlab.load(path)
        timed("first scene", partial(_scene, model))
        model = onnxlab.load(path)
        timed("first SVG", model.to_svg)
    return least


def _scene(model: onnxlab.Model) -> None:
    """The work before a first view: groups are searched for, and the whole is written down."""
    hub_of(model).scene.snapshot()


def _growth(kind: str, build: Callable[[int], Path]) -> tuple[float, str]:
    """(median ratio, least and greatest) over the rounds."""
    few, many = build(NODES // 10), build(NODES)
    ratios = []
    for _ in range(ROUNDS):
        small = [_taken(kind, few) for _ in range(SMALL // 2)]
        large = _taken(kind, many)
        small += [_taken(kind, few) for _ in range(SMALL // 2)]
        ratios.append(large / statistics.mean(small))
    return statistics.median(ratios), f"({min(ratios):.1f} to {max(ratios):.1f})"


def _taken(kind: str, path: Path) -> float:
    """Seconds of processor time in a new interpreter."""
    command = [sys.executable, "-m", "bench.growth", kind, str(path), str(models.many_nodes(50))]
    return float(subprocess.check_output(command, text=True))


def read(path: Path) -> ModelGraph:
    """A file with its index, without inference."""
    return ModelGraph(onnx_format.read(path)[0], path.parent, shared=False)


class Thing:
    """A record with as many fields as that of a value."""

    __slots__ = ("a", "b", "c", "d", "id", "made", "name", "uses")

    def __init__(self, ident: int, name: str, produced: list[Any], uses: Any) -> None:
        self.id, self.name, self.made, self.uses = ident, name, produced, uses
        self.a = self.b = self.c = self.d = None


def plain(count: int) -> object:
    """A chain: two objects, three lists, two dicts' entries, a dict, two tuples and a name for each of its nodes."""
    names: dict[str, int] = {}
    values: dict[int, Thing] = {}
    nodes: dict[int, Thing] = {}
    for number in range(count):
        ident, value, name = 2 * number, 2 * number + 1, f"value_{number}"
        nodes[ident] = Thing(ident, name, [], [])
        values[value] = Thing(value, name, [(ident, 0)], {})
        names[name] = value
        nodes[ident].made.append(value)
    for number in range(1, count):
        read_value = values[names[f"value_{number - 1}"]]
        read_value.uses[2 * number, 0] = None
        nodes[2 * number].uses.append(read_value.id)
    return names, values, nodes


def main(kind: str, path: Path, tiny: Path) -> None:
    """Time one opening, or the plain loop for as many nodes as the file's name says, after a tiny one."""
    if kind == "all":
        print(json.dumps(first_times(path)))
        return
    if kind == "open":
        read(tiny)
        start = time.process_time()
        opened: object = read(path)
    else:
        plain(50)
        gc.disable()  # as opening does
        start = time.process_time()
        opened = plain(int(path.stem.rpartition("_")[2]))
    print(time.process_time() - start)
    del opened


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
