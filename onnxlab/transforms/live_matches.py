"""Matches of rules, kept up to date over edits: only what is near an edit is matched again."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer import Inference
from onnxlab.transforms.passes import worklist
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rewriting import RewriteOptions, Rewriting
from onnxlab.transforms.rules.rule import AnyRule, Rule

MOST_DIRTY: Final = 4096
"""Nodes near an edit above which everything is matched anew."""

MOST_STALE: Final = 256
"""Nodes near changed facts above which rules that read facts are matched again at all nodes where they did."""


class LiveMatches:
    """The places at which rules match; rules that are written in Python as procedures are left out.

    Args:
        graph: the model.
        inference: its facts.
        rules: the rules to match.
        domains: domains of operators that replacements may bring.
    """

    def __init__(
        self, graph: ModelGraph, inference: Inference, rules: Iterable[AnyRule], domains: frozenset[str] = frozenset()
    ) -> None:
        self._graph = graph
        self._inference = inference
        self._rules = worklist.Rules([rule for rule in rules if isinstance(rule, Rule) and rule.brings <= domains])
        self._options = RewriteOptions(domains=domains)
        self._places: dict[int, set[str]] = {}
        self._asking: dict[int, list[Rule]] = {}  # rules whose match read facts, by node
        self._dirty: set[int] | None = None  # None: all of them
        self._stale: set[int] = set()  # nodes near which nothing but facts changed

    @property
    def counts(self) -> dict[str, int]:
        """The number of matches of each rule that has some, the most frequent first.

        Examples:
            >>> model.matches().counts
            {'conv_batch_normalization': 5}
        """
        places = self._up_to_date().values()
        return dict(Counter(rule for rules in places for rule in sorted(rules)).most_common())

    def of(self, rule: str) -> list[Node]:
        """List the nodes that the outermost call of a rule's pattern matches, in the order of their ids.

        Args:
            rule: the name of the rule.

        Returns:
            list[Node]: handles; empty where the rule matches nowhere.

        Examples:
            >>> model.matches().of("conv_batch_normalization")[0]
            <Node '/stem/bn/BatchNormalization': BatchNormalization>
        """
        places = self._up_to_date()
        return [Node(self._graph, ident) for ident in sorted(places) if rule in places[ident]]

    def follow(self, touched: Touched, facts: Mapping[int, Any]) -> None:
        """Note what an edit touched; the nodes are matched again when matches are read."""
        if self._dirty is None:
            return
        if touched.opsets or touched.functions:
            self._dirty = None
            return
        for ident in touched.removed_nodes:
            self._places.pop(ident, None)
            self._asking.pop(ident, None)
        self._dirty |= touched.nodes | self._near(touched.values)
        self._stale |= self._near(facts)
        if len(self._dirty) > MOST_DIRTY:
            self._dirty = None

    def _near(self, values: Iterable[int]) -> set[int]:
        """Nodes that make or read values."""
        near: set[int] = set()
        for vid in values:
            value = self._graph.values.get(vid)
            if value is not None:
                near.update(ident for ident, _ in value.producers)
                near.update(reader for reader, _ in value.uses)
        return near

    def _up_to_date(self) -> dict[int, set[str]]:
        with self._graph.lock:
            rewriting = Rewriting(self._graph, self._inference.facts, lambda names: {}, self._options)
            if self._dirty is None:
                self._places, self._asking = {}, {}
                anew = {node.id for node in rewriting.nodes()}
            else:
                anew = self._downstream(self._dirty)
            for ident in anew:
                self._match(rewriting, ident)
            few = len(self._stale) <= MOST_STALE
            again = self._downstream(self._stale) if few else set(self._asking)
            for ident in again - anew:
                self._match_again(rewriting, ident)
            self._dirty, self._stale = set(), set()
            return self._places

    def _match(self, rewriting: Rewriting, ident: int) -> None:
        """Match every rule at a node."""
        self._places.pop(ident, None)
        self._asking.pop(ident, None)
        node = self._graph.nodes.get(ident)
        rules = self._rules.of(node) if node is not None else ()
        if node is None or not rules or rewriting.is_protected(node):
            return
        makers = worklist.makers_of(rewriting, node)
        for rule in rules:
            before = rewriting.asked
            if isinstance(rule, Rule) and isinstance(rule.find(rewriting, node, makers), Match):
                self._places.setdefault(ident, set()).add(rule.name)
            if isinstance(rule, Rule) and rewriting.asked != before:
                self._asking.setdefault(ident, []).append(rule)

    def _match_again(self, rewriting: Rewriting, ident: int) -> None:
        """Match again the rules that read facts at a node near which nothing but facts changed."""
        rules = self._asking.get(ident)
        if not rules:
            return
        node = self._graph.nodes[ident]
        makers = worklist.makers_of(rewriting, node)
        places = self._places.setdefault(ident, set())
        for rule in rules:
            if isinstance(rule.find(rewriting, node, makers), Match):
                places.add(rule.name)
            else:
                places.discard(rule.name)
        if not places:
            del self._places[ident]

    def _downstream(self, nodes: Iterable[int]) -> set[int]:
        """Nodes, what reads them, and so on, as deep as patterns are."""
        graph = self._graph
        level = {ident for ident in nodes if ident in graph.nodes}
        reached = set(level)
        for _ in range(self._rules.deepest):
            values = [graph.values[vid] for ident in level for vid in graph.nodes[ident].outputs if vid]
            level = {reader for value in values for reader, _ in value.uses} - reached
            reached |= level
        return reached
