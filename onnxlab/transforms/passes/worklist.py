"""Rules over the graph: each node is tried with the rules of its operator, and again after one applied near it."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query.patterns.matcher import Mismatch
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.rule import AnyRule, Procedure, Root, Rule

DEEPEST = 6
"""Readers of readers … of a changed node that are tried again at least, for procedures."""

MOST_NEAR = 64
"""Nodes near a changed one that are tried again."""

MOST_PER_NODE = 20
"""Applications for each node of the graph after which rules that keep each other busy are stopped."""


class Rules:
    """Rules by the operator of the node that they are tried at.

    Attributes:
        deepest: how many levels of readers, readers of readers … of a changed node are tried again: as many as the
            deepest pattern has.
    """

    def __init__(self, rules: Iterable[AnyRule]) -> None:
        self._by_root: dict[Root, list[AnyRule]] = {}
        self.deepest = DEEPEST
        for rule in rules:
            depths = [pattern.depth() for pattern in rule.patterns] if isinstance(rule, Rule) else []
            self.deepest = max([self.deepest, *depths])
            for root in rule.roots:
                self._by_root.setdefault(root, []).append(rule)

    def of(self, node: NodeRecord) -> Sequence[AnyRule]:
        """The rules of a node's operator, in their order."""
        return self._by_root.get((node.op_type, node.domain), ())


def run(rewriting: Rewriting, rules: Rules) -> None:
    """Apply rules until none matches; a cap stops those that never end, and says which they are."""
    graph, chosen = rewriting.graph, rewriting.options.nodes
    waiting = deque(node.id for node in rewriting.nodes() if rules.of(node))
    queued = set(waiting)
    start = len(rewriting.applied)
    most = start + 100 + MOST_PER_NODE * len(waiting)
    while waiting:
        ident = waiting.popleft()
        queued.discard(ident)
        node = graph.nodes.get(ident)
        if node is None or rewriting.is_protected(node) or (chosen is not None and ident not in chosen):
            continue
        for near in _tried(rewriting, node, rules.of(node), rules.deepest):
            if near not in queued and near in graph.nodes:
                queued.add(near)
                waiting.append(near)
        if len(rewriting.applied) >= most:
            counts = Counter(application.rule for application in rewriting.applied[-200:])
            busy = ", ".join(sorted(rule for rule, count in counts.items() if count > 10))
            reason = f"still applied after {len(rewriting.applied) - start} times, and were stopped"
            rewriting.note("rules", "", busy, reason)
            return


def makers_of(rewriting: Rewriting, node: NodeRecord) -> frozenset[str]:
    """Operators of the nodes that make what a node reads."""
    graph = rewriting.graph
    values, nodes = graph.values, graph.nodes
    return frozenset([
        nodes[values[vid].producers[0][0]].op_type for vid in node.inputs if vid and values[vid].producers
    ])  # fmt: skip


def _tried(rewriting: Rewriting, node: NodeRecord, rules: Sequence[AnyRule], deepest: int) -> list[int]:
    """Apply the first rule that fits; returns the nodes to try again, none where no rule fits."""
    if not node.outputs or rewriting.is_malformed(node):  # of an invalid model: rules read the first output
        return []
    ident, makers = node.id, makers_of(rewriting, node) if rules else frozenset()
    nodes, values = rewriting.graph.nodes, rewriting.graph.values
    readers = [reader for vid in node.outputs if vid for reader, _ in values[vid].uses]
    for rule in rules:
        if isinstance(rule, Procedure):
            if not rule.act(rewriting, node):
                return [ident, *_near(rewriting, [nodes[reader] for reader in readers if reader in nodes], deepest)]
            continue
        match = rule.find(rewriting, node, makers)
        if isinstance(match, Mismatch):
            continue
        inputs = [matched_node for matched_node in match.nodes[1:] if matched_node.id in rewriting.graph.nodes]
        sources = [vid for matched_node in match.nodes for vid in matched_node.inputs if vid]
        inserted, why = rule.apply(rewriting, match)
        node = rewriting.graph.nodes.get(ident, node)  # a new record where something was taken back
        if not why:
            values = rewriting.graph.values
            before_it = [values[vid].producers[0][0] for vid in sources if vid in values and values[vid].producers]
            beside = [rewriting.graph.nodes[ident] for ident in before_it if ident in rewriting.graph.nodes]
            return [*before_it, *_near(rewriting, [*inserted, *inputs, *beside], deepest)]
    return []


def _near(rewriting: Rewriting, nodes: Iterable[NodeRecord], deepest: int) -> list[int]:
    """Nodes, what reads them, and so on, nearest first."""
    graph = rewriting.graph
    level = [node.id for node in nodes if node.id in graph.nodes]
    reached = dict.fromkeys(level)
    for _ in range(deepest):
        values = [vid for ident in level for vid in graph.nodes[ident].outputs if vid]
        level = [reader for vid in values for reader, _ in graph.values[vid].uses if reader not in reached]
        level = list(dict.fromkeys(level))[:MOST_NEAR]
        reached.update(dict.fromkeys(level))
        if not level or len(reached) > MOST_NEAR:
            break
    return list(reached)
