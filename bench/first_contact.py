"""From the first call of a new model until it runs at half of its final speed, and how long its calls wait meanwhile.

Each figure is that of a process of its own that calls plain `model.run` again and again, of other inputs each time:
with all kernels on disk (a machine that ran onnxlab before), and with none but their LLVM IR, as a wheel holds it.
Measure on an idle machine: kernels are compiled by a process that gives way to all others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from statistics import median

from bench.measure import Figure, Line, with_bytecode
from onnxlab.execution.numba.machine.host import host

_NAMES = ("light_densenet121", "resnet50", "gpt2_kv", "swin_s")
_CALLS = """
import json, sys, time
from itertools import cycle
import onnxlab
from bench.speed import others
from onnxlab.execution.base import background
from tests.support.corpus import inputs, path
name, patience = sys.argv[1], float(sys.argv[2])
turns = cycle(others(inputs(name, path(name))))
def timed(model, **options):
    feeds, began = next(turns), time.perf_counter()
    model.run(feeds, **options)
    return time.perf_counter() - began
plain = onnxlab.load(path(name))
plain.compiled.in_background = False
first = timed(plain)  # of all: what it imports is not of the other
alone = [timed(plain) for _ in range(20)]
model = onnxlab.load(path(name))
begun, calls, quiet_at = time.perf_counter(), [], None
while quiet_at is None or time.perf_counter() < quiet_at + 1:
    before = time.perf_counter() - begun
    calls.append((before, timed(model)))
    quiet = background.wait(0)
    quiet_at = (quiet_at or time.perf_counter()) if quiet and len(calls) > 2 else None
    if before > patience:
        break
print(json.dumps({"calls": calls, "numpy": alone, "compiled": repr(model.compiled)}))
"""


def rows() -> Iterator[Line]:
    """Lines for each model: a warm cache, a cold one, and the longest wait of a call."""
    subprocess.run([sys.executable, ".ci/llvm_ir.py", host().name], check=True)
    for name in _NAMES:
        yield from of(name, warm=True)
        yield from of(name, warm=False)


def of(name: str, warm: bool, patience: float = 180.0) -> Iterator[Line]:
    """The lines of one model."""
    with tempfile.TemporaryDirectory() as folder:
        environment = with_bytecode() | ({} if warm else {"ONNXLAB_CACHE": folder})
        command = [sys.executable, "-c", _CALLS, name, str(patience)]
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    report = json.loads(output)
    calls, numpy = report["calls"], report["numpy"]
    final = median(seconds for _, seconds in calls[-max(3, len(calls) // 10) :])
    late = [began + seconds for began, seconds in calls if seconds > 2 * final]
    until = _settled(calls, 2 * final)
    how = "warm" if warm else "cold"
    note = f"{len(calls)} calls, the last of {final * 1e3:.3g} ms, NumPy's {min(numpy) * 1e3:.3g}; {report['compiled']}"
    label = f"{name}, {how} cache: first call until half of the final speed"
    yield Figure(label, until, "s", at_most=1.0 if warm else 15.0, note=note)
    wait = max(seconds for _, seconds in calls[1:]) - max(numpy[1:])
    slow = f"beyond NumPy's slowest of {len(numpy) - 1}; the last slow call ended after {max(late, default=0):.3g} s"
    yield Figure(f"{name}, {how} cache: longest wait", wait * 1e3, "ms", at_most=50, note=slow)


def _settled(calls: list[tuple[float, float]], limit: float) -> float:
    """Seconds until a call and, of the nine that follow, most take no more than the limit, as most do from then on."""
    firsts = range(max(1, len(calls) - 8))
    quick = [median(seconds for _, seconds in calls[number : number + 9]) <= limit for number in firsts]
    last = max((number for number, is_quick in enumerate(quick) if not is_quick), default=-1)
    return calls[last + 1][0] if last + 1 < len(quick) else float("inf")
