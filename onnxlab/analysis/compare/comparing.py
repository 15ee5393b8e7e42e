"""Comparing the values of two sides: run both, pair what they make, measure each pair against its noise.

The noise of a value is measured: the first side runs a second time with inputs that are off by one rounding, and ten
times the change counts as noise. Each side runs at most twice, unless a node fails or values do not fit into memory.
Then the values that can still be computed are compared, and the sides diverge at the node that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.analysis.compare.collecting import collected
from onnxlab.analysis.compare.comparison import ComparedValue, Comparison, with_local
from onnxlab.analysis.compare.error import common_part, error, failed_to_run, floor_of
from onnxlab.analysis.compare.local import local_errors
from onnxlab.analysis.compare.sides import RecordedSide, RunSide, graph_reads, made_values, off_by_a_rounding
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.errors import OnnxlabError, RunError
from onnxlab.graph.edit.model_graph import ModelGraph

_AMPLIFIED = 10
"""Factor by which another order of the same sums may change a value more than inputs off by one rounding do."""


def compare_runs(
    a: RunSide, b: RunSide, matching: GraphMatching, feeds: Mapping[str, Any], b_feeds: Mapping[str, Any] | None = None,
    *, local: bool = False,
) -> Comparison:  # fmt: skip
    """Compare two models on inputs of the first one.

    Args:
        matching: pairs of ids of the two models.
        b_feeds: inputs of the second model under the names of the first, if they differ. Of values with other sizes
            there, the common part is compared, and integers of rank 0 or 1 are left out.
        local: also run each node of the second model on what the first one's nodes read.

    Raises:
        RunError: neither side makes any value.
    """
    values, other = a.graph.values, b.graph.values
    missing = [values[vid].name for vid in made_values(a.graph) if vid not in matching.values]
    pairs = [(vid, matching.values[vid]) for vid in made_values(a.graph) if vid in matching.values]
    pairs = [pair for pair in pairs if other[pair[1]].producers and other[pair[1]].scope == b.graph.main.id]
    renamed = renamed_feeds(feeds if b_feeds is None else b_feeds, a.graph, b.graph, matching)
    work = _Work(a, b, (feeds, renamed), {its: vid for vid, its in pairs}, local, b_feeds is not None)
    compared = tuple(_entries(work, pairs))
    if compared and all(entry.error.problem and not entry.diverges for entry in compared):
        raise RunError(f"nothing can be compared, neither model runs: {compared[0].error.problem}")
    return Comparison(compared, tuple(missing), (a.runs, b.runs))


Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Work:
    """Both sides, the inputs of each, by id of the second side's values those of the first, what is asked for."""

    a: RunSide
    b: RunSide
    feeds: tuple[Mapping[str, Any], Mapping[str, Any]]
    partners: Mapping[int, int]
    local: bool
    is_cropped: bool


def _entries(work: _Work, pairs: Pairs) -> Iterator[ComparedValue]:
    """Compare all pairs in one run of each side; where they do not fit into memory together, one half after the other.

    Each half computes again what it needs of the other: that takes more runs, and less memory.
    """
    try:
        entries = _in_one_run(work, pairs)
    except MemoryError:
        if len(pairs) < 2:
            raise
        half = len(pairs) // 2
        yield from _entries(work, pairs[:half])
        yield from _entries(work, pairs[half:])
    else:
        yield from entries


def _in_one_run(work: _Work, pairs: Pairs) -> list[ComparedValue]:
    a, b, feeds = work.a, work.b, work.feeds
    values, other = a.graph.values, b.graph.values
    names = [values[vid].name for vid, _ in pairs]
    border = [(work.partners[its], its) for its in _read_from_elsewhere(work, pairs)] if work.local else []
    arrays, a_failed = collected(a, feeds[0], [*names, *(values[vid].name for vid, _ in border)])
    noise = _noise(a, feeds[0], [name for name in names if name in arrays], arrays)
    its, b_failed = collected(b, feeds[1], [other[vid].name for _, vid in pairs])
    entries = []
    for vid, its_id in pairs:
        name, called = values[vid].name, other[its_id].name
        nodes = _maker(a.graph, vid), _maker(b.graph, its_id)
        if name in arrays and called in its:
            explained = max(noise.get(name, 0.0), floor_of(arrays[name]))
            sides = (arrays[name], its[called])
            if work.is_cropped and _is_size(arrays[name]):
                continue
            off = error(*(common_part(*sides) if work.is_cropped else sides))
            entries.append(ComparedValue(name, called, *nodes, off, explained))
        else:
            why = b_failed.get(called) or a_failed.get(name, "it was not made")
            entries.append(
                ComparedValue(
                    name, called, *nodes, failed_to_run(why, both=name in a_failed and called in b_failed), 0.0
                )
            )
    if not work.local:
        return entries
    known = [pair for pair in (*pairs, *border) if values[pair[0]].name in arrays]
    reference = {other[its_id].name: arrays[values[vid].name] for vid, its_id in known}
    errors = local_errors(b, feeds[1], reference)
    by_name = {values[vid].name: errors.get(other[its_id].name) for vid, its_id in pairs}
    return list(with_local(tuple(entries), by_name))


def _is_size(array: Any) -> bool:
    """Whether an array is likely to hold sizes, which differ with the sizes of inputs: integers of rank 0 or 1."""
    return isinstance(array, np.ndarray) and array.ndim < 2 and array.dtype.kind in "iu"


def _read_from_elsewhere(work: _Work, pairs: Pairs) -> list[int]:
    """Ids of paired values of the second side that the makers of some pairs read, those of the pairs left out."""
    graph, inside = work.b.graph, {its for _, its in pairs}
    border: dict[int, None] = {}
    seen, left = set(inside), list(inside)
    while left:
        producer = graph.values[left.pop()].producer
        for vid in graph_reads(graph, producer[0]) if producer else ():
            if vid in seen:
                continue
            seen.add(vid)
            if vid in work.partners:
                border[vid] = None
            else:
                left.append(vid)
    return list(border)


def compare_recorded(a: RunSide, b: RecordedSide, feeds: Mapping[str, Any]) -> Comparison:
    """Compare a model with values that were recorded under its names."""
    values = a.graph.values
    order = [(vid, values[vid].name) for vid in made_values(a.graph)]
    its = b.values(feeds, [name for _, name in order])
    names = [name for _, name in order if name in its]
    arrays = a.values(feeds, names)
    noise = _noise(a, feeds, names, arrays)
    entries = [
        ComparedValue(name, name, _maker(a.graph, vid), "", error(arrays[name], its[name]),
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


def renamed_feeds(feeds: Mapping[str, Any], a: ModelGraph, b: ModelGraph, matching: GraphMatching) -> dict[str, Any]:
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
