"""Signal processing: DFT, STFT, window functions, MelWeightMatrix."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import transform_flops
from onnxlab.ops.base.kernel_helpers import Array, normal_axis, widened
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, as_dim, checked_axis, like, scalar
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Expr, Fact, TensorFact, floor_div


def _complex(x: Array) -> Array:
    """The complex numbers in the last axis (real, or real and imaginary part)."""
    if x.shape[-1] not in (1, 2):
        raise ValueError(f"input has shape {x.shape}: the last axis holds real and imaginary part, 1 or 2 numbers")
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _pairs(z: Array, dtype: np.dtype[np.generic]) -> Array:
    """Complex numbers as a last axis of real and imaginary parts."""
    return np.stack([z.real, z.imag], axis=-1).astype(dtype)


def _dft(x: Array, length: Array | None, axis: int, inverse: int, onesided: int) -> Array:
    signal = _complex(x)
    count = signal.shape[axis] if length is None else int(length.reshape(()))
    if onesided and inverse:  # half a spectrum gives a real signal
        count = 2 * (signal.shape[axis] - 1) if length is None else count
        signal = _first(signal, count // 2 + 1, axis)
        return _known(np.fft.irfft(signal, count, axis), signal, axis)[..., None].astype(x.dtype)
    signal = _first(signal, count, axis)
    if onesided:
        if x.shape[-1] == 2:
            raise ValueError("onesided=1 needs a real input: the spectrum of a complex one has no symmetry")
        return _pairs(_known(np.fft.rfft(signal, count, axis), signal, axis), x.dtype)
    spectrum = np.fft.ifft(signal, count, axis) if inverse else np.fft.fft(signal, count, axis)
    return _pairs(_known(spectrum, signal, axis), x.dtype)


def _first(signal: Array, count: int, axis: int) -> Array:
    """The first numbers of a signal that a transform reads."""
    return signal[(*[slice(None)] * axis, slice(max(0, count)))]


def _known(spectra: Array, signal: Array, axis: int) -> Array:
    """The spectra, NaN in both parts where the signal along the axis has one: fast transforms skip products by 0."""
    lost = np.isnan(signal).any(axis=axis, keepdims=True)
    if not lost.any():
        return spectra
    return np.where(lost, np.nan if spectra.dtype.kind == "f" else complex(np.nan, np.nan), spectra)


@kernel("DFT", since=20)
@widened
def dft(
    x: Array, dft_length: Array | None = None, axis: Array | None = None, inverse: int = 0, onesided: int = 0
) -> Array:
    """Discrete Fourier transform of [batch, …, 1 or 2] along `axis` (default the last signal axis)."""
    place = normal_axis(-2 if axis is None else int(axis.reshape(())), x.ndim)
    return _dft(x, dft_length, place, inverse, onesided)


@kernel("DFT", since=17)
@widened
def dft_17(x: Array, dft_length: Array | None = None, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Array:
    """DFT-20 with the axis as an attribute."""
    return _dft(x, dft_length, normal_axis(axis, x.ndim), inverse, onesided)


@kernel("STFT", since=17, context=True)
def stft(
    ctx: RunContext,
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    onesided: int = 1,
) -> Array:
    """Fourier transforms of windowed frames: [batch, samples, 1 or 2] -> [batch, frames, bins, 2]."""
    if frame_length is None and window is None:
        raise ValueError("expected a window or a frame_length: both are absent")
    length = int(frame_length.reshape(())) if frame_length is not None else len(window if window is not None else ())
    step = int(frame_step.reshape(()))
    if step < 1 or length > signal.shape[1]:
        raise ValueError(f"frame_step {step}, frame length {length}: signal has {signal.shape[1]} samples")
    samples = signal[..., 0] if signal.ndim == 3 and signal.shape[-1] == 1 else signal
    if signal.ndim == 3 and signal.shape[-1] == 2:
        samples = _complex(signal)
    frames = sliding_window_view(samples, length, axis=1)[:, ::step]
    bins = length // 2 + 1 if onesided else length
    ctx.reserve(frames.shape[0] * frames.shape[1] * bins * 2 * signal.itemsize, "the spectra")
    windowed = frames if window is None else frames * window
    spectra = np.fft.fft(windowed, axis=-1)[..., :bins] if np.iscomplexobj(samples) or not onesided \
        else np.fft.rfft(windowed, axis=-1)  # fmt: skip
    return _pairs(_known(spectra, windowed, -1), signal.dtype)


def _cosine_window(size: Array, output_datatype: int, periodic: int, *terms: float) -> Array:
    """Σ (−1)^k · terms[k] · cos(2πkn/N), the terms as float32; a symmetric window of one number is 0 ÷ 0."""
    count = int(size.reshape(()))
    with np.errstate(divide="ignore", invalid="ignore"):
        phase = np.arange(count) * (2 * np.pi / np.float64(count if periodic else count - 1))
    total = sum((-1) ** k * float(np.float32(term)) * np.cos(k * phase) for k, term in enumerate(terms))
    return np.asarray(total).astype(dtypes.to_numpy(output_datatype))


@kernel("HannWindow", since=17)
def hann_window(size: Array, output_datatype: int = 1, periodic: int = 1) -> Array:
    """½ − ½·cos."""
    return _cosine_window(size, output_datatype, periodic, 0.5, 0.5)


@kernel("HammingWindow", since=17)
def hamming_window(size: Array, output_datatype: int = 1, periodic: int = 1) -> Array:
    """25/46 − 21/46·cos."""
    return _cosine_window(size, output_datatype, periodic, 25 / 46, 21 / 46)


@kernel("BlackmanWindow", since=17)
def blackman_window(size: Array, output_datatype: int = 1, periodic: int = 1) -> Array:
    """0.42 − 0.5·cos + 0.08·cos of the double."""
    return _cosine_window(size, output_datatype, periodic, _BLACKMAN, 0.5, 0.08)


_BLACKMAN = float(np.float32(0.5) - np.float32(0.08))
"""0.42 as ONNX Runtime computes it: at the ends of the window, only the rounding error of the terms' sum is left."""


