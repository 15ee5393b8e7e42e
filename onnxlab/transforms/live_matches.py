"""Where rules match, kept up to date over edits: only what is near an edit is matched again."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer import Inference
from onnxlab.transforms.passes import worklist
from onnxlab.transforms.patterns.matcher import Match
from onnxlab.transforms.rewriting import Options, Rewriting
from onnxlab.transforms.rules.rule import AnyRule, Rule

MOST_DIRTY: Final = 4096
"""Nodes near an edit above which everything is matched anew."""


class LiveMatches:
    """The places at which rules match; rules that are written in Python as procedures are left out.

    Args:
        graph: the model.
        inference: its facts.
        rules: to be matched.
        domains: of operators that replacements may bring.
    """

    def __init__(
        self, graph: ModelGraph, inference: Inference, rules: Iterable[AnyRule], domains: frozenset[str] = frozenset()
    ) -> None:
        self._graph = graph
        self._inference = inference
        self._rules = worklist.Rules([rule for rule in rules if isinstance(rule, Rule) and rule.brings <= domains])
        self._options = Options(domains=domains)
        self._places: dict[int, tuple[str, ...]] = {}
        self._dirty: set[int] | None = None  # None: all of them

    @property
    def counts(self) -> dict[str, int]:
        """How many places there are for each rule that matches, the most frequent first.

        Examples:
            >>> model.matches().counts
            {'conv_batch_normalization': 5}
        """
        return dict(Counter(rule for rules in self._up_to_date().values() for rule in rules).most_common())

    def of(self, rule: str) -> list[Node]:
        """List the nodes that the outermost call of a rule's pattern matches, in the order of their ids.

        Args:
            rule: its name.

        Returns:
            list[Node]: handles; none where it matches nowhere.

        Examples:
            >>> model.matches().of("conv_batch_normalization")[0]
            <Node '/stem/bn/BatchNormalization': BatchNormalization>
        """
        places = self._up_to_date()
        return [Node(self._graph, ident) for ident in sorted(places) if rule in places[ident]]

    def follow(self, touched: Touched, facts: Mapping[int, Any]) -> None:
        """Take down what an edit touched, to be matched again when it is asked for."""
        if self._dirty is None:
            return
        if touched.opsets or touched.functions:
            self._dirty = None
            return
        graph = self._graph
        for ident in touched.removed_nodes:
            self._places.pop(ident, None)
        near = set(touched.nodes)
        for vid in {*touched.values, *facts}:
            value = graph.values.get(vid)
            if value is not None:
                near.update(ident for ident, _ in value.producers)
                near.update(reader for reader, _ in value.uses)
        self._dirty |= near
        if len(self._dirty) > MOST_DIRTY:
            self._dirty = None

    def _up_to_date(self) -> dict[int, tuple[str, ...]]:
        with self._graph.lock:
            rewriting = Rewriting(self._graph, self._inference.facts, lambda names: {}, self._options)
            if self._dirty is None:
                self._places = {node.id: names for node in rewriting.nodes() if (names := self._at(rewriting, node.id))}
            else:
                for ident in self._downstream(self._dirty):
                    names = self._at(rewriting, ident)
                    if names:
                        self._places[ident] = names
                    else:
                        self._places.pop(ident, None)
            self._dirty = set()
            return self._places

    def _at(self, rewriting: Rewriting, ident: int) -> tuple[str, ...]:
        node = self._graph.nodes.get(ident)
        rules = self._rules.of(node) if node is not None else ()
        if node is None or not rules or rewriting.is_protected(node):
            return ()
        makers = worklist.makers_of(rewriting, node)
        return tuple(rule.name for rule in rules
                     if isinstance(rule, Rule) and isinstance(rule.find(rewriting, node, makers), Match))  # fmt: skip

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
