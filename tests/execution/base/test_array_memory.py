"""Memory of values: what the C library does with it when they are let go."""

import os
import subprocess
import sys

_FAULTS = """
import resource
import numpy as np
from onnxlab.execution.base import worker
from onnxlab.execution.base.array_memory import retain_freed
from onnxlab.limits import Limits

def values():
    return [np.ones(1 << 19, np.uint8) for _ in range(80)]

def faults(call):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made = call(values)
    del made
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

retain_freed()
for call in (lambda make: make(), lambda make: worker.call(make, Limits.usual())):
    print(min(faults(call) for _ in range(4)))
"""


def test_freed_memory_of_values_is_used_again() -> None:
    # Dask, where a test has imported it, sets a threshold for processes to come, and glibc then learns nothing.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    result = subprocess.run(
        [sys.executable, "-c", _FAULTS], env=environment, capture_output=True, text=True, check=True
    )
    pages = 80 * (1 << 19) // 4096
    assert max(map(int, result.stdout.split())) < pages // 10
