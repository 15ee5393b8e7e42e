"""Graphs to lay out: models as the widget would draw them without groups, and random ones."""

import random
from collections.abc import Iterable
from typing import Any

import onnxlab
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.support.corpus import path

MODELS = ("light_resnet50", "light_densenet121", "light_shufflenet", "bert_base", "gpt2_kv", "silero_vad_if")
RANDOM = 30
HEIGHT = 44
"""Of every box, in pixels."""

Graph = dict[str, Any]
"""{name, width, height, nets}, as widgets/bench/engines.ts reads it; lengths in pixels."""


def models() -> Iterable[Graph]:
    """The models that layouts are compared on, flat."""
    for name in MODELS:
        yield {"name": name, **flat(onnxlab.load(path(name)).graph)}


def flat(graph: ModelGraph) -> Graph:
    """The main graph without groups: a box for each input, node and output, Constants inside their readers."""
    main, nodes, values = graph.main, graph.nodes, graph.values
    shown = [node for node in main.order() if nodes[node].op_type != "Constant"]
    inputs = [value for value in main.inputs if values[value].initializer is None]
    box = {node: number for number, node in enumerate(shown, len(inputs))}
    source = {value: number for number, value in enumerate(inputs)}
    source |= {value: box[node] for node in shown for value in nodes[node].outputs if value}
    titles = [values[value].name for value in inputs] + [nodes[node].op_type for node in shown]
    targets: dict[int, dict[int, None]] = {}
    for value, maker in source.items():
        for use, _ in values[value].uses:
            reader = box.get(use) or box.get(graph.index.owner_in(nodes[use], main.id))
            if reader is not None and reader != maker:
                targets.setdefault(value, {})[reader] = None
    for number, value in enumerate(main.outputs, len(titles)):
        titles.append(values[value].name)
        if value in source:
            targets.setdefault(value, {})[number] = None
    nets = [[source[value], list(readers)] for value, readers in targets.items()]
    return {"width": [_width(title) for title in titles], "height": [HEIGHT] * len(titles), "nets": nets}


def _width(title: str) -> int:
    """The width of a box as widgets/src/graph/scene/boxes.ts has it, for letters of 7 pixels."""
    return min(184, max(88, 8 * -(-(7 * len(title) + 24) // 8)))


def random_dags(count: int = RANDOM) -> Iterable[Graph]:
    """Graphs of 20 to 160 boxes, from nearly a tree to two and a half arcs a box, short and long."""
    for seed in range(count):
        boxes = 20 + 140 * seed // count
        yield random_dag(f"random {seed}", boxes, 1.0 + (seed % 4) * 0.5, 4 + 6 * (seed % 5), seed)


def random_dag(name: str, boxes: int, arcs_per_box: float, reach: int, seed: int) -> Graph:
    """Each box reads some of the `reach` boxes before it, nearer ones rather."""
    rng = random.Random(seed)
    targets: list[dict[int, None]] = [{} for _ in range(boxes)]
    for box in range(1, boxes):
        arcs = int(arcs_per_box) + (rng.random() < arcs_per_box % 1)
        for _ in range(arcs):
            targets[max(0, box - 1 - int(rng.random() ** 2 * reach))][box] = None
    nets = [[box, list(readers)] for box, readers in enumerate(targets) if readers]
    widths = [8 * rng.randint(11, 20) for _ in range(boxes)]
    return {"name": name, "width": widths, "height": [HEIGHT] * boxes, "nets": nets}


def transformer(layers: int) -> Graph:
    """Layers of attention with shortcuts, 30 boxes each, and one mask that all of them read."""
    targets: list[list[int]] = []

    def node(*inputs: int) -> int:
        targets.append([])
        for source in inputs:
            targets[source].append(len(targets) - 1)
        return len(targets) - 1

    def chain(start: int, length: int) -> int:
        for _ in range(length):
            start = node(start)
        return start

    mask, x = chain(node(), 2), chain(node(), 1)
    for _ in range(layers):
        start = chain(x, 3)
        query, key, value = (chain(start, 3) for _ in range(3))
        weights = chain(node(chain(node(query, key), 1), mask), 2)
        total = node(x, chain(node(weights, value), 4))
        x = node(total, chain(total, 7))
    nets = [[box, readers] for box, readers in enumerate(targets) if readers]
    return {
        "name": f"transformer {len(targets)}",
        "width": [112] * len(targets),
        "height": [HEIGHT] * len(targets),
        "nets": nets,
    }
