"""Comparing the values of two sides: run both, pair what they make, measure each pair against its noise.

The noise of a value is measured: the first side is run a second time with inputs that are off by a rounding, and ten
times what that changes is explained by roundings. Each side is run twice at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab.analysis.compare.comparison import Comparison, Entry, with_local
from onnxlab.analysis.compare.error import error, floor_of
from onnxlab.analysis.compare.local import local_errors
from onnxlab.analysis.compare.sides import RecordedSide, RunSide, made_values, off_by_a_rounding
from onnxlab.analysis.diff.matching import Matching
from onnxlab.errors import OnnxlabError
from onnxlab.graph.edit.model_graph import ModelGraph

_AMPLIFIED = 10
"""How much more than inputs off by one rounding another order of the same sums may change a value."""


def compare_runs(
    a: RunSide, b: RunSide, matching: Matching, feeds: Mapping[str, Any], *, local: bool = False
) -> Comparison:
    """Compare two models on inputs of the first one.

    Args:
        matching: pairs of their ids.
        local: also run each node of the second model on what the first one's nodes read.
    """
    pairs = [(vid, matching.values[vid]) for vid in made_values(a.graph) if vid in matching.values]
    missing = [vid for vid in made_values(a.graph) if vid not in matching.values]
    values, other = a.graph.values, b.graph.values
    pairs = [pair for pair in pairs if other[pair[1]].producers and other[pair[1]].scope == b.graph.main.id]
    names = [values[vid].name for vid, _ in pairs]
    arrays = a.values(feeds, names)
    noise = _noise(a, feeds, names, arrays)
    its = b.values(renamed_feeds(feeds, a.graph, b.graph, matching), [other[vid].name for _, vid in pairs])
    entries = []
    for vid, its_id in pairs:
        name, called = values[vid].name, other[its_id].name
        reference = arrays[name]
        explained = max(noise.get(name, 0.0), floor_of(reference))
        nodes = _maker(a.graph, vid), _maker(b.graph, its_id)
        entries.append(Entry(name, called, *nodes, error(reference, its[called]), explained))
    compared = tuple(entries)
    if local:
        renamed = renamed_feeds(feeds, a.graph, b.graph, matching)
        reference = {other[its_id].name: arrays[values[vid].name] for vid, its_id in pairs}
        errors = local_errors(b, renamed, reference)
        compared = with_local(compared, {values[vid].name: errors.get(other[its_id].name) for vid, its_id in pairs})
    return Comparison(compared, tuple(values[vid].name for vid in missing), (a.runs, b.runs))


def compare_recorded(a: RunSide, b: RecordedSide, feeds: Mapping[str, Any]) -> Comparison:
    """Compare a model with values that were recorded under its names."""
    values = a.graph.values
    order = [(vid, values[vid].name) for vid in made_values(a.graph)]
    its = b.values(feeds, [name for _, name in order])
    names = [name for _, name in order if name in its]
    arrays = a.values(feeds, names)
    noise = _noise(a, feeds, names, arrays)
    entries = [
        Entry(name, name, _maker(a.graph, vid), "", error(arrays[name], its[name]),
              max(noise.get(name, 0.0), floor_of(arrays[name])))
        for vid, name in order if name in its
    ]  # fmt: skip
    return Comparison(tuple(entries), tuple(name for _, name in order if name not in its), (a.runs, 0))


def _noise(side: RunSide, feeds: Mapping[str, Any], names: list[str], known: Mapping[str, Any]) -> dict[str, float]:
    """By name, the relative difference that roundings of the inputs make, amplified; none where that run fails."""
    try:
        moved = side.values(off_by_a_rounding(feeds), names)
    except OnnxlabError:
        return {}
    measured = {name: error(known[name], moved[name]).relative for name in names}
    return {name: _AMPLIFIED * number for name, number in measured.items() if number < float("inf")}


def renamed_feeds(feeds: Mapping[str, Any], a: ModelGraph, b: ModelGraph, matching: Matching) -> dict[str, Any]:
    """The inputs under the names of the second model; those that it does not have are left out."""
    renamed, inputs = {}, {b.values[vid].name for vid in b.main.inputs}
    for name, array in feeds.items():
        vid = a.main.names.get(name, 0)
        called = b.values[matching.values[vid]].name if vid in matching.values else name
        if called in inputs:
            renamed[called] = array
    return renamed


def _maker(graph: ModelGraph, vid: int) -> str:
    producer = graph.values[vid].producer
    return graph.label(graph.nodes[producer[0]]) if producer else ""
