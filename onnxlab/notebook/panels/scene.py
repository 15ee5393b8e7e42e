"""A model as the page draws it: the whole as strings and one Int32 buffer, and what each commit changes.

One Scene serves every view of a model. A scene holds only the groups, and updates them when names or connections
change; names and wires are read from the graph, labels from the facts.
"""

from collections.abc import Iterable, Mapping
from itertools import repeat

import numpy as np

from onnxlab import dtypes, schemas
from onnxlab.garbage_collection import AGED, PATIENCE, no_collection
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import DEFAULT_DOMAINS, NodeRecord, Scope, ValueRecord
from onnxlab.graph.index.rows import Numbers, Rows
from onnxlab.graph.protos import ge_dump
from onnxlab.graph.query.groups import Group
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer.live.live_inference import Inference
from onnxlab.notebook.protocol.messages import JSON
from onnxlab.notebook.protocol.records import CONTROL, FORMAL, GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER
from onnxlab.render.categories import category
from onnxlab.shapes.facts import UNKNOWN, Fact, SparseTensorFact, TensorFact


class Scene:
    """The drawable side of one model.

    Args:
        graph: the model.
        inference: the model's facts, read when labels are made.
    """

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = graph
        self._inference = inference
        self._categories: dict[tuple[str, str], str] = {}
        self._generation = -1  # generation of the operators' registry that the categories belong to
        self.hierarchy = Hierarchy()
        self.hierarchy.refresh(graph.index)

    @no_collection(most=PATIENCE * AGED)
    def snapshot(self) -> tuple[JSON, bytes]:
        """The nodes, values, groups and scopes; `protocol.records.Sections` lists those of the buffer."""
        graph = self._graph
        rows = [self._rows(scope) for scope in graph.scopes.values()]
        counts = [len(row.nodes) for row in rows]
        ids = _joined([row.nodes for row in rows])
        homes = [self.hierarchy.homes(scope, row.nodes) for scope, row in zip(graph.scopes, rows, strict=True)]
        names, node_op, first = _spoken(list(map(graph.nodes.__getitem__, ids.tolist())))
        values, is_dump = list(graph.values.values()), graph.is_ge_dump
        label_numbers, labels, types = self._labels(list(graph.values))
        buffer, sections = _pack(
            {
                "node_id": ids,
                "node_op": node_op,
                "node_group": _joined(homes),
                "node_scope": np.repeat(list(graph.scopes), counts),
                **_ragged("in", [row.arities for row in rows], [row.reads for row in rows]),
                **_ragged("out", [row.makes for row in rows], [row.made for row in rows]),
                "value_id": list(graph.values),
                "value_flags": [
                    self._flags(value)
                    if is_dump or value.is_input or value.formal_outputs or value.initializer is not None
                    else 0
                    for value in values
                ],
                "value_scope": [value.scope for value in values],
                "value_label": label_numbers,
            }
        )
        content: JSON = {
            "ops": list(map(op_name, first)),
            "categories": list(map(self._category, first)),
            "n": len(ids),
            "m": len(values),
            "names": names,
            "value_names": front_coded([value.name for value in values]),
            "coded": True,
            "labels": labels,
            "types": types,
            "groups": self.groups(),
            "scopes": self.scopes(),
            "sections": sections,
        }
        return content, buffer

    def _rows(self, scope: Scope) -> Rows:
        """The inputs and outputs of the nodes of a scope, in topological order."""
        index = self._graph.index
        if not scope.backward:
            return index.rows(scope)
        return Rows.of([self._graph.nodes[node] for node in index.topological(scope)])

    def delta(self, touched: Touched, changed_facts: Iterable[int]) -> JSON:
        """Changes of the scene by the last commit: complete records, and labels of the values in `changed_facts`."""
        graph = self._graph
        nodes = dict.fromkeys(sorted(touched.nodes))
        regrouped = False
        renamed = touched.named and any(self.hierarchy.is_stale(graph.nodes[node]) for node in touched.nodes)
        if touched.structure or renamed:
            before, groups = self.hierarchy.group_of, _outline(self.hierarchy.groups.values())
            self.hierarchy.follow(graph.index, touched.nodes, touched.removed_nodes)
            regrouped = groups != _outline(self.hierarchy.groups.values())
            after = self.hierarchy.group_of
            if after is not before:
                nodes.update((node, None) for node, group in after.items() if before.get(node) != group)
        labels = [value for value in changed_facts if value in graph.values]
        return {
            "nodes": [self._node(graph.nodes[node]) for node in nodes],
            "removed_nodes": sorted(touched.removed_nodes),
            "values": [self._value(graph.values[value]) for value in sorted(touched.values)],
            "removed_values": sorted(touched.removed_values),
            "facts": [labels, [self.label(value) for value in labels], [self.type(value) for value in labels]],
            "groups": self.groups() if regrouped else None,
            "scopes": self.scopes() if touched.scopes or touched.removed_scopes else None,
        }

    def label(self, value: int) -> str:
        """The label of a value in the picture: its shape in short, "" where nothing is known."""
        return _label(self._inference.fact(value))

    def type(self, value: int) -> str:
        """The element type of a value, "float32"; "" where none is known."""
        return type_name(self._inference.fact(value))

    def _labels(self, values: list[int]) -> tuple[Numbers, list[str], list[str]]:
        """The place of each value's label and type in the distinct ones, and these; each fact is formatted once."""
        facts = list(map(self._inference.facts.get, values, repeat(UNKNOWN)))
        places: dict[tuple[str, str], int] = {}
        known: dict[int, int] = {}  # by the fact's own id: facts are interned, and hashing one takes longer
        for ident, fact in dict(zip(map(id, facts), facts, strict=True)).items():
            known[ident] = places.setdefault((_label(fact), type_name(fact)), len(places))
        numbers = np.fromiter(map(known.__getitem__, map(id, facts)), np.int64, len(facts))
        return numbers, [label for label, _ in places], [name for _, name in places]

    def groups(self) -> list[JSON]:
        """Every group, inner ones first."""
        return [
            {
                "id": group.id,
                "parent": group.parent,
                "name": group.name,
                "kind": group.kind,
                "scope": group.scope,
                "about": group.about,
                "units": group.units,
            }
            for group in self.hierarchy.groups.values()
        ]

    def scopes(self) -> list[JSON]:
        """The main graph, bodies and functions."""
        return [self._scope(scope) for scope in self._graph.scopes.values()]

    def _scope(self, scope: Scope) -> JSON:
        return {
            "id": scope.id,
            "kind": "subgraph" if scope.kind == "training" else scope.kind,
            "owner": scope.owner,
            "attribute": scope.attribute,
            "name": scope.name,
            "inputs": list(scope.inputs),
            "outputs": list(scope.outputs),
        }

    def _node(self, node: NodeRecord) -> JSON:
        return {
            "id": node.id,
            "name": node.proto.name,
            "op": op_name(node),
            "category": self._category(node),
            "group": self.hierarchy.group_of.get(node.id, 0),
            "scope": node.scope,
            "inputs": list(node.inputs),
            "outputs": list(node.outputs),
        }

    def _value(self, value: ValueRecord) -> JSON:
        return {
            "id": value.id,
            "name": value.name,
            "label": self.label(value.id),
            "dtype": self.type(value.id),
            "flags": self._flags(value),
            "scope": value.scope,
        }

    def _category(self, node: NodeRecord) -> str:
        functions, proto = self._graph.index.functions, node.proto
        if functions and function_key(proto) in functions:
            return category(proto.domain, proto.op_type, True)
        if self._generation != schemas.registry.generation:
            self._categories.clear()
            self._generation = schemas.registry.generation
        key = proto.domain, proto.op_type
        if (name := self._categories.get(key)) is None:
            name = self._categories[key] = category(*key)
        return name

    def _flags(self, value: ValueRecord) -> int:
        flags = INITIALIZER if value.initializer is not None else 0
        main = self._graph.main.id
        if value.is_input and not flags:
            flags |= GRAPH_INPUT if value.scope == main else FORMAL
        for scope, _ in value.formal_outputs:
            flags |= GRAPH_OUTPUT if scope == main else FORMAL
        return flags | (CONTROL if ge_dump.is_control(value.name) and self._graph.is_ge_dump else 0)


