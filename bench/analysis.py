"""Comparing models: planted differences found again, faults named, patches exact, and what it costs.

    python -m bench analysis

All values of a corpus model get other names and its nodes another order, some are edited, and the share of values that
`diff` pairs rightly is counted; dead nodes are no part of the truth. Against an optimizer, right means that a run of
both gave equal values within roundings. A planted fault counts as found where `compare` names its node exactly.
"""

import hashlib
import random
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

import onnxlab
from bench import datasets, memory_peaks
from bench.measure import Figure, Line
from onnxlab.analysis.compare.error import error
from onnxlab.analysis.compare.sides import made_values
from tests.analysis.compare.faults import planted
from tests.analysis.diff.test_patch import broken
from tests.analysis.diff.truth import edited, renamed_and_shuffled
from tests.support import corpus

SEQUENCES = 1000
FAULTS = 100
LARGE = "deep_chain_12k"


def rows() -> Iterator[Line]:
    """Matching, patches, faults, time, memory, data sets."""
    warnings.simplefilter("ignore")
    for share in (0.0, 0.05):
        yield from _planted(share)
    yield from _optimized()
    yield from _time()
    failed = sum(broken(seed) != "" for seed in range(SEQUENCES))
    yield Figure("patches of random edits that are not exact", failed, at_most=0, note=f"of {SEQUENCES}")
    yield from _faults()
    yield from memory_peaks.rows()
    yield from datasets.rows()


def _planted(share: float) -> Iterator[Line]:
    rights, wrongs = [], []
    for name in corpus.NAMES:
        a, rng = onnxlab.load(corpus.path(name)), random.Random(7)
        proto, gone = edited(a.proto, share, rng) if share else (a.proto, set[str]())
        proto, table = renamed_and_shuffled(proto, rng)
        b = onnxlab.load(proto)
        pairs = onnxlab.diff(a, b).matching.values
        right = wrong = total = 0
        for vid in a.graph.main.names.values():
            old = a.graph.values[vid].name
            present = old not in gone and table.get(old) in b.graph.main.names
            total += present
            if vid in pairs:
                agrees = present and b.graph.values[pairs[vid]].name == table[old]
                right, wrong = right + agrees, wrong + (not agrees)
        rights.append(right / total)
        wrongs.append(wrong / total)
    note = f"mean of {len(rights)} models, lowest {min(rights):.3f}"
    yield Figure(f"values matched, {share:.0%} of nodes edited", float(np.mean(rights)), at_least=0.97, note=note)
    note = f"mean, highest {max(wrongs):.4f}"
    yield Figure(f"values matched wrongly, {share:.0%} edited", float(np.mean(wrongs)), at_most=0.002, note=note)


def _optimized() -> Iterator[Line]:
    for label, optimize in (("our simplify", _simplified), ("onnxsim", _by_onnxsim)):
        rights, wrongs = [], []
        for name in corpus.NAMES:
            path = corpus.path(name)
            try:
                proto = optimize(name)
                a, b = onnxlab.load(path), onnxlab.load(renamed_and_shuffled(proto, random.Random(1))[0])
                counts = _equal_pairs(a, b, corpus.inputs(name, path))
            except Exception as problem:
                print(f"{name}: {label}: {problem!r:.100}")
                continue
            if counts[2]:
                rights.append(counts[0] / counts[2])
                wrongs.append(counts[1] / counts[2])
        note = f"mean of {len(rights)} models; wrongly {np.mean(wrongs):.4f}"
        yield Figure(f"values matched against {label}", float(np.mean(rights)), at_least=0.94, note=note)


def _simplified(name: str) -> onnx.ModelProto:
    model = onnxlab.load(corpus.path(name))
    model.simplify(verify=False)
    return model.proto


def _by_onnxsim(name: str) -> onnx.ModelProto:
    import onnxsim

    model: onnx.ModelProto = onnxsim.simplify(onnx.load(corpus.path(name)))[0]
    return model


def _equal_pairs(a: onnxlab.Model, b: onnxlab.Model, feeds: dict[str, Any]) -> tuple[int, int, int]:
    """(matched with equal values, with others, values of the second that the first has too) by a run of both."""
    pairs = onnxlab.diff(a, b).matching.values
    names = [a.graph.values[vid].name for vid in made_values(a.graph)]
    arrays = a.run(feeds, names, strict=False)
    renamed = {}
    for name, array in feeds.items():
        vid = a.graph.main.names.get(name, 0)
        if vid in pairs:
            renamed[b.graph.values[pairs[vid]].name] = array
    called = [b.graph.values[vid].name for vid in made_values(b.graph)]
    its = b.run(renamed, called, strict=False)
    prints: dict[Any, list[Any]] = {}
    for array in arrays.values():
        prints.setdefault(_rough(array), []).append(array)
    back = {other: ours for ours, other in pairs.items()}
    right = wrong = total = 0
    for vid in made_values(b.graph):
        array = its[b.graph.values[vid].name]
        partner = arrays.get(a.graph.values[back[vid]].name) if vid in back else None
        same = partner is not None and _close(partner, array)
        right, wrong = right + same, wrong + (partner is not None and not same)
        total += same or any(_close(candidate, array) for candidate in prints.get(_rough(array), ()))
    return min(right, total), wrong, total


def _rough(array: Any) -> Any:
    return (array.dtype.str, array.shape) if isinstance(array, np.ndarray) else type(array)


def _close(array: Any, other: Any) -> bool:
    return error(array, other).relative <= 1e-4


def _time() -> Iterator[Line]:
    a = onnxlab.load(corpus.path(LARGE))
    rng = random.Random(1)
    b = onnxlab.load(renamed_and_shuffled(edited(a.proto, 0.05, rng)[0], rng)[0])
    seconds = min(_taken(lambda: onnxlab.diff(a, b)) for _ in range(5))
    yield Figure("seconds of diff, 12,000 values", seconds, at_most=1.0, note="processor's time; renamed, 5 % edited")
    path = corpus.path("resnet50")
    same, twin = onnxlab.load(path), onnxlab.load(path)
    data = path.read_bytes()
    equal = min(_taken(lambda: onnxlab.diff(same, twin)) for _ in range(5))
    hashing = min(_taken(lambda: [hashlib.sha256(data).digest() for _ in range(2)]) for _ in range(5))
    yield Figure("time of diff of equal models to hashing both", equal / hashing, at_most=2.0)


def _taken(call: Any) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _faults() -> Iterator[Line]:
    first = guilty = most = 0
    for seed in range(FAULTS):
        fault = planted(seed)
        comparison = onnxlab.compare(fault.a, fault.b, fault.inputs, local=True)
        first += comparison.first is not None and comparison.first.node == fault.node
        guilty += bool(comparison.guilty) and comparison.guilty[0].node == fault.node
        most = max(most, *comparison.runs)
    yield Figure("first divergence is the planted fault", first, at_least=95, note=f"of {FAULTS}")
    yield Figure("local error names the planted fault first", guilty, at_least=95, note=f"of {FAULTS}")
    yield Figure("runs of a side, at most", most, at_most=3)
