"""Operands of integer products, and what onnxruntime makes of them."""

import numpy as np
import onnxruntime

from tests.execution.support.regions import assert_close, check

BYTES = (np.uint8, np.int8)


def integers(rng, dtype, *shape, bits=8):
    if bits == 8:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return rng.integers(-64, 64, shape).astype(np.int8)


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def oracle(model, feeds):
    """The outputs of onnxruntime, without its optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds), strict=True))


def both(model, feeds, tolerance=1e-6, **options):
    """Against NumPy and onnxruntime; integers must be the same."""
    ours = check(model, feeds, tolerance, **options)
    for name, expected in oracle(model, feeds).items():
        assert_close(ours[name], expected, tolerance, name)
    return ours
