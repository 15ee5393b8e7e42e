"""One hostile model, inferred three ways in a process of its own: what it took.

python -m bench.inference_hostile NAME      # prints seconds of processor time and the most megabytes of memory
"""

import contextlib
import resource
import sys
import time
from pathlib import Path

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference, infer_shapes
from tests.infer.support.hostile_models import MODELS


def main(name: str) -> None:
    """Infer facts, then both modes of the drop-in; Python and onnx count as memory, not as time."""
    start = time.process_time()
    model = MODELS[name]()
    Inference(ModelGraph(model))
    for strict in (False, True):
        with contextlib.suppress(Exception):
            infer_shapes(model, strict_mode=strict, data_prop=True)
    seconds = time.process_time() - start
    print(seconds, peak() / 1024)


def peak() -> int:
    """The most kilobytes that this program took; `ru_maxrss` counts those of the one that started it too."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(sys.argv[1])
