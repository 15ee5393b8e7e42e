"""Views of a value's numbers: stored ones, pinned ones, those of the last run."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import NameLookupError
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.limits import Limits
from onnxlab.notebook.panels import tensor_planes
from onnxlab.notebook.panels.spectrograms import spectrogram
from onnxlab.notebook.panels.tensor_planes import Plane, PlaneImage
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, number

if TYPE_CHECKING:
    from onnxlab.model import Model

KEPT = 1 << 28
"""Bytes of results that a view keeps after a run of some nodes; after a run of the whole model, the model does."""

PICTURES: dict[str, Callable[[Any, Plane, int], PlaneImage]] = {
    "heat": tensor_planes.heat,
    "image": tensor_planes.image,
    "spectrogram": spectrogram,
}
"""Functions that draw a picture, by the picture's name."""


class Tensors:
    """The arrays that one view can show.

    Attributes:
        made: results of the last run of some nodes, by value id.
    """

    def __init__(self, model: "Model") -> None:
        self._model = model
        self.made: dict[int, Any] = {}

    def keep(self, arrays: Mapping[int, Any]) -> None:
        """Keep the results of a run that the model does not keep itself, up to KEPT bytes."""
        left = KEPT
        self.made = {}
        for ident, array in arrays.items():
            size = getattr(array, "nbytes", 0)
            if size <= left and not self._model.runner.store.fresh(ident):
                self.made[ident] = array
                left -= size

    def is_left_unkept(self, value: int) -> bool:
        """Whether the last run did not keep a value, and `compute` can compute it on demand."""
        model = self._model
        with model.graph.lock:
            record, store = model.graph.values.get(value), model.runner.store
            if record is None or record.initializer is not None or value in self.made or value in store.pins:
                return False
            return store.get(value) is None and model.runner.on_demand.can_tell(record.name)

    def compute(self, value: int, deadline: float | None) -> None:
        """Compute a value that the last run did not keep, by the nodes that made it; without the model's lock."""
        if self.is_left_unkept(value):
            self._model.runner.on_demand.value(self._model.graph.values[value].name, Limits(deadline=deadline))

    def find(self, value: int) -> tuple[str, Any]:
        """("stored", "pinned", "run" or "stale", the array or LazyTensor) of a value.

        An array that an edit or a pin made stale is still returned, as "stale", until the next run.

        Raises:
            NameLookupError: there is no such value.
            ProtocolError: the value's elements are not known.
        """
        model = self._model
        record = model.graph.values.get(value)
        if record is None:
            raise NameLookupError(f"value {value} is not in the model any more")
        store = model.runner.store
        if value in store.pins:
            return "pinned", store.pins[value]
        if isinstance(record.initializer, onnx.TensorProto):
            return "stored", model.tensor(value)
        if record.initializer is not None:
            return "stored", model.graph.array(value)
        if value in self.made:
            return "run", self.made[value]
        fresh = store.fresh(value)
        known = store.get(value) if fresh else model.fact(value).value
        if known is None and not fresh and (old := store.get(value)) is not None:
            return "stale", old
        if known is None:
            raise ProtocolError(
                "nothing", f"{record.name} has no numbers yet.", "Run the model, or the node that makes it."
            )
        return "run", known

    def tensor(
        self, value: int, rows: int | None, columns: int | None, at: list[int] | None, top: int | None,
        left: int | None, height: int | None, width: int | None, picture: str | None, pixels: int | None,
    ) -> tuple[JSON, list[bytes]]:  # fmt: skip
        """A part of a plane as cells (`height` × `width` from `top`, `left`), the plane as one of PICTURES.

        Raises:
            NameLookupError, ProtocolError: as `find`, or the value is no tensor.
        """
        origin, source = self.find(value)
        return tensor_part(
            value, origin, source, rows=rows, columns=columns, at=at, top=top, left=left, height=height, width=width,
            picture=picture, pixels=pixels,
        )  # fmt: skip

    def pin(self, value: int, on: bool) -> JSON:
        """Pin a value to its present array for later runs, or let the graph compute it again."""
        model = self._model
        name = model.value(value).name
        if on:
            model.pin(name, np.asarray(self.find(value)[1]))
        elif value in model.runner.store.pins:
            model.unpin(name)
        return {"pinned": self.pinned()}

    def pinned(self) -> list[int]:
        """Ids of the values that are pinned."""
        return [value for value in self._model.runner.store.pins if value in self._model.graph.values]


def tensor_part(
    value: int, origin: str, source: Any, *, rows: int | None, columns: int | None, at: list[int] | None,
    top: int | None, left: int | None, height: int | None, width: int | None, picture: str | None, pixels: int | None,
) -> tuple[JSON, list[bytes]]:  # fmt: skip
    """A part of an array in the page's form: see `Tensors.tensor`.

    Args:
        origin: the source of the array, as `Tensors.find` returns it.

    Raises:
        ProtocolError: the array is no tensor, or has no such axes.
    """
    if not isinstance(source, np.ndarray | np.generic | LazyTensor):
        description = f"a sequence of {len(source)}" if isinstance(source, list | tuple) else type(source).__name__
        raise ProtocolError(
            "nothing", f"This value is no tensor but {description}.", "Look at it in Python: model.values."
        )
    shape = tuple(source.shape)
    plane = tensor_planes.plane(shape, rows, columns, at)
    payload: JSON = {
        "id": value,
        "source": origin,
        "dtype": dtypes.name(dtypes.from_numpy(source.dtype)),
        "shape": list(shape),
        "rows": plane.rows,
        "columns": plane.columns,
        "at": list(plane.at),
        "image": tensor_planes.image_axes(shape) is not None,
        "cells": tensor_planes.cells(source, plane, top or 0, left or 0, height or 0, width or 0) if height else [],
        "picture": None,
    }
    if not picture or not all(shape):
        return payload, []
    if (draw := PICTURES.get(picture)) is None:
        raise ProtocolError("malformed", f"tensor: a picture is one of {', '.join(PICTURES)}, got {picture!r}")
    drawn = draw(source, plane, max(1, min(pixels or tensor_planes.PIXELS, tensor_planes.PIXELS)))
    return {**payload, "picture": _on_wire(drawn)}, [drawn.data]


def _on_wire(picture: PlaneImage) -> JSON:
    size = {"height": picture.height, "width": picture.width, "channels": picture.channels}
    return {**size, "low": number(picture.low), "high": number(picture.high)}
