"""The places in a model that a message refers to: the node, its inputs, and the diagnostics of onnxlab on the same."""

from collections.abc import Callable, Iterable, Mapping

from onnxlab.analysis.messages.message import Message
from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.printable import printable
from onnxlab.shapes import Fact

_SHOWN = 5
_SUFFIXES = ("_nchwc", "_fused", "_quant", "_cast")
"""What ONNX Runtime puts behind the name of a value when it calls a node by one."""


def places(
    graph: ModelGraph,
    fact: Callable[[int], Fact],
    problems: Iterable[Diagnostic],
    message: Message,
    about: Mapping[str, str],
) -> tuple[str, ...]:
    """Lines on the node that a message names, and on problems like it.

    Args:
        graph: of the model.
        fact: what inference knows of a value, by id.
        problems: all known problems of the model.
        message: the message that is explained.
        about: what the text of the message says.
    """
    node = _node_of(graph, about)
    lines = []
    if node is not None:
        record = graph.nodes[node]
        reads = [f"{graph.values[vid].name}: {fact(vid)}" for vid in record.inputs if vid]
        lines.append(f"{graph.label(record)} ({record.op_type}) reads {', '.join(reads) or 'nothing'}")
    alike = [item for item in problems if (node and item.node == node) or item.code in message.codes]
    for item in alike[:_SHOWN]:
        place = f"{graph.label(graph.nodes[item.node])}: " if item.node in graph.nodes else ""
        lines.append(f"{place}{item}")
    if len(alike) > _SHOWN:
        lines.append(f"… and {len(alike) - _SHOWN} more")
    return tuple(lines)


def _node_of(graph: ModelGraph, about: Mapping[str, str]) -> int | None:
    """The id of a node by its name, or by the name of a value that it makes."""
    name = about.get("node")
    if not name:
        return None
    names = {name, *(name.removesuffix(suffix) for suffix in _SUFFIXES)}
    for node in graph.nodes.values():
        results = {printable(graph.values[vid].name) for vid in node.outputs if vid}
        if printable(node.proto.name) in names or names & results:
            return node.id
    return None
