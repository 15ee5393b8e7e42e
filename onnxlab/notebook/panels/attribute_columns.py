"""Attributes as columns: what every node has for a name, so that the page can search by any of them."""

from typing import Any

import numpy as np
import onnx

from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.graph.protos.long_lists import LongList
from onnxlab.notebook.protocol.messages import JSON

_WINDOWS = frozenset(("kernel_shape", "strides", "dilations", "pads"))

MOST_ITEMS = 16
"""Elements of a list or tensor that are written out; a longer one is searched by these and its length."""


def names(graph: ModelGraph) -> JSON:
    """Names of the attributes that the model's nodes have or that their operators know, and how many nodes set each."""
    count_of: dict[str, int] = {}
    known: set[tuple[str, str]] = set()
    for node in graph.nodes.values():
        for attribute in node.proto.attribute:
            count_of[attribute.name] = count_of.get(attribute.name, 0) + 1
        if (node.domain, node.op_type) not in known:
            known.add((node.domain, node.op_type))
            schema = graph.schema(node)
            for name in schema.attributes if schema else ():
                count_of.setdefault(name, 0)
    ordered = sorted(count_of, key=lambda name: (-count_of[name], name))
    return {"names": ordered, "counts": [count_of[name] for name in ordered]}


def column(graph: ModelGraph, name: str) -> JSON:
    """The texts of an attribute, and the text of each node: of its own value, the default, or its weight's size."""
    texts: dict[str, int] = {}
    nodes: list[int] = []
    places: list[int] = []
    defaults: dict[tuple[str, str], str | None] = {}
    for ident, node in graph.nodes.items():
        attribute_proto = next((attribute for attribute in node.proto.attribute if attribute.name == name), None)
        if attribute_proto is not None:
            written: str | None = _written(attribute_proto)
        elif (implied := _implied(graph, node, name)) is not None:
            written = text(implied)
        else:
            key = node.domain, node.op_type
            if key not in defaults:
                schema = graph.schema(node)
                spec: Any = (schema.attributes if schema else {}).get(name)
                defaults[key] = None if spec is None or spec.default is None else text(spec.default)
            written = defaults[key]
        if written is not None:
            nodes.append(ident)
            places.append(texts.setdefault(written, len(texts)))
    return {"texts": list(texts), "nodes": nodes, "places": places}


def _implied(graph: ModelGraph, node: NodeRecord, name: str) -> list[int] | None:
    """The default of an attribute of an operator with a window: the size of its weight, steps of 1, or no pads."""
    if name not in _WINDOWS:
        return None
    schema = graph.schema(node)
    if schema is None or name not in schema.attributes or "kernel_shape" not in schema.attributes:
        return None
    sizes = _window(graph, node, [parameter.name.lower() for parameter in schema.inputs])
    if sizes is None or name == "kernel_shape":
        return sizes
    return [0] * 2 * len(sizes) if name == "pads" else [1] * len(sizes)


def _window(graph: ModelGraph, node: NodeRecord, inputs: list[str]) -> list[int] | None:
    """The size of a node's window: its kernel_shape, or that of its stored weight; None where neither is known."""
    for attribute in node.proto.attribute:
        if attribute.name == "kernel_shape":
            return list(attribute.ints)
    slot = inputs.index("w") if "w" in inputs else len(node.inputs)
    vid = node.inputs[slot] if slot < len(node.inputs) else 0
    tensor = graph.values[vid].tensor if vid else None
    return None if tensor is None else list(tensor.dims[2:])


def _written(attribute: onnx.AttributeProto) -> str | None:
    """The text of an attribute that a node sets; None for a tensor whose data does not fit its shape or type."""
    try:
        return text(decode(attribute))
    except (LoadError, ValueError, TypeError):  # a diagnostic reports the tensor
        return None


def text(value: Any) -> str:
    """The text by which a value is searched: "3,3" for a list, "1e-05" for a number, a small tensor's elements."""
    if isinstance(value, LazyTensor):
        return _listed(value.elements(0, min(MOST_ITEMS, value.size)).reshape(-1).tolist(), value.size)
    if isinstance(value, np.ndarray):
        return _listed(value.reshape(-1)[:MOST_ITEMS].tolist(), value.size)
    if isinstance(value, LongList | list | tuple):
        return _listed(value[:MOST_ITEMS], len(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(int(value)) if isinstance(value, int) else value if isinstance(value, str) else type(value).__name__


def _listed(items: Any, count: int) -> str:
    written = ",".join(text(item) for item in items)
    return written if count <= MOST_ITEMS else f"{written},… {count}"
