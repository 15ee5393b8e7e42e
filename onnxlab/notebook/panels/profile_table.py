"""A profile of one run as the page lists it: what each node took, did and moved, and who ran it."""

from typing import TYPE_CHECKING

from onnxlab.analysis.cost.roofline import roofline
from onnxlab.analysis.profile import NodeProfile, profile
from onnxlab.limits import Limits
from onnxlab.notebook.panels.overlay import Overlay
from onnxlab.notebook.protocol.messages import JSON

if TYPE_CHECKING:
    from onnxlab.model import Model

RUNS = 2
"""Runs of a profile: two, since the first one also reads weights."""


def measured(model: "Model", limits: Limits | None) -> tuple[JSON, Overlay]:
    """The table, and its seconds as an overlay. Raises the errors of a run of the model."""
    report = profile(model.runner, runs=RUNS, limits=limits)
    entries: dict[int, list[NodeProfile]] = {}
    for entry in report.entries:
        entries.setdefault(entry.node, []).append(entry)
    parts = model.partition().parts
    names = list(dict.fromkeys(part.provider for part in parts))
    by_node = {node.id: names.index(part.provider) for part in parts for node in part.nodes}
    nodes = [node for node in entries if node in model.graph.nodes]
    seconds = {node: sum(entry.seconds for entry in entries[node]) for node in nodes}
    flops = [sum(entry.flops for entry in entries[node]) for node in nodes]
    moved = [sum(entry.read + entry.written for entry in entries[node]) for node in nodes]
    roof = roofline()
    least = [roof.seconds(count, nbytes) for count, nbytes in zip(flops, moved, strict=True)]
    table = {
        "seconds": report.seconds,
        "runs": report.runs,
        "nodes": nodes,
        "ms": [1000 * seconds[node] for node in nodes],
        "flops": flops,
        "moved": moved,
        "least": [1000 * fastest for fastest in least],
        "arithmetic": [count / roof.flops >= fastest > 0 for count, fastest in zip(flops, least, strict=True)],
        "providers": names,
        "provider": [by_node.get(node, -1) for node in nodes],
    }
    return table, Overlay("time", "s", seconds)
