"""Vision: GridSample, AffineGrid, RoiAlign, MaxRoiPool, NonMaxSuppression, DeformConv, Col2Im, ImageDecoder."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import convolution_flops
from onnxlab.ops.base.kernel_helpers import Array, at, integers, widened
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    as_dim,
    dims_text,
    items,
    known_integers,
    like,
    must_equal,
    unknown_shape,
)
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import MAX_RANK, Dim, Fact, FactError, TensorFact


def _reflect(x: Array, low: Array | float, high: Array | float) -> Array:
    """Coordinates mirrored at both borders until they lie between them."""
    span = high - low
    offset = np.abs(x - low) if span > 0 else np.zeros_like(x)
    turns, rest = np.divmod(offset, span) if span > 0 else (np.zeros_like(x), offset)
    return np.where(turns % 2 == 0, rest + low, high - rest)


def _sample(image: Array, places: Sequence[Array], padding_mode: str, align_corners: bool) -> Array:
    """image [C, D1, …] at integer coordinates, each [points]: [C, points]; outside by the padding mode."""
    inside = np.ones(places[0].shape, bool)
    index = []
    for place, size in zip(places, image.shape[1:], strict=True):
        if padding_mode == "reflection":
            low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
            place = _reflect(place, low, high)
        elif padding_mode == "zeros":
            inside &= (place >= 0) & (place <= size - 1)
        index.append(np.clip(place, 0, size - 1).astype(np.intp))
    values = image[at(slice(None), *index)]
    return np.where(inside, values, image.dtype.type(0))


def _weights(fraction: Array, mode: str) -> list[tuple[int, Array]]:
    """(offset from the floor, weight) of the taps along one axis."""
    if mode == "linear":
        return [(0, 1 - fraction), (1, fraction)]
    a = -0.75
    taps = []
    for offset in range(-1, 3):
        d = np.abs(fraction - offset)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        taps.append((offset, np.where(d <= 1, near, far)))
    return taps


@kernel("GridSample", since=16)
@widened
def grid_sample(
    x: Array, grid: Array, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Array:
    """X [N, C, D1, …] at the points of grid [N, o1, …, rank], coordinates from −1 to 1, the last axis first."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("linear", "nearest", "cubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"mode is {mode!r}, padding_mode {padding_mode!r}: GridSample has none such")
    output = np.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for image, points, result in zip(x, grid, output, strict=True):
        flat = points.reshape(-1, points.shape[-1])[:, ::-1]  # grid is (…, y, x) backwards
        result[...] = _grid_sample_image(image, flat, bool(align_corners), mode, padding_mode).reshape(result.shape)
    return output


def _grid_sample_image(image: Array, points: Array, align_corners: bool, mode: str, padding_mode: str) -> Array:
    places = []
    for coordinate, size in zip(points.T, image.shape[1:], strict=True):
        place = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
        if mode != "cubic" and padding_mode == "border":
            place = np.clip(place, 0, size - 1)
        elif mode != "cubic" and padding_mode == "reflection":
            place = _reflect(place, *((0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)))
        places.append(place)
    if mode == "nearest":
        return _sample(image, [np.rint(place) for place in places], padding_mode, align_corners)
    floors = [np.floor(place) for place in places]
    lines = [_weights(place - floor, mode) for place, floor in zip(places, floors, strict=True)]
    total = np.zeros((len(image), len(points)), image.dtype)
    for taps in product(*lines):
        weight = prod((tap[1] for tap in taps[1:]), start=taps[0][1])
        corner = [floor + tap[0] for floor, tap in zip(floors, taps, strict=True)]
        total += _sample(image, corner, padding_mode, align_corners) * weight.astype(image.dtype)
    return total


@kernel("AffineGrid", since=20)
@widened
def affine_grid(theta: Array, size: Array, align_corners: int = 0) -> Array:
    """[N, D1, …, rank]: the positions of size [N, C, D1, …], from −1 to 1, moved by theta [N, rank, rank + 1]."""
    batch, _, *spatial = integers(size)
    if theta.shape != (batch, len(spatial), len(spatial) + 1):
        expected = [batch, len(spatial), len(spatial) + 1]
        raise ValueError(f"theta has shape {theta.shape}: expected {expected} for size {list(integers(size))}")
    lines = []
    for dim in spatial:
        line = np.linspace(-1, 1, dim) if align_corners else (2 * np.arange(dim) + 1) / dim - 1
        lines.append(line.astype(theta.dtype))
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*mesh[::-1], np.ones_like(mesh[0])], axis=-1).reshape(-1, len(spatial) + 1)
    return np.matmul(points, theta.swapaxes(1, 2)).reshape(len(theta), *spatial, len(spatial))


