"""A model larger than memory: 48 equal transformer blocks of 12 GB, whose weights stay in their file.

The file is sparse: its weights are zeros and take no space on the disk. Each measurement is a process of its own, whose
peak of anonymous memory is read as it runs; seconds of loading are the processor's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import Figure, Line
from bench.models import transformer_blocks

_BLOCKS = 48
_WIDTH = 2304
_GIGABYTE = 1e9

_SCRIPT = """
import json, sys, threading, time
import numpy as np
import onnxlab
from bench.anonymous_memory import status
path, width, outputs, provider = json.loads(sys.argv[1])
import onnxlab.execution.run.runner
before, began = status("RssAnon"), time.process_time()
model = onnxlab.load(path)
loaded, after = time.process_time() - began, status("RssAnon")
feeds = {"x": np.ones((1, 8, width), np.float32)}
peak, ended, steps = [after], threading.Event(), []
def watch():
    while not ended.wait(0.005):
        peak[0] = max(peak[0], status("RssAnon"))
if outputs is not None:
    threading.Thread(target=watch).start()
    began = time.perf_counter()
    result = model.run(feeds, outputs, providers=provider, progress=lambda *at: steps.append(at[0]))
    seconds = time.perf_counter() - began
    ended.set()
    assert all(np.isfinite(array).all() for array in result.values())
else:
    seconds = 0.0
print(json.dumps([loaded, after - before, seconds, peak[0] - before, len(set(steps))]))
"""


def rows() -> Iterator[Line]:
    """Loading, one block and all of them, on NumPy and with the Numba provider."""
    path = transformer_blocks(_BLOCKS, _WIDTH)
    total = sum(file.stat().st_size for file in path.parent.iterdir()) / _GIGABYTE
    loaded, memory, *_ = measured(path, None, None)
    yield Figure(f"load a model of {total:.1f} GB", loaded, "s", at_most=1)
    yield Figure("memory of loading it", memory / 1e6, "MB", at_most=100)
    for label, outputs in (("one block", ["block_0_out"]), ("all blocks", [f"block_{_BLOCKS - 1}_out"])):
        for provider in (None, ["numba"]):
            _, _, seconds, peak, steps = measured(path, outputs, provider)
            by = "model.run" if provider is None else "numba"
            yield Figure(f"{label} of it, {by}: peak of anonymous memory", peak / _GIGABYTE, "GB", at_most=2,
                         note=f"in {seconds:.1f} s, {steps:.0f} reports of progress")  # fmt: skip


def measured(path: Path, outputs: list[str] | None, provider: list[str] | None) -> list[float]:
    """[seconds of loading, its bytes, seconds of the run, its peak above the imports, reports of progress]."""
    command = [sys.executable, "-c", _SCRIPT, json.dumps([str(path), _WIDTH, outputs, provider])]
    printed = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True).stdout
    numbers: list[Any] = json.loads(printed)
    return [float(number) for number in numbers]
