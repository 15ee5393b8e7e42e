"""Groups that are equal, node by node and wire by wire: the twelve layers of a transformer.

Two groups are equal when all of the following holds:

* Their direct members are equal in topological order: nodes in operators and attributes, byte for byte, and inner
  groups by this definition.
* The wires among their members are the same.
* From outside, both read initializers of the same types and shapes, and other values in the same pattern.
* The same outputs of their members are read outside.

Names do not count. Groups that are equal only in another order are not found.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

import onnx

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.query.block_copies import signature
from onnxlab.graph.query.hierarchy import Hierarchy


@dataclass(slots=True)
class _Block:
    """A group: what is directly inside, and what crosses its border.

    Attributes:
        items: nodes, and inner groups at the place of their first node.
        first, last: numbers of the group and of the last group inside it; outer groups are numbered before inner ones.
        kind: number of the group's class; 0: no other group is equal.
        reads: values from outside that are no initializers, in the order of their first use.
        makes: values that are read outside, in the order of their producers.
    """

    items: list["NodeRecord | int"] = field(default_factory=list)
    size: int = 0
    first: int = 0
    last: int = 0
    kind: int = 0
    reads: list[int] = field(default_factory=list)
    makes: list[int] = field(default_factory=list)


def equal_groups(graph: ModelGraph, hierarchy: Hierarchy) -> list[list[int]]:
    """Ids of the groups that are equal to others, class by class, each in file order. Linear in nodes and edges."""
    return _Comparison(graph, hierarchy).classes()


class _Comparison:
    def __init__(self, graph: ModelGraph, hierarchy: Hierarchy) -> None:
        self._graph = graph
        self._hierarchy = hierarchy
        self._blocks: dict[int, _Block] = {}
        self._signatures: dict[Hashable, int] = {}
        self._collect()
        self._number()

    def classes(self) -> list[list[int]]:
        blocks = self._blocks
        sizes = Counter(block.size for block in blocks.values())
        numbers: dict[Hashable, int] = {}
        for ident in self._hierarchy.groups:  # inner ones first
            block = blocks.get(ident)
            inner = [] if block is None else [blocks[item] for item in block.items if isinstance(item, int)]
            if block is not None and sizes[block.size] > 1 and all(part.kind for part in inner):
                form = self._form(block)
                block.kind = numbers.setdefault(form, len(numbers) + 1)
        by_kind: dict[int, list[int]] = defaultdict(list)
        for ident, block in blocks.items():
            if block.kind:
                by_kind[block.kind].append(ident)
        return [groups for groups in by_kind.values() if len(groups) > 1]

    def _collect(self) -> None:
        """Blocks by group, in file order."""
        groups, group_of = self._hierarchy.groups, self._hierarchy.group_of
        for scope in self._graph.scopes.values():
            for ident in self._graph.index.topological(scope):
                inner = group_of.get(ident, 0)
                if inner not in groups:
                    continue
                self._block(inner).items.append(self._graph.nodes[ident])
                self._blocks[inner].size += 1
        for ident in groups:
            if ident in self._blocks and (parent := groups[ident].parent) in groups:
                self._blocks[parent].size += self._blocks[ident].size

    def _block(self, ident: int) -> _Block:
        """The block of a group, made and put into the one around it where it is new."""
        block = self._blocks.get(ident)
        if block is None:
            parent = self._hierarchy.groups[ident].parent
            around = self._block(parent) if parent in self._hierarchy.groups else None
            block = self._blocks[ident] = _Block()
            if around is not None:
                around.items.append(ident)
        return block

    def _number(self) -> None:
        """Give blocks their places: those inside a block are the ones from `first` to `last`."""
        groups = self._hierarchy.groups
        place = 0
        stack = [ident for ident in reversed(self._blocks) if groups[ident].parent not in groups]
        while stack:
            ident = stack.pop()
            block = self._blocks[ident]
            place += 1
            block.first = block.last = place
            stack.extend(item for item in reversed(block.items) if isinstance(item, int))
        for ident in groups:
            if ident in self._blocks and (parent := groups[ident].parent) in groups:
                around = self._blocks[parent]
                around.last = max(around.last, self._blocks[ident].last)

    def _form(self, block: _Block) -> Hashable:
        """A form that two blocks share exactly when they are equal; finds the values that cross the border."""
        inside: dict[int, int] = {}
        outside: dict[int, int] = {}
        form: list[Hashable] = []
        for item in block.items:
            if isinstance(item, int):
                inner = self._blocks[item]
                kind, reads, makes = -inner.kind, inner.reads, inner.makes
            else:
                kind, reads, makes = self._signature(item), item.inputs, item.outputs
            form.append((kind, *(self._read(value, inside, outside) for value in reads)))
            for value in makes:
                inside[value] = len(inside)
        block.reads = list(outside)
        block.makes = [value for value in inside if value and self._leaves(value, block)]
        form.append(tuple(inside[value] for value in block.makes))
        return tuple(form)

    def _read(self, ident: int, inside: dict[int, int], outside: dict[int, int]) -> Hashable:
        if not ident:
            return None
        if ident in inside:
            return inside[ident]
        value = self._graph.values[ident]
        if value.initializer is not None:
            return _stored(value)
        return ~outside.setdefault(ident, len(outside))

    def _leaves(self, ident: int, block: _Block) -> bool:
        value = self._graph.values[ident]
        if value.is_output:
            return True
        first, last, blocks, group_of = block.first, block.last, self._blocks, self._hierarchy.group_of
        for use, _ in value.uses:
            inner = blocks.get(group_of.get(use, 0))
            if inner is None or not first <= inner.first <= last:
                return True
        return False

    def _signature(self, node: NodeRecord) -> int:
        return self._signatures.setdefault(signature(node), len(self._signatures) + 1)


def _stored(value: ValueRecord) -> Hashable:
    stored = value.initializer
    if isinstance(stored, onnx.TensorProto):
        return "tensor", stored.data_type, tuple(stored.dims)
    return type(stored).__name__
