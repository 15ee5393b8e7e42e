"""Results of onnxruntime for models in ONNX and ORT format: sessions that change nothing, inputs and outputs."""

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


def feeds(runtime_session: onnxruntime.InferenceSession, seed: int = 0) -> dict[str, Any] | None:
    """Inputs from a seed, sizes that are free made 2; None where an input is of a kind that is not made up here."""
    chance, arrays = np.random.default_rng(seed), {}
    for info in runtime_session.get_inputs():
        if info.type not in TYPES:
            return None
        shape = [dim if isinstance(dim, int) and dim > 0 else 2 for dim in info.shape]
        dtype = np.dtype(TYPES[info.type])
        array = chance.normal(size=shape) if dtype.kind == "f" else chance.integers(0, 2, size=shape)
        arrays[info.name] = array.astype(dtype)
    return arrays


def outputs(runtime_session: onnxruntime.InferenceSession, arrays: dict[str, Any]) -> list[Any] | str:
    """The outputs of a model, or the reason why it does not run."""
    try:
        return list(runtime_session.run(None, arrays))
    except Exception as error:  # onnxruntime's own kinds of error, by the dozen
        return f"{type(error).__name__}"


def same(value: Any, other: Any) -> bool:
    """Whether two results are equal to the bit."""
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return value.dtype == other.dtype and value.shape == other.shape and (
            value.tolist() == other.tolist() if value.dtype == object else value.tobytes() == other.tobytes()
        )  # fmt: skip
    if hasattr(value, "dense_shape") and hasattr(other, "dense_shape"):
        return value.dense_shape() == other.dense_shape() and same(value.values(), other.values())
    return type(value) is type(other) and bool(value == other)


def is_random(model: onnx.ModelProto) -> bool:
    """Whether a model draws random numbers."""
    return any(node.op_type in RANDOM for node in model.graph.node)
