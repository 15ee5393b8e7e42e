"""Rules over the graph: each node is tried with the rules of its operator, and again after one applied near it."""

from collections import defaultdict
from collections.abc import Sequence

from onnxlab.transforms.patterns.matcher import Failure
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.linear import RULES
from onnxlab.transforms.rules.rule import Rule

MOST_ROUNDS = 100
"""Rounds after which rules that keep each other busy are stopped."""


def run(rewriting: Rewriting, rules: Sequence[Rule] = RULES) -> None:
    """Apply rules until none matches; a cap stops those that never end, and says so."""
    by_root: dict[tuple[str, str], list[Rule]] = defaultdict(list)
    for rule in rules:
        by_root[rule.pattern.op_type, rule.pattern.domain].append(rule)
    for _ in range(MOST_ROUNDS):
        before = len(rewriting.applied)
        for node in rewriting.nodes():
            for rule in by_root.get((node.op_type, node.domain), ()):
                found = rule.find(rewriting, node)
                if not isinstance(found, Failure):
                    rule.apply(rewriting, found)
                    break
        if len(rewriting.applied) == before:
            return
    busy = {each.rule for each in rewriting.applied[-len(rules) :]}
    rewriting.note("rules", ", ".join(sorted(busy)), f"still applied after {MOST_ROUNDS} rounds, and were stopped")
