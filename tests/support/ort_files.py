"""What onnxruntime makes of models in ONNX and ORT format: sessions that change nothing, inputs and outputs."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bool)": np.bool_,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
}  # fmt: skip
RANDOM = frozenset(("Dropout", "BiasDropout", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"))


def session(model: bytes | str, save: Path | None = None) -> onnxruntime.InferenceSession:
    """A session that changes nothing of a model; raises what onnxruntime raises."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    if save is not None:
        options.optimized_model_filepath = str(save)
        options.add_session_config_entry("session.save_model_format", "ORT")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def feeds(found: onnxruntime.InferenceSession, seed: int = 0) -> dict[str, Any] | None:
    """Inputs from a seed, sizes that are free made 2; None where an input is of a kind that is not made up here."""
    chance, made = np.random.default_rng(seed), {}
    for info in found.get_inputs():
        if info.type not in TYPES:
            return None
        shape = [dim if isinstance(dim, int) and dim > 0 else 2 for dim in info.shape]
        dtype = np.dtype(TYPES[info.type])
        array = chance.normal(size=shape) if dtype.kind == "f" else chance.integers(0, 2, size=shape)
        made[info.name] = array.astype(dtype)
    return made


def outputs(found: onnxruntime.InferenceSession, given: dict[str, Any]) -> list[Any] | str:
    """What a model returns, or why it does not run."""
    try:
        return list(found.run(None, given))
    except Exception as error:  # onnxruntime's own kinds of error, by the dozen
        return f"{type(error).__name__}"


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal to the bit."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and (
            one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
        )  # fmt: skip
    if hasattr(one, "dense_shape") and hasattr(other, "dense_shape"):
        return one.dense_shape() == other.dense_shape() and same(one.values(), other.values())
    return type(one) is type(other) and bool(one == other)


def is_random(model: onnx.ModelProto) -> bool:
    """Whether a model draws random numbers."""
    return any(node.op_type in RANDOM for node in model.graph.node)
