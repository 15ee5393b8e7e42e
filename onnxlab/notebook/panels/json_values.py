"""Values as JSON for the page: attributes, previews of tensors, summaries of what a run made."""

from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.analysis.statistics import Statistics
from onnxlab.graph.index.records import ValueRecord
from onnxlab.graph.protos.attributes import BodyRef
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.graph.protos.long_lists import LongList
from onnxlab.notebook.protocol import messages
from onnxlab.notebook.protocol.messages import JSON

EDGE = 3
"""Elements of a preview on each side of those left out."""
MAX_ITEMS = 4096
"""Longest list of an attribute that is sent, and edited, in full."""


def on_wire(value: Any) -> Any:
    """An attribute's value as JSON: numbers and texts as they are, tensors as previews, the rest in words."""
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return messages.number(value)
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case np.ndarray() | np.generic():
            return preview(np.asarray(value))
        case LongList():
            return [*map(on_wire, value[: 8 * EDGE]), f"… {len(value):,} items"]
        case list() | tuple():
            return [on_wire(item) for item in value[:MAX_ITEMS]]
        case onnx.TensorProto():
            known = value.data_type in dtypes.ELEM_TYPES
            dtype = dtypes.name(value.data_type) if known else f"element type {value.data_type}"
            return {"dtype": dtype, "shape": list(value.dims), "preview": ""}
        case onnx.GraphProto():
            return f"{value.name or 'graph'}: {len(value.node)} nodes"
        case BodyRef():
            return f"scope {value.scope}"
    return type(value).__name__


def preview(array: "np.ndarray[Any, Any] | LazyTensor") -> JSON:
    """A tensor's type, shape and first and last elements; of a LazyTensor only these elements are read."""
    if isinstance(array, LazyTensor):
        ends = [array.elements(0, EDGE), array.elements(array.size - EDGE, EDGE)]
        first, last = (np.array2string(end, separator=", ").strip("[]") for end in ends)
        text = f"[{first}, ..., {last}]"
    else:
        text = np.array2string(array, threshold=24, edgeitems=EDGE, max_line_width=72, separator=", ")
    return {
        "dtype": dtypes.name(dtypes.from_numpy(array.dtype)),
        "shape": list(array.shape),
        "preview": text if len(text) <= 2000 else text[:2000] + "…",
    }


def statistics_on_wire(value: ValueRecord, summary: Statistics) -> JSON:
    """A summary as the page reads it."""
    histogram = None
    if summary.counts and summary.low is not None and summary.high is not None:
        ends = {"low": messages.number(summary.low), "high": messages.number(summary.high)}
        histogram = {"counts": list(summary.counts), **ends}
    return {
        "id": value.id,
        "name": value.name,
        "dtype": summary.dtype,
        "shape": list(summary.shape),
        "count": summary.count,
        "min": messages.number(summary.minimum),
        "max": messages.number(summary.maximum),
        "mean": messages.number(summary.mean),
        "std": messages.number(summary.std),
        "nan": summary.nan,
        "inf": summary.inf,
        "zeros": summary.zeros,
        "histogram": histogram,
    }
