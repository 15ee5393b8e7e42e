"""A model in words: what `print` and plain-text output show."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING

from onnxlab import dtypes
from onnxlab.graph.edits.constants import is_constant, numbers_of
from onnxlab.graph.handles.handles import Value
from onnxlab.limits import format_bytes
from onnxlab.printable import printable, printable_lines
from onnxlab.render.words import shorten

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph
    from onnxlab.model import Model

MOST = 8
"""Inputs, outputs, operators and problems that are listed one by one."""
MAX_FACT = 100
"""Characters of a type and shape."""


def summary(model: "Model") -> str:
    """Size, inputs and outputs with their shapes, the operators that occur most, what is wrong."""
    with model.graph.lock:
        lines = [headline(model)]
        lines += _listed(
            "input", [f"{value.name}: {shorten(str(model.fact(value.id)), MAX_FACT)}" for value in model.inputs]
        )
        lines += _listed(
            "output",
            [f"{value.name}: {shorten(str(model.fact(value.id)), MAX_FACT)}" for value in _distinct(model.outputs)],
        )
        lines += _operators(model)
        problems = [item for item in model.diagnostics if item.severity != "info"]
        lines += [f"  {problem}" for problem in problems[:MOST]]
        if len(problems) > MOST:
            lines.append(f"  … and {len(problems) - MOST} more problems")
    return printable_lines(lines)


def headline(model: "Model") -> str:
    """One line: name, nodes, functions, parameters, version."""
    graph = model.graph
    nodes = len(graph.main.node_ids)
    inside = len(graph.nodes) - nodes
    parts = [
        f"{nodes:,} node{'' if nodes == 1 else 's'}" + (f" (+ {inside:,} in bodies and functions)" if inside else "")
    ]
    count, nbytes = parameters(model)
    if count:
        parts.append(f"{count:,} parameters ({format_bytes(nbytes)})")
    version = graph.opset_version("")
    parts.append(f"IR {model.proto.ir_version}" + (f", opset {version}" if version else ""))
    return printable(f"{model.name}: {', '.join(parts)}")


def parameters(model: "Model") -> tuple[int, int]:
    """(elements, bytes) of all that is stored, by declared shapes: initializers, and what Constant nodes hold."""
    count = nbytes = 0
    for dims, elem_type in _stored(model.graph):
        elements = prod(max(dim, 0) for dim in dims)
        count += elements
        with suppress(ValueError):  # an element type that does not exist has no size
            nbytes += elements * dtypes.bits(elem_type) // 8
    return count, nbytes


def _stored(graph: "ModelGraph") -> Iterator[tuple[Sequence[int], int]]:
    """The dims and the element type of each initializer and each Constant; nothing is read."""
    for value in graph.values.values():
        if value.initializer is not None:
            tensor = value.initializer
            values = tensor.values if hasattr(tensor, "indices") else tensor
            yield values.dims, values.data_type
    for node in graph.nodes.values():
        for attribute in node.proto.attribute if node.proto.op_type == "Constant" and is_constant(node) else ():
            if attribute.name in ("value", "sparse_value"):
                tensor = attribute.t if attribute.name == "value" else attribute.sparse_tensor.values
                yield tensor.dims, tensor.data_type
            elif (array := numbers_of(attribute)) is not None:
                yield array.shape, dtypes.from_numpy(array.dtype)


def _distinct(values: tuple[Value, ...]) -> list[Value]:
    return list(dict.fromkeys(values))


def _listed(noun: str, entries: list[str]) -> list[str]:
    rest = len(entries) - MOST
    lines = [f"  {noun} {entry}" for entry in entries[:MOST]]
    return [*lines, f"  … and {rest} more {noun}s"] if rest > 0 else lines


def _operators(model: "Model") -> list[str]:
    nodes = model.graph.nodes
    counts = Counter([nodes[node].proto.op_type for node in model.graph.main.node_ids])
    if not counts:
        return []
    most = [f"{count} {name}" for name, count in counts.most_common(MOST)]
    rest = f", and {len(counts) - MOST} more operators" if len(counts) > MOST else ""
    return [f"  operators: {', '.join(most)}{rest}"]
