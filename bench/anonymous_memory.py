"""`python -m bench.anonymous_memory MODEL FEEDS.npz`: bytes that a run of onnxruntime takes above its loaded session.

Run it with MALLOC_MMAP_THRESHOLD_=4096, MALLOC_TRIM_THRESHOLD_=0 and MALLOC_ARENA_MAX=1, so that freed memory goes back
at once. The session has no arena, no memory pattern and no optimizations; kernels run on one thread. Printed are the
bytes at the peak and the names of nodes in the order in which they ran.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime


def status(field: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def session(path: str, profile: bool) -> onnxruntime.InferenceSession:
    """A session that keeps no memory of its own."""
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = profile
    options.profile_file_prefix = tempfile.mktemp(prefix="onnxlab-bench-")
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def order(path: str, feeds: dict[str, np.ndarray]) -> list[str]:
    """Names of the nodes in the order in which they run."""
    profiled = session(path, profile=True)
    profiled.run(None, feeds)
    file = Path(profiled.end_profiling())
    events = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    suffix = "_kernel_time"
    return [
        event["name"].removesuffix(suffix) for event in events
        if event.get("cat") == "Node" and event["name"].endswith(suffix)
    ]  # fmt: skip


def main() -> None:
    """Print the figures as JSON."""
    path, file = sys.argv[1:]
    with np.load(file, allow_pickle=True) as archive:
        feeds = dict(archive)
    names = order(path, feeds)
    loaded = session(path, profile=False)
    loaded.run(None, feeds)  # what kernels make once
    peaks = []
    for _ in range(3):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak
        before = status("RssAnon"), status("VmRSS")
        outputs = loaded.run(None, feeds)
        peaks.append(status("VmHWM") - before[1])
        del outputs
    print(json.dumps({"peak": min(peaks), "order": names}))


if __name__ == "__main__":
    main()