def op_name(node: NodeRecord) -> str:
    """The operator's name: "Conv", or "com.microsoft::Gelu" outside of the default domain."""
    domain, op_type = node.proto.domain, node.proto.op_type
    return op_type if domain in DEFAULT_DOMAINS else f"{domain}::{op_type}"


_TYPE_NAMES = {number: dtypes.name(number) for number in dtypes.ELEM_TYPES}


def type_name(fact: Fact) -> str:
    """The element type of a tensor, "float32"; for other values "sequence" or "map"; "" where nothing is known."""
    if isinstance(fact, TensorFact | SparseTensorFact):
        return _TYPE_NAMES.get(fact.elem_type) or (dtypes.name(fact.elem_type) if fact.elem_type else "")
    return str(fact).partition("(")[0].strip("?")


def _outline(groups: Iterable[Group]) -> set[tuple[int, int, str, str]]:
    return {(group.id, group.parent, group.name, group.about) for group in groups}


def _label(fact: Fact) -> str:
    text = fact.label()
    return "" if text == "?" else text


SHARED = "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Digits for the number of characters that a name shares with the one before."""


PIECE = 1 << 15
"""Names that are coded at once, so few that the arrays made of them stay in the processor's caches."""


def _spoken(nodes: list[NodeRecord]) -> tuple[list[str], list[int], list[NodeRecord]]:
    """The names of nodes, coded, the number of each one's operator, and the first node of each operator."""
    names: list[str] = []
    numbers: list[int] = []
    known: dict[tuple[str, str], int] = {}
    first: list[NodeRecord] = []
    for begin in range(0, len(nodes), PIECE):
        piece = nodes[begin : begin + PIECE]
        protos = [node.proto for node in piece]
        names += [proto.name for proto in protos]
        kinds = [(proto.domain, proto.op_type) for proto in protos]
        for kind in dict.fromkeys(kinds):
            if kind not in known:
                known[kind] = len(known)
                first.append(piece[kinds.index(kind)])
        numbers += map(known.__getitem__, kinds)
    return front_coded(names), numbers, first


