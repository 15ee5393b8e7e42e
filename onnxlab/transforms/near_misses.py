"""Reasons why rules do not apply at a node: for each of them the deepest point at which it failed, in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query.patterns.matcher import CONDITION, Mismatch
from onnxlab.printable import printable
from onnxlab.shapes import Fact
from onnxlab.transforms.passes.worklist import makers_of
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rewriting import RewriteOptions, Rewriting
from onnxlab.transforms.rules.rule import AnyRule, Procedure, Rule

_DEEPEST = 9  # readers of readers … that are tried as the outermost node of a pattern
_MOST_ROOTS = 24


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The result of a rule at a node.

    Attributes:
        rule: the name of the rule.
        doc: its documentation.
        node: label of the node that the outermost call of the pattern was tried at.
        why: what failed, "" where the rule applies.
        progress: how far the match got, from 0 to 1: the share of the pattern's nodes that matched.
    """

    rule: str
    doc: str
    node: str
    why: str
    progress: float

    def __str__(self) -> str:
        return printable(f"{self.rule}: {self.why or f'applies at {self.node}'}")


def near_misses(
    graph: ModelGraph,
    facts: Mapping[int, Fact],
    node: NodeRecord,
    rules: Iterable[AnyRule],
    domains: frozenset[str] = frozenset(),
) -> list[NearMiss]:
    """The results of each rule that has a node's operator in its pattern; those that apply first, then the nearest."""
    rewriting = Rewriting(graph, facts, lambda names: {}, RewriteOptions(domains=domains))
    roots = [(root, (root.op_type, root.domain), makers_of(rewriting, root)) for root in _roots(graph, node)]
    misses = []
    for rule in rules:
        best: NearMiss | None = None
        for root, key, makers in roots:
            if key not in rule.roots or not (root is node or _may_hold(rule, node, makers)):
                continue
            miss = _tried(rewriting, rule, graph.nodes[root.id])  # taking a try back makes new records of nodes
            if best is None or miss.progress > best.progress or not miss.why:
                best = miss
            if not miss.why:
                break
        if best is not None:
            misses.append(best)
    return sorted(misses, key=lambda miss: (bool(miss.why), -miss.progress))


def _may_hold(rule: AnyRule, node: NodeRecord, makers: frozenset[str]) -> bool:
    """Whether a rule's pattern may hold a node, where its outermost node reads results of these operators."""
    if not isinstance(rule, Rule) or node.op_type not in rule.operators:
        return False
    return any(not makers.isdisjoint(op_types) for way in rule.patterns for op_types in way.makers)


def why_not(
    graph: ModelGraph, facts: Mapping[int, Fact], node: NodeRecord, rule: AnyRule, domains: frozenset[str]
) -> str:
    """The reason why a rule does not apply at a node, in words; "" where it does."""
    rewriting = Rewriting(graph, facts, lambda names: {}, RewriteOptions(domains=domains))
    if (node.op_type, node.domain) not in rule.roots:
        op_types = " or ".join(dict.fromkeys(op_type for op_type, _ in rule.roots))
        return f"{rule.name}: {graph.label(node)} is {node.op_type}, not {op_types}"
    if rewriting.is_protected(node):
        return f"{rule.name}: {graph.label(node)} refers to attributes of its function"
    miss = _tried(rewriting, rule, node)
    return f"{rule.name}: {miss.why}" if miss.why else ""


def _roots(graph: ModelGraph, node: NodeRecord) -> list[NodeRecord]:
    """The node, and what depends on it, nearest first."""
    by_id, level = {node.id: node}, [node]
    for _ in range(_DEEPEST):
        readers = {
            reader for dependent in level for vid in dependent.outputs if vid for reader, _ in graph.values[vid].uses
        }
        level = [graph.nodes[ident] for ident in sorted(readers) if ident not in by_id][:_MOST_ROOTS]
        by_id.update({dependent.id: dependent for dependent in level})
        if not level or len(by_id) > _MOST_ROOTS:
            break
    return list(by_id.values())


def _tried(rewriting: Rewriting, rule: AnyRule, node: NodeRecord) -> NearMiss:
    graph = rewriting.graph
    label = graph.label(node)
    if isinstance(rule, Procedure):
        why = _without_trace(rewriting, rule, node)
        return NearMiss(rule.name, rule.doc, label, why, 0.5 if why else 1.0)
    outcome = rule.find(rewriting, node)
    if isinstance(outcome, Mismatch):
        whole = max(len(pattern.calls()) for pattern in rule.patterns)
        share = 0.95 if outcome.depth >= (CONDITION[0] - 1, 0) else max(outcome.depth[0], 0) / (whole + 1)
        return NearMiss(rule.name, rule.doc, label, outcome.why, share)
    return NearMiss(rule.name, rule.doc, label, _replaced(rewriting, rule, outcome), 1.0)


def _replaced(rewriting: Rewriting, rule: Rule, matched: Match) -> str:
    """The reason why the replacement of a match cannot be made, "" where it can; the graph stays as it was."""
    try:
        with rewriting.graph.edit("why not") as edit:
            edit.take_back()
            return rule.apply(rewriting, matched)[1]
    except EditError as error:
        return str(error)


def _without_trace(rewriting: Rewriting, rule: Procedure, node: NodeRecord) -> str:
    try:
        with rewriting.graph.edit("why not") as edit:
            edit.take_back()
            return rule.act(rewriting, node)
    except EditError as error:
        return str(error)
