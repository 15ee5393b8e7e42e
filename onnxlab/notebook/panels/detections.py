"""Boxes that a detector found, read from its output: where they lie in the image that was fed, score and class.

A row is a box, and the number and kind of its columns give its layout. Properties that the columns leave open (corners
or center, x or y first) are guessed from the numbers, and the page can choose another layout.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxlab.notebook.panels import tensor_planes
from onnxlab.notebook.panels.tensor_planes import Array
from onnxlab.notebook.panels.tensor_views import Tensors
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, number

if TYPE_CHECKING:
    from onnxlab.model import Model

LAYOUTS = ("corners", "corners, y first", "center and size")
MOST = 300
"""Boxes that are sent, those of the highest scores."""
MOST_ELEMENTS = 1 << 25
"""Elements of the largest output that is read."""
WIDEST = 512
"""Most columns of a row of boxes."""
PLAIN, WITH_SCORE, WITH_CLASS, WITH_IMAGE = 4, 5, 6, 7
"""Columns: a box alone, with its score, with score and class, and with the number of the image too."""


def boxes(model: "Model", tensors: Tensors, value: int, item: int | None, layout: str | None) -> JSON:
    """Boxes of an item of the batch, in shares of the image's width and height, the highest scores first.

    Raises:
        NameLookupError: there is no such value.
        ProtocolError: the value's numbers are not known or are no boxes, or no input of the run was an image.
    """
    if layout is not None and layout not in LAYOUTS:
        raise ProtocolError("malformed", f"boxes: a layout is one of {', '.join(LAYOUTS)}, got {layout!r}")
    source = tensors.find(value)[1]
    rows = _rows(source, item or 0)
    box, score, label = _columns(rows, _is_transposed(np.shape(source)))
    if score is None:
        score, label = _beside(model, tensors, value, item or 0, len(rows))
    image, width, height = _image(model, tensors)
    layout = layout or ("corners" if _are_corners(box) else "center and size")
    order = np.argsort(-np.nan_to_num(score, nan=-np.inf), kind="stable")[:MOST]
    corners = _corners(box[order], layout)
    finite = corners[np.isfinite(corners)]
    if finite.size and np.abs(finite).max() > 2:  # pixels
        corners = corners / (width, height, width, height)
    return {
        "image": image,
        "layout": layout,
        "layouts": list(LAYOUTS),
        "count": len(rows),
        "boxes": [
            {
                "corners": [number(float(end)) for end in ends],
                "score": number(float(score[at])),
                "label": int(label[at]),
            }
            for at, ends in zip(order, corners, strict=True)
        ],
    }


def _is_transposed(shape: tuple[int, ...]) -> bool:
    """Whether columns are boxes: [84, 8400] of YOLOv8."""
    return len(shape) > 1 and shape[-1] > shape[-2] >= WITH_SCORE and shape[-1] >= 100


def _rows(source: Any, item: int) -> Array:
    """[boxes, columns] as float64."""
    shape = tuple(getattr(source, "shape", ()))
    columns = (shape[-2] if _is_transposed(shape) else shape[-1]) if len(shape) > 1 else 0
    if not PLAIN <= columns <= WIDEST or not 0 < np.prod(shape) <= MOST_ELEMENTS:
        raise ProtocolError("nothing", f"{list(shape)} is no list of boxes: rows of 4 numbers and more are.")
    array = tensor_planes.numbers_of(np.asarray(source))
    while array.ndim > 2:
        array = array[min(item, len(array) - 1)]
    return array.T if _is_transposed(shape) else array


def _columns(rows: Array, transposed: bool) -> tuple[Array, Array | None, Array]:
    """(boxes, scores or None, classes) of rows in any known layout."""
    width, none = rows.shape[1], np.full(len(rows), -1)
    if width == PLAIN:
        return rows, None, none
    if width == WITH_SCORE:
        return rows[:, :4], rows[:, 4], none
    if width == WITH_CLASS and not transposed:
        if _are_classes(rows[:, 0]) and _are_shares(rows[:, 1]):  # PaddleDetection: class, score, box
            return rows[:, 2:], rows[:, 1], _as_classes(rows[:, 0])
        if _are_classes(rows[:, 5]):
            return rows[:, :4], rows[:, 4], _as_classes(rows[:, 5])
    if width == WITH_IMAGE and not transposed and _are_classes(rows[:, 0]):
        if _are_classes(rows[:, 1]) and _are_shares(rows[:, 2]):  # SSD: image, class, score, box
            return rows[:, 3:], rows[:, 2], _as_classes(rows[:, 1])
        if _are_classes(rows[:, 5]):  # YOLOv7 with NMS: image, box, class, score
            return rows[:, 1:5], rows[:, 6], _as_classes(rows[:, 5])
    classes = rows[:, 4:] if transposed else rows[:, 5:] * rows[:, 4:5]  # YOLOv5 has the box's own score first
    safe = np.where(np.isnan(classes), -np.inf, classes)
    return rows[:, :4], safe.max(1), safe.argmax(1)


def _are_classes(column: Array) -> bool:
    return bool(np.all(np.isfinite(column) & (column == np.rint(column)) & (column >= -1)))


def _are_shares(column: Array) -> bool:
    return bool(np.all((column >= 0) & (column <= 1)))


def _as_classes(column: Array) -> Array:
    return np.clip(column, -1, 1 << 31).astype(np.int64)


def _beside(model: "Model", tensors: Tensors, value: int, item: int, count: int) -> tuple[Array, Array]:
    """(scores, classes) of boxes in an output without scores, from another output with as many rows."""
    score, label = np.ones(count), np.full(count, -1)
    for array in _other_outputs(model, tensors, value):
        numbers = array
        while numbers.ndim > 1 and numbers.shape[0] != count:
            numbers = numbers[min(item, len(numbers) - 1)] if len(numbers) else numbers.reshape(-1)
        if numbers.shape[:1] != (count,) or not count:
            continue
        if numbers.ndim == 1 and array.dtype.kind in "iu":
            label = numbers.astype(np.int64)
        elif numbers.ndim == 1 and array.dtype.kind == "f":
            score = numbers.astype(np.float64)
        elif numbers.ndim == 2 and array.dtype.kind == "f" and numbers.shape[1] and numbers.shape[1] != PLAIN:
            score, label = numbers.max(1).astype(np.float64), numbers.argmax(1)
    return score, label


def _other_outputs(model: "Model", tensors: Tensors, value: int) -> Iterator[Array]:
    for output in model.outputs:
        if output.id == value:
            continue
        try:
            array = tensors.find(output.id)[1]
        except ProtocolError:  # not made by the last run
            continue
        if isinstance(array, np.ndarray) and array.ndim and array.size <= MOST_ELEMENTS:
            yield array


def _image(model: "Model", tensors: Tensors) -> tuple[int, int, int]:
    """(id, width, height) of the first input that is an image."""
    for entry in model.inputs:
        try:
            shape = tuple(getattr(tensors.find(entry.id)[1], "shape", ()))
        except ProtocolError:  # not fed
            continue
        if (axes := tensor_planes.image_axes(shape)) is not None:
            return entry.id, shape[axes[2]], shape[axes[1]]
    raise ProtocolError("nothing", "No input of the last run is an image with three channels to draw boxes on.")


def _are_corners(box: Array) -> bool:
    """Whether the last two columns are never less than the first two, as widths and heights would be for some box."""
    known = box[np.isfinite(box).all(1) & (box != 0).any(1)]  # NMS fills up with zeros
    return not len(known) or bool(((known[:, 2:] >= known[:, :2]).all(1)).mean() > 0.99)


def _corners(box: Array, layout: str) -> Array:
    if layout == "center and size":
        center, half = box[:, :2], box[:, 2:] / 2
        return np.concatenate([center - half, center + half], axis=1)
    return box[:, [1, 0, 3, 2]] if layout == "corners, y first" else box
