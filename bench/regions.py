"""The Numba provider's promises besides speed: right on everything, edits at once, many threads, no memory lost.

Printed with `python -m bench speed`; alone by `python -m bench regions`, which takes some minutes. The random regions
alone, in portions: `python -m bench.regions FIRST LAST`.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import onnxlab
from bench import networks
from bench.measure import Figure, Line, scratch_state, table
from onnxlab.execution.numba_provider import NumbaProvider
from onnxlab.execution.providers import named
from onnxlab.execution.runner import Runner
from onnxlab.graph import edits
from tests.corpus import inputs, path
from tests.execution.compiled.backend import REACHED, failures
from tests.execution.compiled.test_random_regions import check_drawing

Feeds = dict[str, Any]
_DRAWN = 5000
_EDITS = 4


def rows() -> Iterator[Line]:
    """Every figure."""
    warnings.simplefilter("ignore")
    picture, words = networks.picture(), networks.words()
    yield from after_edits("ResNet-50", networks.resnet50(), picture, 4, 30)
    yield from after_edits("BERT-base", networks.bert_base(), words, 6, 30)
    yield winograds_error(networks.resnet50(), picture)
    yield many_threads()
    yield cycles()
    yield backend_cases()
    yield drawn_regions()


def hot(model: onnxlab.Model, threads: int = 1, precise: bool = False) -> Runner:
    """A runner whose regions are compiled before the first answer."""
    provider = NumbaProvider(threads, background=False, precise=precise)
    return Runner(model.graph, model.inference.fact, named([provider, "numpy"]), threads=threads)


def after_edits(name: str, proto: onnx.ModelProto, feeds: Feeds, middle: float, end: float) -> Iterator[Line]:
    """New weights for one node, then new outputs; against serialising, creating a session and running that.

    Ours is the quicker of two ways: values that were kept and NumPy for what the edit changed, or the whole model
    by regions, of which only what the edit touched is packed again.
    """
    model = onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString()))
    weights = _weights(model)
    runner = hot(model)
    model.run(feeds)
    runner.run(feeds, keep=False)
    for where, weight, promise in (("middle", weights[len(weights) // 2], middle), ("end", weights[-1], end)):
        ways: dict[str, Callable[[], Any]] = {"values kept": model.run}
        ways["regions"] = lambda: runner.run(feeds, keep=False)
        best = {way: min(_timed_edit(model, weight, run) for _ in range(_EDITS)) for way, run in ways.items()}
        way = min(best, key=lambda item: best[item])
        theirs = min(_fresh_sessions(model, feeds))
        note = f"{way}, {best[way] * 1e3:.1f} ms against {theirs * 1e3:.0f} ms of a new session"
        yield Figure(f"edit the {where} of {name}: times faster", theirs / best[way], "×", at_least=promise, note=note)
        kept, whole = model.run(), runner.run(feeds, keep=False)
        wrong = sum(not np.allclose(kept[key], whole[key], rtol=1e-3, atol=1e-4) for key in kept)
        yield Figure("outputs that the two ways do not agree on", wrong, at_most=0)


def _weights(model: onnxlab.Model) -> list[int]:
    """Value ids of the initializers that products multiply with, in the order of their nodes."""
    graph = model.graph
    products = [graph.nodes[node] for node in graph.index.topological(graph.main)]
    second = [node.inputs[1] for node in products if node.op_type in ("Conv", "Gemm", "MatMul")]
    return [value for value in second if graph.values[value].initializer is not None]


def _timed_edit(model: onnxlab.Model, weight: int, run: Callable[[], Any]) -> float:
    array = model.graph.array(weight)
    assert array is not None
    changed = array * np.float32(1.001)
    gc.collect()
    start = time.perf_counter()
    edits.set_initializer(model.graph, model.graph.values[weight], changed)
    run()
    return time.perf_counter() - start


def _fresh_sessions(model: onnxlab.Model, feeds: Feeds) -> Iterator[float]:
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.intra_op_num_threads = 1
        start = time.perf_counter()
        data = model.proto.SerializeToString()
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
        yield time.perf_counter() - start


def winograds_error(proto: onnx.ModelProto, feeds: Feeds) -> Line:
    """How far the outputs of the usual and the precise way are from each other."""
    model = onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString()))
    names = [model.graph.nodes[node].outputs[0] for node in model.graph.index.topological(model.graph.main)]
    before_softmax = [model.graph.values[names[-2]].name]
    found = [hot(model, precise=precise).run(feeds, before_softmax, keep=False) for precise in (False, True)]
    (ours,), (exact,) = (result.values() for result in found)
    error = float(np.abs(ours - exact).max() / np.abs(exact).max())
    return Figure("ResNet-50 by Winograd's convolutions: largest difference", error, at_most=1e-4,
                  note="of the largest logit, from precise=True")  # fmt: skip


def many_threads(count: int = 8, each: int = 200) -> Line:
    """Python threads that run one model at once, each with two threads of ours."""
    model = onnxlab.load(path("rapidocr_cls"))
    runner = hot(model, threads=2)
    feeds = [inputs("rapidocr_cls", path("rapidocr_cls"), seed) for seed in range(count)]
    expected = [model.run(item, providers=["numpy"]) for item in feeds]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(each):
            found = runner.run(feeds[number], keep=False)
            wrong.extend(number for key in found if not np.allclose(found[key], expected[number][key], atol=1e-4))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Figure(f"{count} Python threads × {each} runs of rapidocr_cls: wrong outputs", len(wrong), at_most=0)


def cycles(count: int = 1000) -> Line:
    """A small model made, run and dropped, again and again: what memory is left with, after a tenth of them."""
    proto = onnx.load(path("lstm_gru")).SerializeToString()
    feeds = inputs("lstm_gru", path("lstm_gru"))
    before = 0
    for number in range(count):
        model = onnxlab.load(onnx.ModelProto.FromString(proto))
        hot(model).run(feeds, keep=False)
        del model
        if number == count // 10:
            gc.collect()
            before = _resident()
    gc.collect()
    grown = (_resident() - before) / 1e6
    return Figure(f"{count} times created, run and dropped: memory grows by", grown, "MB", at_most=20)


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def backend_cases() -> Line:
    """onnx's own cases through the provider, which takes whatever it can."""
    failed, passed = failures()  # type: ignore[no-untyped-call]
    note = f"of {passed + len(failed)}; {REACHED['regions']} with a region" + "".join(f"; {name}" for name in failed)
    return Figure("onnx backend tests through the provider that fail", len(failed), at_most=0, note=note)


def drawn_regions(first: int = 0, last: int = _DRAWN) -> Line:
    """Random regions, of these seeds, that differ from NumPy's results."""
    wrong = []
    for seed in range(first, last):
        try:
            check_drawing(seed)  # type: ignore[no-untyped-call]
        except Exception:  # whatever happened, the region was not right
            wrong.append(seed)
    note = "seeds " + ", ".join(map(str, wrong)) if wrong else "against NumPy's"
    return Figure(f"{last - first} random regions: wrong results", len(wrong), at_most=0, note=note)


if __name__ == "__main__":
    with scratch_state():
        print(table([drawn_regions(*map(int, sys.argv[1:]))]))