def _bilinear(image: Array, y: Array, x: Array) -> list[tuple[Array, Array]]:
    """(values [C, points], weights [points]) of the four neighbors; points beyond −1 or the size count as 0."""
    height, width = image.shape[1:]
    outside = (y < -1) | (y > height) | (x < -1) | (x > width)
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = np.floor(y).astype(np.intp), np.floor(x).astype(np.intp)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    dy, dx = y - top, x - left
    pairs = []
    for row, col, weight in (
        (top, left, (1 - dy) * (1 - dx)),
        (top, right, (1 - dy) * dx),
        (bottom, left, dy * (1 - dx)),
        (bottom, right, dy * dx),
    ):
        pairs.append((image[:, row, col], np.where(outside, 0, weight).astype(image.dtype)))
    return pairs


@kernel("RoiAlign", since=16, context=True)
def roi_align(
    ctx: RunContext,
    x: Array,
    rois: Array,
    batch_indices: Array,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """[rois, C, output_height, output_width]: the mean (or maximum) of bilinear samples in the cells of each region."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    half = coordinate_transformation_mode == "half_pixel"
    output = np.zeros((len(rois), x.shape[1], output_height, output_width), wide.dtype)
    for number, (roi, batch) in enumerate(zip(rois.astype(wide.dtype), integers(batch_indices), strict=True)):
        ctx.check()
        left, top, right, bottom = roi * wide.dtype.type(spatial_scale) - (0.5 if half else 0)
        width, height = right - left, bottom - top
        if not half:  # a region is at least one pixel large
            width, height = max(width, 1), max(height, 1)
        cell = height / output_height, width / output_width
        rows = sampling_ratio or int(np.ceil(cell[0]))
        columns = sampling_ratio or int(np.ceil(cell[1]))
        if rows < 1 or columns < 1:
            continue
        y = top + (np.arange(output_height * rows) + 0.5) * (cell[0] / rows)
        across = left + (np.arange(output_width * columns) + 0.5) * (cell[1] / columns)
        grid = np.repeat(y, len(across)), np.tile(across, len(y))
        parts = [values * weight for values, weight in _bilinear(wide[batch], *grid)]
        shape = (x.shape[1], output_height, rows, output_width, columns)
        if mode == "avg":
            output[number] = sum(parts[1:], parts[0]).reshape(shape).mean(axis=(2, 4))
        else:  # as in ONNX Runtime the maximum is over the four weighted neighbors, not over their sums
            output[number] = np.maximum.reduce(parts).reshape(shape).max(axis=(2, 4))
    return output.astype(x.dtype, copy=False)


@kernel("RoiAlign", since=10, context=True)
def roi_align_10(ctx: RunContext, x: Array, rois: Array, batch_indices: Array, **attributes: Any) -> Array:
    """RoiAlign-16 without the shift by half a pixel."""
    return roi_align(ctx, x, rois, batch_indices, coordinate_transformation_mode="output_half_pixel", **attributes)


@kernel("MaxRoiPool")
def max_roi_pool(x: Array, rois: Array, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Array:
    """[rois, C, h, w]: maxima over the cells of regions (batch, x1, y1, x2, y2), whose borders are rounded."""
    height, width = pooled_shape
    output = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    for number, roi in enumerate(rois):
        image = x[int(roi[0])]
        left, top, right, bottom = (int(np.floor(v * spatial_scale + 0.5)) for v in roi[1:].tolist())
        size = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for row, column in np.ndindex(height, width):
            y0, y1 = (
                min(max(v + top, 0), image.shape[1]) for v in (int(row * size[0]), int(np.ceil((row + 1) * size[0])))
            )
            x0, x1 = (
                min(max(v + left, 0), image.shape[2])
                for v in (int(column * size[1]), int(np.ceil((column + 1) * size[1])))
            )
            if y1 > y0 and x1 > x0:
                output[number, :, row, column] = image[:, y0:y1, x0:x1].max(axis=(1, 2))
    return output


def _scalar(x: Array | None, otherwise: float) -> float:
    """The element of an optional input; one without elements counts as absent."""
    return otherwise if x is None or not x.size else float(x.reshape(-1)[0])


@kernel("NonMaxSuppression", since=10, context=True)
def non_max_suppression(
    ctx: RunContext,
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    center_point_box: int = 0,
) -> Array:
    """int64[selected, 3] of (batch, class, box): the best boxes, without those that overlap a better one too much.

    boxes [N, boxes, 4] are two corners (y, x), or center and size (x, y, w, h); scores [N, classes, boxes].
    """
    most = int(_scalar(max_output_boxes_per_class, 0))
    overlap = _scalar(iou_threshold, 0)
    if not 0 <= overlap <= 1:
        raise ValueError(f"iou_threshold is {overlap}: expected 0 to 1")
    least = _scalar(score_threshold, -np.inf)
    selected = []
    for batch, corners in enumerate(_corners(boxes, center_point_box)):
        area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        for number, score in enumerate(scores[batch]):
            order = np.argsort(-score, kind="stable")
            if least > -np.inf:
                order = order[score[order] > least]
            count = 0
            while order.size and count < most:
                ctx.check()
                best, order = order[0], order[1:]
                selected.append((batch, number, int(best)))
                count += 1
                order = order[_overlap(corners, area, best, order) <= overlap]
    return np.array(selected, np.int64).reshape(-1, 3)


def _corners(boxes: Array, center_point_box: int) -> Array:
    """[N, boxes, 4] as lower and upper corner."""
    if center_point_box:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([middle - half, middle + half], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _overlap(corners: Array, area: Array, best: int, others: Array) -> Array:
    """Intersection over union of one box with others."""
    low = np.maximum(corners[best, :2], corners[others, :2])
    high = np.minimum(corners[best, 2:], corners[others, 2:])
    shared = np.maximum(high - low, 0).prod(axis=1)
    union = area[best] + area[others] - shared
    return np.where((area[best] > 0) & (area[others] > 0) & (union > 0), shared / np.where(union > 0, union, 1), 0)


@kernel("Col2Im", since=18, context=True)
def col2im(
    ctx: RunContext,
    x: Array,
    image_shape: Array,
    block_shape: Array,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """[N, C, D1, …] of columns [N, C·Πblock, positions]: blocks added up where they overlap."""
    dims, block = integers(image_shape), integers(block_shape)
    rank = len(dims)
    spread, steps = tuple(dilations or (1,) * rank), tuple(strides or (1,) * rank)
    amounts = tuple(pads or (0,) * (2 * rank))
    padded = tuple(dim + amounts[axis] + amounts[axis + rank] for axis, dim in enumerate(dims))
    counts = tuple((dim - (k - 1) * d - 1) // s + 1 for dim, k, d, s in zip(padded, block, spread, steps, strict=True))
    channels = x.shape[1] // prod(block)
    ctx.reserve(x.itemsize * len(x) * channels * prod(padded), "the image")
    columns = x.reshape(len(x), channels, *block, *counts)
    image = np.zeros((len(x), channels, *padded), x.dtype)
    for place in np.ndindex(*block):
        where = [
            slice(p * d, p * d + (c - 1) * s + 1, s) for p, d, c, s in zip(place, spread, counts, steps, strict=True)
        ]
        image[at(..., *where)] += columns[at(slice(None), slice(None), *place)]
    return image[at(..., *(slice(a, a + dim) for a, dim in zip(amounts, dims, strict=False)))]


@kernel("DeformConv", since=19, context=True)
def deform_conv(
    ctx: RunContext,
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Conv of images whose taps are moved by `offset` [N, groups·kh·kw·2, oh, ow] and weighted by `mask`."""
    (kh, kw), spread, steps = w.shape[2:], tuple(dilations or (1, 1)), tuple(strides or (1, 1))
    amounts = tuple(pads or (0,) * 4)
    out = offset.shape[2:]
    count, channels = len(x), x.shape[1]
    shifts = offset.reshape(count, offset_group, kh * kw, 2, *out)
    factors = None if mask is None else mask.reshape(count, offset_group, kh * kw, *out)
    per_group = channels // offset_group
    rows = np.arange(out[0])[:, None] * steps[0] - amounts[0]
    columns = np.arange(out[1]) * steps[1] - amounts[1]
    y = np.empty((count, len(w), *out), x.dtype)
    weights = w.reshape(group, len(w) // group, -1)
    ctx.reserve(x.itemsize * channels * kh * kw * prod(out), "the moved patches")
    for number in range(count):
        patches = np.empty((channels, kh * kw, *out), x.dtype)
        for part, tap in product(range(offset_group), range(kh * kw)):
            ctx.check()
            place = divmod(tap, kw)
            at_y = rows + place[0] * spread[0] + shifts[number, part, tap, 0]
            at_x = columns + place[1] * spread[1] + shifts[number, part, tap, 1]
            image = x[number, part * per_group : (part + 1) * per_group]
            moved = _bilinear_zeros(image, at_y, at_x)
            if factors is not None:
                moved = moved * factors[number, part, tap]
            patches[part * per_group : (part + 1) * per_group, tap] = moved
        y[number] = np.matmul(weights, patches.reshape(group, -1, prod(out))).reshape(len(w), *out)
    return y if b is None else y + b[:, None, None]


def _bilinear_zeros(image: Array, y: Array, x: Array) -> Array:
    """image [C, H, W] at fractional places, zeros around it."""
    top, left = np.floor(y), np.floor(x)
    dy, dx = y - top, x - left
    total = np.zeros((len(image), *y.shape), image.dtype)
    for row, col, weight in (
        (top, left, (1 - dy) * (1 - dx)),
        (top, left + 1, (1 - dy) * dx),
        (top + 1, left, dy * (1 - dx)),
        (top + 1, left + 1, dy * dx),
    ):
        total += _sample(image, [row, col], "zeros", False) * weight.astype(image.dtype)
    return total


_DECODERS: dict[str, Callable[[Array], Array]] = {
    "RGB": lambda image: image,
    "BGR": lambda image: image[..., ::-1],
}


@kernel("ImageDecoder", since=20, context=True)
def image_decoder(ctx: RunContext, encoded: Array, pixel_format: str = "RGB") -> Array:
    """uint8[H, W, C] of the bytes of an image file; needs Pillow.

    Raises:
        ValueError: the bytes are no image that Pillow reads, or Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ValueError("ImageDecoder needs Pillow, which is not installed: pip install pillow") from None
    try:
        picture = Image.open(io.BytesIO(encoded.tobytes()))
        ctx.reserve(4 * picture.width * picture.height, "the decoded image")
        pixels = np.asarray(picture.convert("L" if pixel_format == "Grayscale" else "RGB"))
    except OSError as error:
        raise ValueError(f"encoded_stream is no image that Pillow reads: {error}") from None
    if pixel_format == "Grayscale":
        return pixels[..., None]
    if pixel_format not in _DECODERS:
        raise ValueError(f"pixel_format is {pixel_format!r}: expected RGB, BGR or Grayscale")
    return _DECODERS[pixel_format](pixels)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("NonMaxSuppression", since=10)
def non_max_suppression_rule(ctx: InferContext, attributes: Attributes, *inputs: MaybeFact) -> Fact:
    """[how many, 3]: batch, class and box of each one chosen."""
    return TensorFact(dtypes.INT64, (ctx.symbol(0, 0), 3))


@rule("GridSample", since=16)
def grid_sample_rule(ctx: InferContext, attributes: Attributes, x: Fact, grid: Fact) -> Fact:
    """[N, C, …] with the spatial dims of the grid."""
    if x.shape is None or grid.shape is None:
        return like(x, None if x.shape is None else (*x.shape[:2], *unknown_shape(ctx, len(x.shape))[2:]))
    return like(x, (*x.shape[:2], *grid.shape[1:-1]))


@rule("Col2Im", since=18)
def col2im_rule(ctx: InferContext, attributes: Attributes, x: Fact, image_shape: Fact, block_shape: Fact) -> Fact:
    """[N, channels without those of a block, image…]."""
    if x.shape is not None and len(x.shape) != 3:
        raise FactError("its columns have another rank", code="rank-mismatch", expected="3", found=dims_text(x.shape))
    rank = _spatial_rank(attributes, image_shape, block_shape)
    if not isinstance(rank, int) or rank > MAX_RANK:
        return like(x, None)
    sizes, block = items(image_shape) or [None] * rank, known_integers(block_shape)
    if block is not None and any(size <= 0 for size in block):
        raise FactError("its block_shape has no positive sizes", expected="sizes from 1 on", found=str(block))
    batch, channels = (x.shape or (None, None))[:2]
    if not isinstance(channels, int) or block is None:
        channels = None
    elif channels % (of_block := prod(block)):
        text = f"{channels} channels are no whole number of blocks of {of_block}"
        raise FactError(text, expected=f"a multiple of {of_block}", found=str(channels))
    else:
        channels //= prod(block)
    return like(x, tuple(as_dim(ctx, dim, 0, axis) for axis, dim in enumerate((batch, channels, *sizes))))


def _spatial_rank(attributes: Attributes, *lists: Fact) -> Dim | None:
    """The length that all lists of a Col2Im have. Raises FactError where they have different ones."""
    names = ("image_shape", "block_shape", "dilations", "strides", "half the pads")
    lengths: list[Dim | None] = []
    for name, fact in zip(names, lists, strict=False):
        if fact.shape is not None and len(fact.shape) != 1:
            shape_text = dims_text(fact.shape)
            raise FactError(f"its {name} is no list", code="rank-mismatch", expected="1 dim", found=shape_text)
        lengths.append(None if fact.shape is None else fact.shape[0])
    lengths += [len(attributes[name]) if attributes.get(name) else None for name in ("dilations", "strides")]
    pads = attributes.get("pads")
    lengths.append(len(pads) // 2 if pads else None)
    stated = [(name, length) for name, length in zip(names, lengths, strict=True) if length is not None]
    for name, length in stated[1:]:
        must_equal(stated[0][1], length, f"its {stated[0][0]} and {name} have different lengths")
    return next((length for _, length in stated if isinstance(length, int)), stated[0][1] if stated else None)


# -- traits ------------------------------------------------------------------------------------------------------------


def _affine_grid_bytes(attributes: Mapping[str, Any], theta: Any, size: Any) -> int:
    dims = [int(dim) for dim in size]
    return int(dims[0] * prod(dims[2:]) * (len(dims) - 2) * int(theta.itemsize))


def _col2im_bytes(attributes: Mapping[str, Any], array: Any, image: Any, block: Any) -> int:
    channels = array.shape[1] // prod(map(int, block))
    return int(array.shape[0] * channels * prod(map(int, image)) * array.itemsize)


def _deform_conv_bytes(attributes: Mapping[str, Any], array: Any, weight: Any, offset: Any, *rest: Any) -> int:
    return int(len(array) * len(weight) * prod(offset.shape[2:]) * array.itemsize)


def _max_roi_pool_bytes(attributes: Mapping[str, Any], array: Any, rois: Any) -> int:
    return int(len(rois) * array.shape[1] * prod(attributes["pooled_shape"]) * array.itemsize)


def _roi_align_bytes(attributes: Mapping[str, Any], array: Any, rois: Any, *rest: Any) -> int:
    spatial = attributes.get("output_height", 1) * attributes.get("output_width", 1)
    return int(rois.shape[0] * array.shape[1] * spatial * array.itemsize)


def grid_sample_bytes(attributes: Mapping[str, Any], array: Any, grid: Any) -> int:
    """Bytes of the output of GridSample."""
    return int(array.shape[1] * (grid.size // max(1, grid.shape[-1])) * array.itemsize)


traits(
    "AffineGrid",
    OpTraits(category="pooling", shape="sizes", flops=1, out_bytes=_affine_grid_bytes, signature="N 2 3/N 3 4|4/5"),
)
traits(
    "Col2Im", OpTraits(category="convolution", shape="sizes", flops=1, out_bytes=_col2im_bytes, signature="N ? L|D|D")
)
traits(
    "DeformConv",
    OpTraits(
        category="convolution",
        shape="shapes",
        flops=convolution_flops,
        out_bytes=_deform_conv_bytes,
        signature="N C H W|M ? kH kW|N ? oH oW|M|N ? oH oW",
        layer="convolution",
    ),
)
traits(
    "GridSample",
    OpTraits(
        value_versions={"mode": {"bilinear": (16, 19), "bicubic": (16, 19), "linear": (20, None), "cubic": (20, None)}},
        category="pooling",
        shape="shapes",
        flops=1,
        elements="none",
        out_bytes=grid_sample_bytes,
        signature="N C ...|N ...",
    ),
)
traits("ImageDecoder", OpTraits(category="signal", shape="data", flops=1))
traits(
    "MaxRoiPool",
    OpTraits(category="pooling", shape="shapes", flops=1, out_bytes=_max_roi_pool_bytes, signature="N C H W|R 5"),
)
traits(
    "NonMaxSuppression",
    OpTraits(category="elementwise", shape="data", flops=1, elements="none", signature="B S 4|B C S"),
)
traits(
    "RoiAlign",
    OpTraits(
        category="pooling",
        shape="shapes",
        flops=1,
        elements="none",
        out_bytes=_roi_align_bytes,
        signature="N C H W|R 4|R",
    ),
)
