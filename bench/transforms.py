"""Rewriting: how many nodes `simplify` leaves, against onnxsim, and whether onnxruntime computes the same with them.

    python -m bench transforms

Constant is not counted; models that onnxsim does not take are left out of its sum. Outputs are those of onnxruntime
without optimization, before and after, on the inputs of the corpus.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxlab.transforms.simplification import count_nodes

import onnxlab
from bench.measure import Figure, Line, Row
from tests.support import corpus

TOLERANCE = 1e-4
"""Difference relative to the peak of an output from which on it counts as broken."""

TIMED = "swin_s"


def rows() -> Iterator[Line]:
    """Nodes, broken outputs, names that are kept, and time."""
    warnings.simplefilter("ignore")
    ours = theirs = broken = taken = refused = 0
    kept = []
    for name in corpus.NAMES:
        path = corpus.path(name)
        model = onnxlab.load(path)
        values = {value.name for value in model.graph.values.values()}
        receipt = model.simplify()
        refused += len(receipt.refused)
        broken += not _computes_the_same(name, path, model)
        left = {value.name for value in model.graph.values.values()}
        kept.append(len(left & values) / max(len(left), 1))
        count = _by_onnxsim(path)
        if count is not None:
            taken += 1
            ours, theirs = ours + count_nodes(model.graph), theirs + count
    if taken:
        yield Figure(f"nodes that simplify leaves of {taken} models", ours, at_most=theirs, note=f"onnxsim: {theirs}")
    yield Figure("models that onnxruntime computes otherwise", broken, at_most=0, note=f"of {len(corpus.NAMES)}")
    yield Figure("passes that were taken back", refused)
    yield Figure("names of what stays that were there before", float(np.median(kept)), at_least=0.95, note="median")
    yield from _speed()


def _by_onnxsim(path: Path) -> int | None:
    """How many nodes onnxsim leaves, None where it is not installed or fails."""
    try:
        import onnxsim

        model, _ = onnxsim.simplify(onnx.load(path))
    except Exception:
        return None
    return len([node for node in model.graph.node if node.op_type != "Constant"])


def _computes_the_same(name: str, path: Path, model: onnxlab.Model) -> bool:
    feeds = corpus.inputs(name, path)
    saved = model.save(path.with_name("simplified.onnx"))
    try:
        before, after = _outputs(path, feeds), _outputs(saved, feeds)
    finally:
        for written in path.parent.glob("simplified.onnx*"):
            written.unlink()
    return all(_is_same(one, other) for one, other in zip(before, after, strict=True))


def _outputs(path: Path, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: array for name, array in feeds.items() if name in wanted}))


def _is_same(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray) or one.dtype.kind != "f":
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    peak = float(np.nanmax(np.abs(one), initial=0.0))
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0, atol=TOLERANCE * peak, equal_nan=True))


def _speed() -> Iterator[Line]:
    """Time on the corpus's largest graph, without the proof; onnxsim checks nothing either by default."""
    path = corpus.path(TIMED)
    best = [float("inf"), float("inf")]
    for _ in range(3):
        model = onnxlab.load(path)
        start = time.perf_counter()
        model.simplify(verify=False)
        best[0] = min(best[0], time.perf_counter() - start)
        try:
            import onnxsim
        except ImportError:
            continue
        proto = onnx.load(path)
        start = time.perf_counter()
        onnxsim.simplify(proto)
        best[1] = min(best[1], time.perf_counter() - start)
    if best[1] < float("inf"):
        yield Row(f"simplify {TIMED}", best[0], best[1], "onnxsim", 1.0)
