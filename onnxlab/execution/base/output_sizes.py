"""How many bytes a node's outputs will take, asked with the real inputs before the kernel is called.

Only operators whose outputs can dwarf their inputs are listed: by broadcasting, by a product, or because an input or
attribute is a size. All others make at most a few times what they get, and are counted when they are done.

An estimate may be for malformed inputs, which is the kernel's business to refuse: it then raises one of `UNFIT`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil, prod
from typing import Any, Final, TypeAlias

import numpy as np

from onnxlab.ops.onnx.math.einsum_equation import read
from onnxlab.shapes import Fact, TensorFact

Estimate: TypeAlias = Callable[..., int]

UNFIT: Final = (ValueError, IndexError, TypeError, AttributeError, KeyError, ZeroDivisionError, OverflowError)

SMALL: Final = 1 << 20
"""Bytes that no budget needs to be asked for."""

_FEW: Final = 4096  # elements: not worth looking at
_PAIRS: Final = SMALL // 16  # elements of one operand times those of the other: no result of theirs is above SMALL


def is_harmless(inputs: Sequence[Fact], outputs: Sequence[Fact]) -> bool:
    """Whether inference knows that each output is small, or has the shape of an input."""
    shapes = {fact.shape for fact in inputs if fact.shape is not None}
    return all(fact.shape in shapes or is_small(fact) for fact in outputs)


def is_small(fact: Fact) -> bool:
    """Whether inference knows that a value takes at most SMALL bytes."""
    nbytes = fact.nbytes() if isinstance(fact, TensorFact) else None
    return isinstance(nbytes, int) and nbytes <= SMALL


def find(domain: str, op_type: str, since_version: int, attributes: Mapping[str, Any]) -> Estimate | None:
    """The estimate for an operator with these attributes: `estimate(*inputs)` -> bytes; None where none is needed."""
    if (op_type, since_version) in _AS_ATTRIBUTES and not domain:
        return None
    if op_type in _BROADCASTING and not domain:
        return broadcast
    made = _OF_OTHER_DOMAINS.get((domain, op_type)) if domain else _ESTIMATES.get(op_type)
    return None if made is None else partial(made, attributes)


def broadcast(*inputs: Any) -> int:
    """Elementwise operators: the common shape, in the widest type that goes in; 0 where two are too small to matter."""
    if len(inputs) == 2:
        a, b = inputs
        if a.size * b.size <= _PAIRS:
            return 0
        if b.ndim <= a.ndim and a.shape[a.ndim - b.ndim :] == b.shape:
            return int(a.size) * max(int(a.itemsize), int(b.itemsize))
    return int(np.broadcast(*inputs).size) * max([int(array.itemsize) for array in inputs])


def _matmul(attributes: Mapping[str, Any], a: Any, b: Any, *rest: Any) -> int:
    if a.size * b.size <= _PAIRS:
        return 0
    columns = b.shape[-1] if b.ndim > 1 else 1
    if b.ndim < 3 or a.shape[:-2] == b.shape[:-2]:
        return int(a.size // a.shape[-1] * columns * max(a.itemsize, 4))
    rows = a.shape[-2] if a.ndim > 1 else 1
    return int(prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * rows * columns * max(a.itemsize, 4))


_WIDEST: Final = 16  # bytes of an element


def is_of_pairs(estimate: Estimate | None) -> bool:
    """Whether no output has more elements than two inputs have pairs, so that `fits` may be asked first."""
    return estimate is broadcast or getattr(estimate, "func", None) is _matmul


def fits(inputs: tuple[Any, ...], room: int) -> bool:
    """Whether so many bytes are enough for whatever is made of pairs of elements of two inputs."""
    try:
        a, b = inputs
        return bool(a.size * b.size * _WIDEST <= room)
    except AttributeError:  # no arrays: the kernel says what is wrong with them
        return False


def _gemm(attributes: Mapping[str, Any], a: Any, b: Any, *rest: Any) -> int:
    rows = a.shape[1 if attributes.get("transA") else 0]
    columns = b.shape[0 if attributes.get("transB") else 1]
    return int(rows * columns * a.itemsize)


def _expand(attributes: Mapping[str, Any], array: Any, shape: Any) -> int:
    return int(prod(np.broadcast_shapes(array.shape, tuple(map(int, shape)))) * int(array.itemsize))


def _tile(attributes: Mapping[str, Any], array: Any, repeats: Any, *rest: Any) -> int:
    return int(prod(map(int, repeats)) * int(array.nbytes))


def _range(attributes: Mapping[str, Any], start: Any, limit: Any, delta: Any) -> int:
    count = ceil((limit.item() - start.item()) / delta.item())
    return int(max(0, count) * int(start.itemsize))


def _constant_of_shape(attributes: Mapping[str, Any], shape: Any) -> int:
    value = attributes.get("value")
    return int(prod(map(int, shape)) * (value.itemsize if value is not None else 4))


def _one_hot(attributes: Mapping[str, Any], indices: Any, depth: Any, values: Any) -> int:
    return int(indices.size) * int(depth.reshape(-1)[0]) * int(values.itemsize)


def _random(attributes: Mapping[str, Any]) -> int:
    return int(prod(attributes["shape"]) * 8)


def _multinomial(attributes: Mapping[str, Any], array: Any) -> int:
    return int(array.shape[0]) * int(attributes.get("sample_size", 1)) * 8


def _window(attributes: Mapping[str, Any], size: Any) -> int:
    return int(size.item()) * 8


def _pad(attributes: Mapping[str, Any], array: Any, pads: Any = None, value: Any = None, axes: Any = None) -> int:
    amounts = [int(pad) for pad in (attributes.get("pads", ()) if pads is None else pads.reshape(-1))]
    half = len(amounts) // 2
    shape = list(array.shape)
    for number, axis in enumerate(range(len(shape)) if axes is None else map(int, axes)):
        shape[axis] += amounts[number] + amounts[half + number]
    return int(prod(shape) * int(array.itemsize))


def _resize(attributes: Mapping[str, Any], array: Any, *rest: Any) -> int:
    """Resize from opset 11 on has roi, scales and sizes; opset 10 and Upsample have scales."""
    scales = rest[0] if len(rest) == 1 else rest[1] if len(rest) > 1 else attributes.get("scales")
    sizes = rest[2] if len(rest) > 2 else None
    axes = attributes.get("axes") or range(array.ndim)
    shape = [float(size) for size in array.shape]
    for number, axis in enumerate(axes):
        if sizes is not None and len(sizes):
            shape[axis] = float(sizes[number])
        elif scales is not None and len(scales):
            shape[axis] *= float(scales[number])
    return int(prod(shape)) * int(array.itemsize)


def _gather(attributes: Mapping[str, Any], array: Any, indices: Any) -> int:
    if not array.size:
        return 0
    return int(indices.size) * int(array.nbytes // array.shape[attributes.get("axis", 0)])


def _gather_nd(attributes: Mapping[str, Any], array: Any, indices: Any) -> int:
    taken = indices.shape[-1] + attributes.get("batch_dims", 0)
    return int(prod(indices.shape[:-1]) * prod(array.shape[taken:]) * int(array.itemsize))


def _conv(attributes: Mapping[str, Any], array: Any, weight: Any, *rest: Any) -> int:
    """An upper bound: as with a kernel of one element."""
    pads, strides = attributes.get("pads") or (), attributes.get("strides") or ()
    rank = array.ndim - 2
    spatial = [
        (size + (pads[axis] + pads[rank + axis] if pads else 0)) // (strides[axis] if strides else 1) + 1
        for axis, size in enumerate(array.shape[2:])
    ]
    return int(array.shape[0] * weight.shape[0] * prod(spatial) * array.itemsize)


def _conv_transpose(attributes: Mapping[str, Any], array: Any, weight: Any, *rest: Any) -> int:
    given = attributes.get("output_shape")
    strides = attributes.get("strides") or [1] * (array.ndim - 2)
    dilations = attributes.get("dilations") or [1] * (array.ndim - 2)
    extra = attributes.get("output_padding") or [0] * (array.ndim - 2)
    spatial = list(given)[-(array.ndim - 2) :] if given else [
        strides[axis] * (size - 1) + extra[axis] + (weight.shape[2 + axis] - 1) * dilations[axis] + 1
        for axis, size in enumerate(array.shape[2:])
    ]  # fmt: skip
    channels = weight.shape[1] * attributes.get("group", 1)
    return int(array.shape[0] * channels * prod(spatial) * array.itemsize)


def _einsum(attributes: Mapping[str, Any], *inputs: Any) -> int:
    """Letters of the output, explicit or implied; an ellipsis counts as what it covers in the largest input."""
    equation = read(attributes["equation"])
    sizes: dict[str, int] = {}
    covered = 1
    for term, array in zip(equation.operands, inputs, strict=True):
        start = len(term.head)
        hidden = array.ndim - len(term.letters)
        covered = max(covered, prod(array.shape[start : start + hidden]))
        shape = array.shape[:start] + array.shape[start + hidden :]
        for letter, size in zip(term.letters, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    count = prod(sizes[letter] for letter in equation.output.letters)
    return int(count * (covered if equation.output.dots else 1) * max(int(array.itemsize) for array in inputs))


def _affine_grid(attributes: Mapping[str, Any], theta: Any, size: Any) -> int:
    dims = [int(dim) for dim in size]
    return int(dims[0] * prod(dims[2:]) * (len(dims) - 2) * int(theta.itemsize))


def _roi_align(attributes: Mapping[str, Any], array: Any, rois: Any, *rest: Any) -> int:
    spatial = attributes.get("output_height", 1) * attributes.get("output_width", 1)
    return int(rois.shape[0] * array.shape[1] * spatial * array.itemsize)


def _crop_pad(attributes: Mapping[str, Any], array: Any, shape: Any) -> int:
    dims = list(array.shape)
    for axis, size in zip(attributes.get("axes") or range(array.ndim), shape, strict=True):
        dims[axis] = int(size)
    return int(prod(dims) * int(array.itemsize))


def _col2im(attributes: Mapping[str, Any], array: Any, image: Any, block: Any) -> int:
    channels = array.shape[1] // prod(map(int, block))
    return int(array.shape[0] * channels * prod(map(int, image)) * array.itemsize)


def _mel(attributes: Mapping[str, Any], bins: Any, length: Any, *rest: Any) -> int:
    return int((int(length.item()) // 2 + 1) * int(bins.item()) * 8)


def _quantized_matmul(attributes: Mapping[str, Any], a: Any, a_scale: Any, a_zero: Any, b: Any, *rest: Any) -> int:
    return _matmul(attributes, a, b)


def _dft(attributes: Mapping[str, Any], array: Any, length: Any = None, *rest: Any) -> int:
    count = int(array.nbytes) * 2
    return int(count if length is None else count * max(1, int(length.item())))


def _grid_sample(attributes: Mapping[str, Any], array: Any, grid: Any) -> int:
    return int(array.shape[1] * (grid.size // max(1, grid.shape[-1])) * array.itemsize)


def _qlinear_conv(attributes: Mapping[str, Any], x: Any, x_scale: Any, x_zero: Any, w: Any, *rest: Any) -> int:
    return _conv(attributes, x, w)


def _recurrent(attributes: Mapping[str, Any], x: Any, w: Any, r: Any, *rest: Any) -> int:
    """All hidden states; r is [directions, gates · hidden, hidden]."""
    return int(x.shape[0] * x.shape[1] * r.shape[0] * r.shape[2] * max(4, x.itemsize))


def _max_roi_pool(attributes: Mapping[str, Any], array: Any, rois: Any) -> int:
    return int(len(rois) * array.shape[1] * prod(attributes["pooled_shape"]) * array.itemsize)


def _deform_conv(attributes: Mapping[str, Any], array: Any, weight: Any, offset: Any, *rest: Any) -> int:
    return int(len(array) * len(weight) * prod(offset.shape[2:]) * array.itemsize)


def _feature_extractor(attributes: Mapping[str, Any], x: Any, y: Any) -> int:
    return int(x.size // max(1, x.shape[-1]) * y.size * x.itemsize)


def _one_hot_encoder(attributes: Mapping[str, Any], x: Any) -> int:
    categories = attributes.get("cats_int64s") or attributes.get("cats_strings") or ()
    return int(x.size * len(categories) * 4)


def _tf_idf(attributes: Mapping[str, Any], x: Any) -> int:
    rows = len(x) if x.ndim > 1 else 1
    return int(rows * (max(attributes.get("ngram_indexes") or (0,)) + 1) * 4)


def _string_split(attributes: Mapping[str, Any], x: Any) -> int:
    """As many parts for every string as the longest one has characters at most."""
    return int(x.size * (max(map(len, map(str, x.reshape(-1))), default=0) + 1) * 8) if x.size >= _FEW else 0


def _c_dist(attributes: Mapping[str, Any], a: Any, b: Any) -> int:
    return int(len(a) * len(b) * a.itemsize)


def _unfold(attributes: Mapping[str, Any], x: Any) -> int:
    axis, size = attributes.get("dim", -1), attributes["size"]
    count = (x.shape[axis] - size) // attributes.get("step", 1) + 1
    return int(x.nbytes // max(1, x.shape[axis]) * max(0, count) * size)


def _swapped_matmul(attributes: Mapping[str, Any], a: Any, b: Any) -> int:
    left = a.swapaxes(-1, -2) if attributes.get("transA") else a
    return _matmul(attributes, left, b.swapaxes(-1, -2) if attributes.get("transB") else b)


_BROADCASTING: Final = frozenset((
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater",
    "GreaterOrEqual", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Mean", "Sum", "Where",
    "PRelu", "StringConcat",
))  # fmt: skip
_ESTIMATES: Final[dict[str, Estimate]] = {
    "AffineGrid": _affine_grid,
    "BlackmanWindow": _window,
    "CenterCropPad": _crop_pad,
    "Col2Im": _col2im,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _conv_transpose,
    "DFT": _dft,
    "DeformConv": _deform_conv,
    "Einsum": _einsum,
    "Expand": _expand,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "GridSample": _grid_sample,
    "HammingWindow": _window,
    "HannWindow": _window,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "MaxRoiPool": _max_roi_pool,
    "MelWeightMatrix": _mel,
    "Multinomial": _multinomial,
    "OneHot": _one_hot,
    "Pad": _pad,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _quantized_matmul,
    "RNN": _recurrent,
    "RandomNormal": _random,
    "RandomUniform": _random,
    "Range": _range,
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "StringSplit": _string_split,
    "TfIdfVectorizer": _tf_idf,
    "Tile": _tile,
    "Upsample": _resize,
}
_OF_OTHER_DOMAINS: Final[dict[tuple[str, str], Estimate]] = {
    ("ai.onnx.ml", "ArrayFeatureExtractor"): _feature_extractor,
    ("ai.onnx.ml", "OneHotEncoder"): _one_hot_encoder,
    ("com.microsoft", "CDist"): _c_dist,
    ("com.microsoft", "FusedMatMul"): _swapped_matmul,
    ("com.microsoft", "GridSample"): _grid_sample,
    ("com.microsoft", "TransposeMatMul"): _swapped_matmul,
    ("com.microsoft", "UnfoldTensor"): _unfold,
}
# Versions whose inputs mean something else: sizes as attributes that say "axis" and "tiles", or with an explicit
# `broadcast` attribute that aligns shapes elsewhere.
_AS_ATTRIBUTES: Final = frozenset(
    [("Tile", 1), *((name, since) for name in _BROADCASTING | {"Gemm"} for since in (1, 6))]
)