def front_coded(names: list[str]) -> list[str]:
    """Each name without the prefix that it shares with the one before, after a digit of SHARED for its length."""
    coded_names: list[str] = []
    for begin in range(0, len(names), PIECE):
        before = max(begin - 1, 0)  # the last name of the piece before, which is coded already
        piece = names[before : begin + PIECE]
        coded = [SHARED[common] + name[common:] for name, common in zip(piece, _shared(piece), strict=True)]
        coded_names += coded[begin - before :]
    return coded_names


def _shared(names: list[str]) -> list[int]:
    """The number of characters that each name shares with the one before, a character at a time for all names.

    Characters beyond ASCII are never shared, since JavaScript may count them as two; nor is "?", which replaces them.
    """
    text = np.frombuffer("".join(names).encode("ascii", "replace"), np.uint8)
    shareable = text != ord("?")
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    starts = np.cumsum(lengths) - lengths
    common = np.zeros(len(names), np.int64)
    most = np.minimum(lengths[1:], lengths[:-1]).clip(0, len(SHARED) - 1)
    going = np.arange(1, len(names))
    for column in range(len(SHARED) - 1):
        going = going[most[going - 1] > column]
        current, before = starts[going] + column, starts[going - 1] + column
        going = going[(text[current] == text[before]) & shareable[current]]
        if not going.size:
            break
        common[going] += 1
    return common.tolist()


def _joined(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _ragged(name: str, counts: list[Numbers], entries: list[Numbers]) -> dict[str, Numbers]:
    """Rows of different lengths as two columns: the start of each row, and the entries of all rows."""
    return {f"{name}_ptr": np.cumsum(_joined([np.zeros(1, np.int64), *counts])), f"{name}_val": _joined(entries)}


def _pack(columns: Mapping[str, Numbers | list[int]]) -> tuple[bytes, dict[str, list[int]]]:
    """One little-endian Int32 buffer, and {column: [offset, length]} in units of 4 bytes."""
    sections, offset = {}, 0
    for name, column in columns.items():
        sections[name] = [offset, len(column)]
        offset += len(column)
    return np.concatenate([np.asarray(column, "<i4") for column in columns.values()]).tobytes(), sections
