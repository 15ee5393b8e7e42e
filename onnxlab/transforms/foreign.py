"""Optimizers of others, run in a process of their own; what they make is brought back as one application."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal, get_args

import onnx

from onnxlab.errors import TransformError
from onnxlab.formats.storage import embedded
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.printable import printable
from onnxlab.transforms.optimizer_results import bring_back
from onnxlab.transforms.pipeline import Pipeline
from onnxlab.transforms.rewriting import Rewriting

Engine = Literal["onnxsim", "onnxruntime", "onnxscript"]

MOST_BYTES: Final = (1 << 31) - (1 << 20)
"""Bytes of the largest model: protobuf takes no larger file, and these tools keep weights in the file."""

SECONDS: Final = 900
"""Time that an engine may take."""

SCRIPTS: Final = {
    "onnxsim": "import sys, onnx, onnxsim\nmade, _ = onnxsim.simplify(onnx.load(sys.argv[1]))\n"
    "onnx.save(made, sys.argv[2])\n",
    "onnxscript": "import sys, onnx\nfrom onnxscript import optimizer\n"
    "onnx.save(optimizer.optimize(onnx.load(sys.argv[1])), sys.argv[2])\n",
    "onnxruntime": "import sys, onnxruntime\noptions = onnxruntime.SessionOptions()\n"
    "options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, sys.argv[3])\n"
    "options.optimized_model_filepath = sys.argv[2]\n"
    "onnxruntime.InferenceSession(sys.argv[1], options, providers=['CPUExecutionProvider'])\n",
}
_LEVELS: Final = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "layout": "ORT_ENABLE_ALL"}


def plan_of(engine: str, graph: ModelGraph, level: str = "basic") -> Pipeline:
    """Run an engine on a model and make a plan of what it did.

    Raises:
        TransformError: there is no such engine, it is not installed, it fails, or the model is too large for it.
    """
    result = optimized(engine, embedded(graph.proto, graph.base_dir), level)

    def plan(rewriting: Rewriting) -> None:
        if rewriting.allows(engine, ""):
            bring_back(rewriting, result, engine)

    return plan


def optimized(engine: str, proto: onnx.ModelProto, level: str = "basic") -> onnx.ModelProto:
    """The model that an engine makes, in a process of its own."""
    if engine not in get_args(Engine):
        raise TransformError(f"{engine!r} is no engine; use one of {', '.join(get_args(Engine))}")
    if proto.ByteSize() > MOST_BYTES:
        raise TransformError(f"{engine} takes no model of more than 2 GiB; leave `engine` out")
    with tempfile.TemporaryDirectory(prefix="onnxlab-") as folder:
        source, target = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        source.write_bytes(proto.SerializeToString())
        arguments = [sys.executable, "-c", SCRIPTS[engine], str(source), str(target), _LEVELS.get(level, "")]
        try:
            done = subprocess.run(arguments, capture_output=True, timeout=SECONDS, check=False, cwd=folder)
        except subprocess.TimeoutExpired:
            raise TransformError(f"{engine} did not end within {SECONDS // 60} minutes") from None
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if "ModuleNotFoundError" in "".join(lines[-1:]):
            raise TransformError(f"{engine} is not installed: pip install {engine}")
        if done.returncode or not target.exists():
            raise TransformError(f"{engine} fails: {printable(lines[-1] if lines else 'it says nothing')[:300]}")
        return onnx.load(target)
