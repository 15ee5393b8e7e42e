"""STFT of real signals as a product: frames that overlap, times the Fourier transform of a window as a matrix."""

from __future__ import annotations

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import Array, dense
from onnxlab.execution.numba.rules.onnx.matmul import by_constant
from onnxlab.execution.numba.rules.registry import StaticFacts, floats_at, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.shapes import TensorFact

_LONGEST = 512
"""Samples of a frame beyond which a fast transform does less."""


def _accept(node: NodeView, view: StaticFacts) -> str:
    reason = floats_at(node, view, 0)
    if reason:
        return reason
    if not all(view.known(name) for name in node.inputs[1:] if name):
        return "a step, window or length that is known only when it has been computed"
    constant, fact = view.constant(node.inputs[0]), view.fact(node.inputs[0])
    shape = fact.shape if isinstance(fact, TensorFact) and constant is None else getattr(constant, "shape", None)
    real = shape is not None and (len(shape) == 2 or (len(shape) == 3 and shape[2] == 1))
    return "" if real else "a signal that may be complex"


@rule("STFT", since=17, accept=_accept, weight=4)
def stft(binder: Binder, node: NodeView) -> None:
    """Lower STFT to a product with the transform's matrix."""
    names = (*node.inputs, "", "")
    signal, step = binder.floats(names[0]), binder.integers(names[1])[0]
    window = binder.known(names[2]) if names[2] else None
    if names[2] and window is None:
        raise UnbindableError(f"{names[2]!r} is known only when it has been computed")
    length = binder.integers(names[3])[0] if names[3] else 0 if window is None else len(window)
    if step < 1 or not 0 < length <= signal.shape[1] or (window is not None and window.shape != (length,)):
        raise UnbindableError(f"a step of {step} and frames of {length} for {signal.shape[1]} samples")
    if length > _LONGEST:
        raise UnbindableError(f"frames of {length} samples are quicker by a fast transform")
    if signal.strides[1] != 4:
        signal = contiguous(binder.builder, signal)
    bins = length // 2 + 1 if node.attributes.get("onesided", 1) else length
    shape = signal.shape[0], (signal.shape[1] - length) // step + 1, length
    frames = signal.at(0, shape, (signal.strides[0], 4 * step, 4))
    key = ("stft", length, bins, *(binder.key_of(names[2]) if window is not None else ()))
    target = binder.builder.allocate((*shape[:2], 2 * bins), np.float32)
    spectrum = binder.emit(by_constant(binder, frames, transform(length, bins, window), target, key))
    complex_shape = (*shape[:2], bins, 2)
    binder.put(node.outputs[0], spectrum.at(0, complex_shape, dense(complex_shape, 4)))


def transform(length: int, bins: int, window: Array | None) -> Array:
    """[length, 2 * bins]: what each sample of a windowed frame adds to the real and imaginary part of each bin."""
    turns = np.outer(np.arange(length), np.arange(bins)) % length * (-2 * np.pi / length)
    matrix = np.stack([np.cos(turns), np.sin(turns)], axis=-1).reshape(length, 2 * bins)
    if window is not None:
        matrix *= np.asarray(window, np.float64)[:, None]
    return matrix.astype(np.float32)
