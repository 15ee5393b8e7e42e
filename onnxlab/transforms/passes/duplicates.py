"""Common subexpressions and equal initializers: one of each remains."""

import hashlib

from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.external_data import is_external
from onnxlab.transforms.rewriting import Rewriting

NODES = "common subexpression"
TENSORS = "equal initializers"
NAMES = (NODES, TENSORS)


def run(rewriting: Rewriting) -> None:
    """Let readers of equal initializers read the first one, then readers of equal nodes' outputs those of the first."""
    _join_initializers(rewriting)
    alike: dict[tuple[object, ...], list[NodeRecord]] = {}
    for node in rewriting.nodes():
        if (
            node.bodies
            or rewriting.is_random(node)
            or not node.outputs
            or (node.op_type == "Constant" and not node.inputs)
        ):
            continue
        before = alike.setdefault((node.scope, node.op_type, node.domain, tuple(node.inputs)), [])
        earlier = next((other for other in before if _key(other) == _key(node)), None)
        if earlier is None:
            before.append(node)
        else:
            _join(rewriting, earlier, node)


def _key(node: NodeRecord) -> tuple[object, ...]:
    """The key that is equal for two nodes of an operator if they compute the same from the same inputs."""
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.proto.attribute)
    return (node.proto.overload, tuple(bool(vid) for vid in node.outputs), *attributes)


def _join(rewriting: Rewriting, earlier: NodeRecord, node: NodeRecord) -> None:
    values = rewriting.graph.values
    if any(values[vid].formal_outputs for vid in node.outputs if vid):
        return
    label, other = rewriting.graph.label(node), rewriting.graph.label(earlier)
    place = rewriting.place(node)
    if not rewriting.allows(NODES, place):
        return
    pairs = [(old, new) for old, new in zip(node.outputs, earlier.outputs, strict=True) if old]
    if all(rewriting.redirect(values[old], values[new]) for old, new in pairs):
        rewriting.remove(node, earlier)
        rewriting.note(NODES, place, label, f"does what {other} does")


def _join_initializers(rewriting: Rewriting) -> None:
    graph = rewriting.graph
    first: dict[tuple[object, ...], ValueRecord] = {}
    for value in [graph.values[vid] for vid in graph.main.names.values()]:
        tensor = value.initializer
        simple = tensor is not None and hasattr(tensor, "raw_data") and not value.is_input and not value.is_output
        if value.name in rewriting.options.protected or not simple or is_external(tensor) or not value.uses:
            continue
        data = tensor.raw_data or tensor.SerializeToString(deterministic=True).replace(tensor.name.encode(), b"", 1)
        key = (tensor.data_type, tuple(tensor.dims), bool(tensor.raw_data), hashlib.sha256(data).digest())
        earlier = first.setdefault(key, value)
        if earlier is not value and rewriting.allows(TENSORS, value.name) and rewriting.redirect(value, earlier):
            rewriting.note(TENSORS, value.name, value.name, f"is {earlier.name} again")
