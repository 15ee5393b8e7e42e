"""Groups that are equal, node by node and wire by wire: the twelve layers of a transformer.

Two groups are equal when their nodes, in topological order, have the same operators and attributes byte for byte, read
the same of each other, and read from outside initializers of the same types and shapes and other values in the same
pattern. Names do not count. Groups that are alike but in another order are not found.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import onnx

from onnxlab.graph.copies import signature
from onnxlab.graph.hierarchy import Hierarchy
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import NodeRecord, ValueRecord


def equal_groups(graph: ModelGraph, hierarchy: Hierarchy) -> list[list[int]]:
    """Ids of the groups that are equal to others, class by class, each in file order. Linear in nodes times depth."""
    members = _members(graph, hierarchy)
    sizes = Counter(map(len, members.values()))
    signatures: dict[int, Hashable] = {}
    classes: dict[Hashable, list[int]] = defaultdict(list)
    for group, nodes in members.items():
        if sizes[len(nodes)] > 1:
            classes[_form(graph, nodes, signatures)].append(group)
    return [groups for groups in classes.values() if len(groups) > 1]


def _members(graph: ModelGraph, hierarchy: Hierarchy) -> dict[int, list[NodeRecord]]:
    """The nodes of every group and of the groups in it, in topological order."""
    members: dict[int, list[NodeRecord]] = defaultdict(list)
    for scope in graph.scopes.values():
        for ident in graph.index.topological(scope):
            group = hierarchy.group_of.get(ident, 0)
            while group in hierarchy.groups:
                members[group].append(graph.nodes[ident])
                group = hierarchy.groups[group].parent
    return members


def _form(graph: ModelGraph, nodes: Sequence[NodeRecord], signatures: dict[int, Hashable]) -> Hashable:
    """What is equal of two groups exactly when they are."""
    inside = {node.id: place for place, node in enumerate(nodes)}
    outside: dict[int, int] = {}
    values = graph.values

    def read(ident: int) -> Hashable:
        if not ident:
            return None
        value = values[ident]
        if value.producer is not None and value.producer[0] in inside:
            return inside[value.producer[0]], value.producer[1]
        if value.initializer is not None:
            return _stored(value)
        return outside.setdefault(ident, len(outside))

    def leaves(ident: int) -> bool:
        value = values.get(ident)
        return value is not None and (value.is_output or any(use not in inside for use, _ in value.uses))

    form = []
    for node in nodes:
        if node.id not in signatures:
            signatures[node.id] = signature(node)
        form.append((signatures[node.id], tuple(map(read, node.inputs)), tuple(map(leaves, node.outputs))))
    return tuple(form)


def _stored(value: ValueRecord) -> Hashable:
    stored = value.initializer
    if isinstance(stored, onnx.TensorProto):
        return "tensor", stored.data_type, tuple(stored.dims)
    return type(stored).__name__
