"""Glow's operators: what its dialect calls Glow_*, with the types of their results in attributes.

`o0_elemKind`, `o0_shape`, `o0_qScale` and `o0_qOffset` describe the first output, `i0_…` the first input. A quantized
tensor holds integers q that stand for (q - offset) * scale. Strides say how Glow lays a tensor out, not what is in it.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import kernel, rule
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import UNKNOWN, Fact, TensorFact

ELEM_KINDS: Final = {
    "float": dtypes.FLOAT, "float16": dtypes.FLOAT16, "bfloat16": dtypes.BFLOAT16, "float64": dtypes.DOUBLE,
    "i8": dtypes.INT8, "ui8": dtypes.UINT8, "i16": dtypes.INT16, "i32": dtypes.INT32,
    "index32": dtypes.INT32, "index64": dtypes.INT64, "bool": dtypes.BOOL,
}  # fmt: skip
"""Element types by Glow's names. Rows fused with their scales (ui8fused) are none of ONNX's types."""

_BINARY: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "Glow_Add": np.add,
    "Glow_Sub": np.subtract,
    "Glow_Mul": np.multiply,
    "Glow_Div": np.divide,
    "Glow_Max": np.maximum,
    "Glow_Min": np.minimum,
    "Glow_MatMul": np.matmul,
}
_UNARY: Final[Mapping[str, Callable[[Array], Array]]] = {
    "Glow_Relu": lambda x: np.maximum(x, 0),
    "Glow_Tanh": np.tanh,
    "Glow_Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def _named(attributes: Mapping[str, Any], place: str, suffix: str) -> Any:
    """An attribute that describes an input or output.

    Raises:
        ValueError: the attribute is missing, so that the type is not known.
    """
    value = attributes.get(f"{place}_{suffix}")
    if value is None:
        raise ValueError(f"the attribute {place}_{suffix} is missing, without which a quantized tensor means nothing")
    return value


def _real(array: Array, attributes: Mapping[str, Any], place: str) -> Array:
    """The values of a tensor: itself, or floats where it is quantized."""
    if array.dtype.kind not in "iu":
        return array
    scale, offset = _named(attributes, place, "qScale"), _named(attributes, place, "qOffset")
    return (array.astype(np.float32) - np.float32(offset)) * np.float32(scale)


def _stored(real: Array, attributes: Mapping[str, Any], place: str = "o0") -> Array:
    """Floats as the output holds them: quantized to the nearest, ties to even, within the limits of its type."""
    kind = attributes.get(f"{place}_elemKind", "float")
    dtype = dtypes.to_numpy(_elem_type(kind))
    if dtype.kind not in "iu":
        return real.astype(dtype, copy=False)
    scale, offset = _named(attributes, place, "qScale"), _named(attributes, place, "qOffset")
    limits = np.iinfo(dtype)
    steps = np.rint(real / np.float32(scale) + np.float32(offset))
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def _elem_type(kind: str) -> int:
    if kind not in ELEM_KINDS:
        raise ValueError(f"elemKind is {kind!r:.60}; expected one of {', '.join(ELEM_KINDS)}")
    return ELEM_KINDS[kind]


def _binary(compute: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def run(a: Array, b: Array, **attributes: Any) -> Array:
        return _stored(compute(_real(a, attributes, "i0"), _real(b, attributes, "i1")), attributes)

    return run


def _unary(compute: Callable[[Array], Array]) -> Callable[..., Array]:
    def run(x: Array, **attributes: Any) -> Array:
        return _stored(compute(_real(x, attributes, "i0")), attributes)

    return run


for _name, _compute in _BINARY.items():
    kernel(_name)(_binary(_compute))
for _name, _only in _UNARY.items():
    kernel(_name)(_unary(_only))


@kernel("Glow_Quantize")
def quantize(x: Array, **attributes: Any) -> Array:
    """Compute integers that stand for floats, by the scale and offset of the output."""
    return _stored(x.astype(np.float32, copy=False), attributes)


@kernel("Glow_Dequantize")
def dequantize(x: Array, **attributes: Any) -> Array:
    """Compute what integers stand for, by the scale and offset that the attributes give the input."""
    return _stored(_real(x, attributes, "i0"), attributes)


@kernel("Glow_TopK")
def top_k(x: Array, *, K: int, **attributes: Any) -> tuple[Array, Array]:  # noqa: N803 - Glow's name
    """Return the K largest elements of each row, largest first, and their places; of equal ones the first."""
    if not 0 <= K <= x.shape[-1]:
        raise ValueError(f"K is {K}; expected 0 to {x.shape[-1]}, the elements of a row")
    places = np.argsort(-x.astype(np.float64 if x.dtype.kind == "f" else np.int64), axis=-1, kind="stable")[..., :K]
    kind = attributes.get("o1_elemKind", "index64")
    return np.take_along_axis(x, places, -1), places.astype(dtypes.to_numpy(_elem_type(kind)))


@kernel("Glow_ChannelwiseQuantizedConvolution")
def channelwise_quantized_convolution(
    x: Array, filters: Array, bias: Array, scales: Array, offsets: Array, bias_scales: Array, bias_offsets: Array,
    *, Kernels: Any, Strides: Any, Pads: Any, Group: int = 1, Dilation: Any = (1, 1), FusedActivation: str = "NONE",  # noqa: N803
    **attributes: Any,
) -> Array:  # fmt: skip
    """Compute a convolution of integers, channels last, with a scale and offset for each filter.

    Shapes: x [N, H, W, C], filters [F, KH, KW, C / Group], bias and the scales and offsets [F]; the result
    [N, OH, OW, F]. Pads are top, left, bottom, right.
    """
    if FusedActivation not in ("NONE", "RELU"):
        raise ValueError(f"FusedActivation is {FusedActivation!r:.60}; expected NONE or RELU")
    weights = (filters.astype(np.float32) - offsets.reshape(-1, 1, 1, 1)) * scales.reshape(-1, 1, 1, 1)
    added = (bias.astype(np.float32) - bias_offsets) * bias_scales if bias.dtype.kind in "iu" else bias
    windows = _windows(_real(x, attributes, "i0"), Kernels, Strides, Pads, Dilation)
    count, height, width, high, wide, channels = windows.shape
    if filters.shape[1:] != (high, wide, channels // Group) or len(filters) % Group or channels % Group:
        raise ValueError(f"filters are {list(filters.shape)}: expected [F, {high}, {wide}, {channels // Group}]")
    grouped = windows.reshape(count, height, width, high, wide, Group, channels // Group)
    parts = weights.reshape(Group, -1, high, wide, channels // Group)
    result = np.einsum("nhwklgc,gfklc->nhwgf", grouped, parts).reshape(count, height, width, -1) + added
    return _stored(np.maximum(result, 0) if FusedActivation == "RELU" else result, attributes)


def _windows(x: Array, kernels: Any, strides: Any, pads: Any, dilation: Any) -> Array:
    """The window of each output, [N, OH, OW, KH, KW, C], as a view of the padded image."""
    if x.ndim != 4 or not all(len(numbers) == 2 for numbers in (kernels, strides, dilation)) or len(pads) != 4:
        raise ValueError("expected an image [N, H, W, C], two Kernels, Strides and Dilations, and four Pads")
    if min(*kernels, *strides, *dilation) < 1 or min(pads) < 0:
        raise ValueError("Kernels, Strides and Dilation are at least 1, Pads at least 0")
    padded = np.pad(x, ((0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)))
    spans = [(size - 1) * step + 1 for size, step in zip(kernels, dilation, strict=True)]
    if any(span > size for span, size in zip(spans, padded.shape[1:3], strict=True)):
        raise ValueError(f"a window of {spans} does not fit into an image of {list(padded.shape[1:3])}")
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, (1, 2))  # [N, H, W, C, spans]
    chosen = views[:, :: strides[0], :: strides[1], :, :: dilation[0], :: dilation[1]]
    return np.moveaxis(chosen, 3, -1)


def _described(ctx: InferContext, attributes: Mapping[str, Any], *inputs: Fact) -> list[Fact]:
    """Facts of the outputs as the attributes of the node describe them."""
    return [_fact(attributes, slot) for slot in range(len(ctx.outputs))]


def _fact(attributes: Mapping[str, Any], slot: int) -> Fact:
    kind, shape = attributes.get(f"o{slot}_elemKind"), attributes.get(f"o{slot}_shape")
    if not isinstance(kind, str) or kind not in ELEM_KINDS:
        return UNKNOWN
    dims = None if shape is None else tuple(int(dim) for dim in shape)
    return TensorFact(ELEM_KINDS[kind], None if dims is None or min(dims, default=0) < 0 else dims)


_OPERATORS: Final = (
    *_BINARY, *_UNARY, "Glow_Quantize", "Glow_Dequantize", "Glow_TopK", "Glow_ChannelwiseQuantizedConvolution",
)  # fmt: skip
for _name in _OPERATORS:
    rule(_name)(_described)

traits(
    "Glow_Add Glow_Sub Glow_Mul Glow_Div Glow_Max Glow_Min",
    OpTraits(category="elementwise", shape="shapes", flops=1),
)
traits("Glow_Relu Glow_Tanh Glow_Sigmoid", OpTraits(category="activation", shape="shapes", flops=1))
traits("Glow_MatMul", OpTraits(category="matrix", shape="shapes", flops=1))
traits("Glow_Quantize Glow_Dequantize", OpTraits(category="quantization", shape="shapes", flops=2))
traits("Glow_TopK", OpTraits(category="reduction", shape="shapes", flops=1))
traits("Glow_ChannelwiseQuantizedConvolution", OpTraits(category="convolution", shape="shapes", flops=1))
