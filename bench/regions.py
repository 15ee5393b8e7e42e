"""The Numba provider's promises besides speed: right on everything, many threads, no memory lost.

Printed with `python -m bench speed`; alone by `python -m bench regions`, which takes some minutes. The random regions
alone, in portions: `python -m bench.regions FIRST LAST`.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import onnxlab
from bench import networks
from bench.measure import Figure, Line, scratch_state, table
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.run.provider_names import named
from onnxlab.execution.run.runner import Runner
from tests.execution.numba.plan.test_checkpoints import noting_everything, resumed
from tests.execution.numba.region.test_random_regions import check_drawing
from tests.execution.support.changed_attributes import outcomes
from tests.execution.support.compiled_backend import REACHED, failures
from tests.support.corpus import inputs, path

Feeds = dict[str, Any]
_DRAWN = 5000


def rows() -> Iterator[Line]:
    """Every figure."""
    warnings.simplefilter("ignore")
    yield winograds_error(networks.resnet50(), networks.picture())
    yield many_threads()
    yield cycles()
    yield backend_cases()
    yield changed_attributes()
    yield drawn_regions()
    yield drawn_edits()


def hot(model: onnxlab.Model, threads: int = 1, precise: bool = False) -> Runner:
    """A runner whose regions are compiled before the first answer."""
    provider = NumbaProvider(threads, background=False, precise=precise)
    return Runner(model.graph, model.inference.fact, named([provider, "numpy"]), threads=threads)


def winograds_error(proto: onnx.ModelProto, feeds: Feeds) -> Line:
    """The distance between the outputs of the usual and the precise way."""
    model = onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString()))
    names = [model.graph.nodes[node].outputs[0] for node in model.graph.index.topological(model.graph.main)]
    before_softmax = [model.graph.values[names[-2]].name]
    results = [hot(model, precise=precise).run(feeds, before_softmax, keep=False) for precise in (False, True)]
    (ours,), (exact,) = (result.values() for result in results)
    error = float(np.abs(ours - exact).max() / np.abs(exact).max())
    return Figure("ResNet-50 by Winograd's convolutions: largest difference", error, at_most=1e-4,
                  note="of the largest logit, from precise=True")  # fmt: skip


def many_threads(count: int = 8, repeats: int = 200) -> Line:
    """Python threads that run one model at once, each with two threads of ours."""
    model = onnxlab.load(path("rapidocr_cls"))
    runner = hot(model, threads=2)
    feeds = [inputs("rapidocr_cls", path("rapidocr_cls"), seed) for seed in range(count)]
    expected = [model.run(item, providers=["numpy"]) for item in feeds]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(repeats):
            outputs = runner.run(feeds[number], keep=False)
            wrong.extend(number for key in outputs if not np.allclose(outputs[key], expected[number][key], atol=1e-4))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Figure(f"{count} Python threads × {repeats} runs of rapidocr_cls: wrong outputs", len(wrong), at_most=0)


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


def drawn_edits(first: int = 0, last: int = _DRAWN // 10) -> Line:
    """Edits of constants in random regions, each followed by a run that goes on from what the run before noted."""
    wrong, later = [], 0
    with noting_everything():
        for seed in range(first, last):
            try:
                later += resumed(seed)  # type: ignore[no-untyped-call]
            except Exception:  # whatever happened, the run was not right
                wrong.append(seed)
    note = f"of {last - first}, {later} runs begun late" + "".join(f"; {seed}" for seed in wrong)
    return Figure("random regions with edits that differ from a fresh provider's", len(wrong), at_most=0, note=note)


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


def changed_attributes() -> Line:
    """onnx's node cases with attributes that they should not have: another result or none of the errors of NumPy's."""
    seen = list(outcomes())  # type: ignore[no-untyped-call]
    wrong = [f"{op_type} {name}={value}" for op_type, name, value, difference in seen if difference]
    label = f"{len(seen)} changed attributes of onnx's node cases: not as by NumPy"
    return Figure(label, len(wrong), at_most=0, note="; ".join(wrong[:20]))


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