@kernel("MelWeightMatrix", since=17)
def mel_weight_matrix(
    num_mel_bins: Array,
    dft_length: Array,
    sample_rate: Array,
    lower_edge_hertz: Array,
    upper_edge_hertz: Array,
    output_datatype: int = 1,
) -> Array:
    """[dft_length // 2 + 1, num_mel_bins]: triangles that are equally wide on the mel scale."""
    bands, length, rate = (int(v.reshape(())) for v in (num_mel_bins, dft_length, sample_rate))
    edges_hertz = np.array([float(v.reshape(())) for v in (lower_edge_hertz, upper_edge_hertz)])
    low, high = 2595 * np.log10(1 + edges_hertz / 700)
    mel = np.arange(bands + 2) * ((high - low) / (bands + 2)) + low
    edges = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) / rate).astype(np.int64)
    weights = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        left, center, right = edges[band : band + 3]
        if center == left:
            weights[center, band] = 1
        else:
            weights[left : center + 1, band] = np.arange(center - left + 1) / (center - left)
        if right > center:
            weights[center:right, band] = (right - np.arange(center, right)) / (right - center)
    return weights.astype(dtypes.to_numpy(output_datatype))


# -- shape rules -------------------------------------------------------------------------------------------------------


def _bins(length: Dim, one_sided: bool) -> Dim:
    return floor_div(length, 2) + 1 if one_sided else length


def _size(fact: MaybeFact) -> Dim | None:
    element = scalar(fact)
    return element if isinstance(element, (int, Expr)) else None


