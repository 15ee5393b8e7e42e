"""Pairs of nodes, values and scopes of two models that are the same one, found by structure.

In this order: what is unique after rounds of refinement, deepest first, each pair growing along wires and becoming an
anchor of the next rounds; names with the same operator, once structure has shown that names are kept; what nothing
tells apart, in order; then the same without attributes and elements; then across nodes that came, went or became
another operator; and last values by who reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxlab.analysis.diff.borders import borders, settle_fused
from onnxlab.analysis.diff.bridging import bridge, follow_stored
from onnxlab.analysis.diff.growing import Growth
from onnxlab.analysis.diff.refinement import DEPTHS, Refinement, groups, unique_pairs
from onnxlab.analysis.diff.vertices import INPUT, NODE, OUTER, Vertices
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope
from onnxlab.graph.index.tables import function_key

_ROUNDS = 40
"""How often anchors are spread, at most."""

_KEPT = 0.8
"""Part of the pairs found by structure whose names have to be equal before names are trusted."""

_MOSTLY_KEPT = 0.5
"""The same limit while values that were fused away still count as renamed."""

Fingerprints = tuple[Mapping[int, bytes], Mapping[int, bytes]]
"""By value id of each model, what stands for the elements that it had in a run."""


@dataclass(slots=True)
class GraphMatching:
    """Pairs of two models: ids of the one to those of the other.

    Attributes:
        names_agree: whether names are kept from one model to the other.
        partners: the values of the second model that have a partner.
    """

    nodes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    scopes: dict[int, int] = field(default_factory=dict)
    names_agree: bool = True
    partners: set[int] = field(default_factory=set)


def match(model: ModelGraph, other: ModelGraph, fingerprints: Fingerprints | None = None) -> GraphMatching:
    """Find what two models have in common.

    Args:
        fingerprints: fingerprints of values, which break ties that structure cannot.
    """
    matching = GraphMatching()
    roots, other_roots = (
        {root: scope for scope in graph.scopes.values() if (root := _root_key(scope))} for graph in (model, other)
    )
    pairs = [(scope, other_roots[key]) for key, scope in roots.items() if key in other_roots]
    while pairs:
        scopes = pairs.pop(0)
        before = set(matching.nodes)
        _match_scopes((model, other), scopes, matching, fingerprints)
        for ident in [ident for ident in matching.nodes if ident not in before]:
            ours, theirs = model.nodes[ident].bodies, other.nodes[matching.nodes[ident]].bodies
            for name in (name for name in ours if name in theirs):
                inner = zip(ours[name], theirs[name], strict=False)
                pairs += [(model.scopes[body], other.scopes[like]) for body, like in inner]
    return matching


def _root_key(scope: Scope) -> tuple[str, ...] | None:
    """The identity of a main graph, function or training graph in every model; None for a body."""
    if scope.kind == "function":
        return function_key(scope.proto)
    return None if scope.kind == "subgraph" else (scope.kind, scope.attribute)


def _match_scopes(
    graphs: tuple[ModelGraph, ModelGraph],
    scopes: tuple[Scope, Scope],
    matching: GraphMatching,
    prints: Fingerprints | None,
) -> None:
    matching.scopes[scopes[0].id] = scopes[1].id
    vertices = Vertices(graphs, scopes)
    growth = Growth(vertices)
    _enter_known(vertices, growth, scopes, matching)
    if scopes[0].kind == "graph":
        _enter_inputs(graphs, vertices, growth)
    refinement = Refinement(vertices, growth.partner)
    names = _Names(graphs, vertices, growth)
    _spread(vertices, growth, refinement, names)
    if prints is not None:
        _by_fingerprint(vertices, growth, prints)
    _ties(vertices, growth, refinement, DEPTHS[0])
    growth.loosen()
    _spread(vertices, growth, refinement, names)
    while bridge(vertices, growth) or follow_stored(vertices, growth):
        _spread(vertices, growth, refinement, names)
    _ties(vertices, growth, refinement, DEPTHS[2])
    borders(vertices, growth)
    bridge(vertices, growth)
    borders(vertices, growth)
    settle_fused(vertices, growth, names.both)
    bridge(vertices, growth)
    if scopes[0].kind == "graph":
        matching.names_agree = names.agree
    _store(graphs, vertices, growth, matching)


def _enter_known(vertices: Vertices, growth: Growth, scopes: tuple[Scope, Scope], matching: GraphMatching) -> None:
    """Enter the values that were matched outside; formals of bodies and functions go by their place."""
    ours, theirs = vertices.index
    for vid, vertex in list(ours.items()):
        if vertices.kinds[vertex] == OUTER and (other := theirs.get(matching.values.get(vid, 0), -1)) >= 0:
            growth.force(vertex, other)
    if scopes[0].kind != "graph" and len(scopes[0].inputs) == len(scopes[1].inputs):
        for vid, its in zip(scopes[0].inputs, scopes[1].inputs, strict=True):
            growth.force(ours[vid], theirs[its])


def _enter_inputs(graphs: tuple[ModelGraph, ModelGraph], vertices: Vertices, growth: Growth) -> None:
    """Enter inputs of the main graphs that have equal names: who runs a model knows its inputs by these."""
    ours, theirs = (
        {graph.values[vid].name: at for vid, at in index.items() if vertices.kinds[at] == INPUT}
        for graph, index in zip(graphs, vertices.index, strict=True)
    )
    for name, vertex in ours.items():
        if name in theirs:
            growth.force(vertex, theirs[name])


def _spread(vertices: Vertices, growth: Growth, refinement: Refinement, names: _Names) -> None:
    """Match what is unique, deepest first, until nothing new is."""
    for _ in range(_ROUNDS):
        entered = 0
        for open_, numbers in refinement.levels("strict" if growth.is_strict else "loose"):
            for vertex, other in unique_pairs(open_, numbers, vertices.first):
                entered += growth.enter(vertex, other)
            if entered:
                break
        entered += names.enter()
        if not entered:
            return


def _ties(vertices: Vertices, growth: Growth, refinement: Refinement, depth: int) -> None:
    """Match what is told apart by nothing, in the order of the files; each match grows before the next is made."""
    labels = "strict" if growth.is_strict else "loose"
    for _ in range(_ROUNDS):
        entered = 0
        ((open_, numbers),) = refinement.levels(labels, (depth,))
        for ours, theirs in groups(open_, numbers, vertices.first):
            for vertex, other in zip(ours, theirs, strict=True):
                if growth.is_strict or growth.is_grounded(vertex, other):
                    entered += growth.enter(vertex, other)
        if not entered:
            return


def _by_fingerprint(vertices: Vertices, growth: Growth, prints: Fingerprints) -> None:
    """Match values that had the same elements in a run, where no other value of either model had them."""
    seen: dict[bytes, list[int]] = {}
    for side in (0, 1):
        for vid, at in vertices.index[side].items():
            if growth.partner[at] < 0 and vertices.kinds[at] != NODE and vid in prints[side]:
                seen.setdefault(prints[side][vid], []).append(at)
    for pair in seen.values():
        if len(pair) == 2 and pair[0] < vertices.first <= pair[1]:
            growth.enter(*pair)


class _Names:
    """Matches by name, once structure has shown that names are kept."""

    def __init__(self, graphs: tuple[ModelGraph, ModelGraph], vertices: Vertices, growth: Growth) -> None:
        self._vertices, self._growth = vertices, growth
        self.agree = False
        self._pending: list[tuple[int, int]] | None = None
        names = [_value_names(graph, index) for graph, index in zip(graphs, vertices.index, strict=True)]
        self._common = {at: names[1][name] for name, at in names[0].items() if name in names[1]}

    @property
    def both(self) -> dict[int, int]:
        """Values of either model with equal names, one to the other; empty where most names are not kept."""
        if self._share() < _MOSTLY_KEPT:
            return {}
        return {**self._common, **{other: at for at, other in self._common.items()}}

    def _share(self) -> float:
        """The part of the matched values whose names are equal."""
        partner, vertices = self._growth.partner, self._vertices
        matched = [at for at in range(vertices.first) if partner[at] >= 0 and vertices.kinds[at] != NODE]
        return sum(partner[at] == self._common.get(at) for at in matched) / len(matched) if matched else 1.0

    def enter(self) -> int:
        """Match values with equal names, and the nodes that make them where the operator is the same."""
        partner, common = self._growth.partner, self._common
        if not common:
            return 0
        self.agree = self._share() >= _KEPT
        if not self.agree:
            return 0
        return sum(
            self._enter(vertex, other) for vertex, other in common.items() if partner[vertex] < 0 > partner[other]
        )

    def _enter(self, vertex: int, other: int) -> bool:
        vertices, labels = self._vertices, self._vertices.loose
        (maker, slot), (its, where) = vertices.maker[vertex], vertices.maker[other]
        if maker < 0 or its < 0:
            return vertices.kinds[vertex] == vertices.kinds[other] and self._growth.force(vertex, other)
        if slot != where or labels[maker] != labels[its]:
            return False
        return self._growth.force(maker, its) or self._growth.force(vertex, other)


def _value_names(graph: ModelGraph, index: Mapping[int, int]) -> dict[str, int]:
    return {graph.values[vid].name: at for vid, at in index.items() if vid in graph.values}


def _store(graphs: tuple[ModelGraph, ModelGraph], vertices: Vertices, growth: Growth, matching: GraphMatching) -> None:
    """Write the pairs down by ids; Constants go with what they make."""
    ids, values = vertices.ids, (graphs[0].values, graphs[1].values)
    for vertex in range(vertices.first):
        other = growth.partner[vertex]
        if other < 0:
            continue
        if vertices.kinds[vertex] == NODE:
            matching.nodes[ids[vertex]] = ids[other]
            continue
        if vertices.kinds[vertex] == OUTER and (ids[vertex] in matching.values or ids[other] in matching.partners):
            continue  # a body may read another value than before: each keeps the partner that it has outside
        matching.values[ids[vertex]] = ids[other]
        matching.partners.add(ids[other])
        producer, its = values[0][ids[vertex]].producer, values[1][ids[other]].producer
        if (
            producer
            and its
            and vertices.maker[vertex][0] < 0 > vertices.maker[other][0]
            and vertices.kinds[vertex] != OUTER
        ):
            matching.nodes[producer[0]] = its[0]
