"""Memory of values: what the C library does with it when they are let go, and what of maps is counted."""

import os
import subprocess
import sys

import numpy as np

from onnxlab.execution.base.array_memory import buffers, copied, is_flat
from onnxlab.execution.program.run_state import is_small

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


def test_maps_are_copied_and_counted_as_others_are() -> None:
    maps = [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]
    assert is_flat(maps)
    held = copied(maps)
    held[0]["a"] = 7.0
    assert maps[0]["a"] == 1.0
    assert buffers([maps]) == {}
    array = np.zeros(3, np.float32)
    for other in ([{"a": array}], [{"a": 1.0}, [array]], [array], {"a": array}, {"a": 1.0}, ({"a": 1.0},)):
        assert not is_flat(other)
    assert buffers([[{"a": array}]]) == {id(array): 12}
    inner = copied([{"a": array}])
    assert inner == [{"a": array}]


def test_many_maps_are_small_and_more_are_not() -> None:
    few, many = [{"a": 1.0, "b": 2.0}] * 2000, [{"a": 1.0, "b": 2.0}] * 4000
    assert is_small(few)
    assert not is_small(many)
    assert is_small([])
    assert not is_small([np.zeros(1 << 20, np.uint8)])