@rule("STFT", since=17)
def stft_rule(
    ctx: InferContext,
    attributes: Attributes,
    signal: Fact,
    step: Fact,
    window: MaybeFact = None,
    length: MaybeFact = None,
) -> Fact:
    """[batch, frames, bins, 2]: as many frames as fit the signal, bins up to half the frame where one-sided."""
    batch = signal.shape[0] if signal.shape else ctx.symbol(0, 0)
    frame = _size(length)
    if frame is None and length is None and window is not None and window.shape:
        frame = window.shape[0]
    hop = _size(step)
    frames: Dim = ctx.symbol(0, 1)
    if signal.shape is not None and len(signal.shape) > 1 and frame is not None and isinstance(hop, int) and hop > 0:
        frames = floor_div(signal.shape[1] - frame, hop) + 1
    one_sided = bool(attributes.get("onesided", 1))
    bins = ctx.symbol(0, 2) if frame is None else _bins(as_dim(ctx, frame, 0, 2), one_sided)
    return like(signal, (batch, frames, bins, 2))


@rule("DFT", since=20)
def dft_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, length: MaybeFact = None, axis: MaybeFact = None
) -> Fact:
    """The input's shape with complex numbers at the end, the transformed axis as long as asked for."""
    chosen = -2 if axis is None else scalar(axis)
    return _dft_rule(ctx, attributes, x, length, chosen)


@rule("DFT", since=17)
def dft_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact, length: MaybeFact = None) -> Fact:
    """DFT-20 with the axis in an attribute."""
    return _dft_rule(ctx, attributes, x, length, attributes.get("axis", 1))


def _dft_rule(ctx: InferContext, attributes: Attributes, x: Fact, length: MaybeFact, axis: Any) -> Fact:
    if x.shape is None:
        return like(x, None)
    if attributes.get("onesided") and attributes.get("inverse"):
        raise NotImplementedError("onnx's own rule decides")
    rank = len(x.shape)
    if not isinstance(axis, int) and length is None and not attributes.get("onesided"):
        return like(x, (*x.shape[:-1], 2))
    if not isinstance(axis, int):
        return like(x, (*(ctx.symbol(0, place) for place in range(rank - 1)), 2))
    axis = checked_axis(axis, rank)
    size = _size(length) if length is not None else x.shape[axis]
    bins = ctx.symbol(0, axis) if size is None else _bins(size, bool(attributes.get("onesided")))
    return like(x, (*x.shape[:axis], bins, *x.shape[axis + 1 : -1], 2))


@rule("HannWindow", since=17)
@rule("HammingWindow", since=17)
@rule("BlackmanWindow", since=17)
def window(ctx: InferContext, attributes: Attributes, size: Fact) -> Fact:
    """A vector of `size` numbers."""
    count = scalar(size)
    dim = as_dim(ctx, count if isinstance(count, (int, Expr)) else None, 0, 0)
    return TensorFact(attributes.get("output_datatype", dtypes.FLOAT), (dim,))


# -- traits ------------------------------------------------------------------------------------------------------------


def _dft_bytes(attributes: Mapping[str, Any], array: Any, length: Any = None, *rest: Any) -> int:
    count = int(array.nbytes) * 2
    return int(count if length is None else count * max(1, int(length.item())))


def _mel_bytes(attributes: Mapping[str, Any], bins: Any, length: Any, *rest: Any) -> int:
    return int((int(length.item()) // 2 + 1) * int(bins.item()) * 8)


def _window_bytes(attributes: Mapping[str, Any], size: Any) -> int:
    return int(size.item()) * 8


traits(
    "BlackmanWindow HammingWindow HannWindow",
    OpTraits(category="constant", shape="elements", flops=1, out_bytes=_window_bytes),
)
traits(
    "DFT", OpTraits(category="signal", shape="sizes", flops=transform_flops, out_bytes=_dft_bytes, layer="transform")
)
traits("MelWeightMatrix", OpTraits(category="constant", shape="elements", flops=1, out_bytes=_mel_bytes))
traits(
    "STFT",
    OpTraits(category="signal", shape="sizes", flops=transform_flops, signature="B T/B T ?|/1|W|/1", layer="transform"),
)
