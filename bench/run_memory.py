"""Peaks of anonymous memory of runs above the loaded model: plain `model.run` and onnxruntime, one process each.

Ours is loaded when `onnxlab.load` returns, onnxruntime's when its session is made, which has packed its weights by
then. So two figures of ours are told: of the first runs, packing and the stand-in included, and of a run when all is
compiled, above what those left (packed weights) but for their work memory. What a run keeps for looks is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import onnxlab
from bench import made, networks, small_models
from bench.measure import Figure, Line
from tests.support.corpus import NAMES, inputs, path

_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_ARENA_MAX": "1"}
_LEAST = 1 << 20
"""Bytes of onnxruntime's peak below which a model is not counted: pages and the allocator's records decide there."""
_PEAK = """
import json, sys
from pathlib import Path
import numpy as np
def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
def peak(run):
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    run()
    return max(status("VmHWM") - before, 0)
path, file, side = sys.argv[1:]
with np.load(file, allow_pickle=True) as archive:
    feeds = dict(archive)
"""
_OURS = f"""{_PEAK}
import gc
import onnxlab
from onnxlab.execution.base import background
from onnxlab.execution.base.array_memory import buffers
warm = onnxlab.load()
warm.runner.compiles = side != "numpy"
for _ in range(3):
    warm.run(warm.sample_inputs()); background.wait()
model = onnxlab.load(path)
model.runner.compiles = side != "numpy"
def first():
    for _ in range(4):
        model.run(feeds); background.wait()
began = peak(first)
def idle():  # work memory of finished runs goes
    from onnxlab.execution.numba.plan.plan import Plan
    for item in gc.get_objects():
        if type(item) is Plan:
            item._idle.clear()
idle() if side != "numpy" else None
gc.collect()
hot = peak(lambda: model.run(feeds))
kept = sum(buffers(model.runner.store.state.arrays.values()).values())
print(json.dumps([began, hot, kept]))
"""
_THEIRS = f"""{_PEAK}
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.enable_cpu_mem_arena = False
options.log_severity_level = 4
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
print(json.dumps([peak(lambda: session.run(None, feeds))]))
"""


Feeds = dict[str, np.ndarray[Any, Any]]


def rows(names: Sequence[str] = ()) -> Iterator[Line]:
    """A line for each of the named models that onnxruntime runs, and the means; by default for all."""
    ratios: dict[str, list[float]] = {"compiled": [], "NumPy alone": []}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases(Path(folder)).items():
            if names and name not in names:
                continue
            try:
                lines = [*of(name, *make(), ratios)]
            except subprocess.CalledProcessError as error:  # a model that onnxruntime's Python interface does not take
                print(f"left out {name}: {error.stderr[-200:]}", file=sys.stderr)
                continue
            yield from lines
    for how, limit in (("compiled", 1.3), ("NumPy alone", 3.0)):
        mean = exp(sum(map(log, ratios[how])) / max(1, len(ratios[how])))
        yield Figure(f"peak of a run to onnxruntime's, {how}, in the mean", mean, at_most=limit,
                     note=f"of {len(ratios[how])} models; the worst {max(ratios[how]):.3g}")  # fmt: skip


def cases(folder: Path) -> dict[str, Callable[[], tuple[Path, Feeds]]]:
    """Makers of the file and the feeds of each model: of the corpus, in full width, made up for other measurements."""

    def saved(name: str, make: Callable[[], tuple[onnx.ModelProto, Feeds]]) -> tuple[Path, Feeds]:
        model, feeds = make()
        onnx.save(model, folder / f"{name}.onnx")
        return folder / f"{name}.onnx", feeds

    def of_corpus(name: str) -> tuple[Path, Feeds]:
        return path(name), inputs(name, path(name))

    def made_up(name: str) -> tuple[Path, Feeds]:
        return made.path(name), onnxlab.load(made.path(name)).sample_inputs()

    new = {"ResNet-50": lambda: (networks.resnet50(), networks.picture()),
           "BERT-base": lambda: (networks.bert_base(), networks.words()), **small_models.CASES}  # fmt: skip
    return {
        **{name: partial(of_corpus, name) for name in NAMES},
        **{name: partial(saved, name, make) for name, make in new.items()},
        **{name: partial(made_up, name) for name in made.MADE},
    }


def of(name: str, model: Path, feeds: Feeds, ratios: dict[str, list[float]]) -> Iterator[Line]:
    """The lines of one model; ratios of those that count are appended."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "feeds.npz"
        np.savez(file, **feeds)  # type: ignore[arg-type]
        (theirs,) = _told(_THEIRS, model, file, "")
        for how, side in (("compiled", "usual"), ("NumPy alone", "numpy")):
            began, hot, held = _told(_OURS, model, file, side)
            ratio = max(hot - held, 1) / max(theirs, 1)
            if theirs >= _LEAST:
                ratios[how].append(max(ratio, 1e-2))
            kept_of = f"{hot / 1e6:.1f} MB of which {held / 1e6:.1f} are kept"
            note = f"{kept_of}, to {theirs / 1e6:.1f}; first runs {began / 1e6:.1f}"
            yield Figure(f"{name}, peak of a run to onnxruntime's, {how}", ratio, note=note)


def _told(script: str, model: Path, file: Path, side: str) -> list[int]:
    command = [sys.executable, "-c", script, str(model), str(file), side]
    environment = os.environ | _ENVIRONMENT
    return list(json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout))
