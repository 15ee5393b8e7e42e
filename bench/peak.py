"""`python -m bench.peak onnxlab|onnxruntime MODEL`: bytes that loading and two runs take at most, above the imports."""

import sys
import warnings
from pathlib import Path

import onnxruntime

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.ops import find_kernel
from tests.support.corpus import Corpus, inputs


def peak() -> int:
    """The most that this process has had in memory, in bytes; 0 where the system does not tell."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")), 0)


def main() -> None:
    """Print the figure."""
    side, name = sys.argv[1:]
    warnings.simplefilter("ignore")
    path = Corpus()[name]
    feeds = inputs(name, path)
    find_kernel("", "Add", 14)  # imports all kernels
    onnxlab.load().sample_inputs()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    before = peak()
    if side == "onnxlab":
        model = onnxlab.load(path)
        runner = Runner(model.graph, model.inference.fact, (NumpyProvider(),))
        for _ in range(2):
            runner.run(feeds, keep=False)
    else:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for _ in range(2):
            session.run(None, feeds)
    print(peak() - before)


if __name__ == "__main__":
    main()
