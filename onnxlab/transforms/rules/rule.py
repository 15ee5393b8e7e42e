"""Rules: patterns, named conditions, and replacements; and applying one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from onnxlab.errors import TransformError
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query.patterns.matcher import CONDITION, Mismatch
from onnxlab.graph.query.patterns.parser import parse_rule
from onnxlab.graph.query.patterns.syntax_tree import Name, NodePattern
from onnxlab.transforms.patterns.rule_match import Match, match
from onnxlab.transforms.receipt import RefusedRewrite
from onnxlab.transforms.regions import RegionRecorder
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.replacement import put

Level = Literal["basic", "extended", "layout", "decompose"]
"""ONNX Runtime's levels, and "decompose" for rules that undo what the others do and apply only where named."""

Condition = Callable[[Match], bool]
Compute = Callable[[Match], "Mapping[str, Any] | str"]

Root = tuple[str, str]
"""Operator and domain of the node that a rule is tried at."""


@dataclass(frozen=True)
class Rule:
    """One rewrite of a few nodes.

    Attributes:
        name: the name of the rule.
        text: patterns and their replacement: "Add(MatMul(a, w), c) => Gemm(a, w, c)". A node of the replacement has
            the attributes of the first matched node of its operator, where the text sets no others.
        doc: one line of documentation.
        conditions: further conditions of a match, each by the words for its failure.
        compute: a function of the match that returns, by name, constants and attributes of the replacement that the
            pattern does not bind; or words that say why there are none.
        level: the lowest level of optimization that applies the rule.
    """

    name: str
    text: str
    doc: str = ""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    compute: Compute | None = None
    level: Level = "basic"

    def __post_init__(self) -> None:
        patterns, replacement = parse_rule(self.text)
        object.__setattr__(self, "patterns", patterns)
        object.__setattr__(self, "replacement", replacement)
        roots = dict.fromkeys((op_type, pattern.domain) for pattern in patterns for op_type in pattern.op_types)
        object.__setattr__(self, "roots", tuple(roots))
        calls = replacement.calls() if isinstance(replacement, NodePattern) else []
        inside = {op_type for pattern in patterns for call in pattern.calls() for op_type in call.op_types}
        object.__setattr__(self, "operators", frozenset(inside))
        object.__setattr__(self, "brings", frozenset(call.domain for call in calls if call.domain))

    patterns: tuple[NodePattern, ...] = field(init=False)
    replacement: NodePattern | Name = field(init=False)
    roots: tuple[Root, ...] = field(init=False)
    operators: frozenset[str] = field(init=False)
    brings: frozenset[str] = field(init=False)

    def __call__(self, compute: Compute) -> "Rule":
        """The same rule with a function that computes what the replacement needs; so a rule serves as a decorator."""
        doc = (compute.__doc__ or self.doc).strip().partition("\n")[0]
        return replace(self, name=self.name or compute.__name__, doc=doc, compute=compute)

    def where(self, words: str, holds: Condition) -> "Rule":
        """The same rule with one more condition, and the words that say that it does not hold."""
        return replace(self, conditions={**self.conditions, words: holds})

    def find(self, rewriting: Rewriting, node: NodeRecord, makers: frozenset[str] | None = None) -> Match | Mismatch:
        """The match at a node, or the failure of the alternative pattern that got furthest.

        Args:
            rewriting: the graph.
            node: the node at which the outermost call is to match.
            makers: operators that make its inputs; alternatives that need others are then skipped. None to try all.
        """
        failure = Mismatch((-1, 0), f"no node before it is one of those in {self.patterns[0].op_type}(…)")
        for pattern in self.patterns:
            if makers is not None and not pattern.may_read(makers):
                continue
            outcome = match(rewriting, pattern, node)
            if isinstance(outcome, Match):
                outcome = self._judged(rewriting, outcome)
                if isinstance(outcome, Match):
                    return outcome
            if outcome.depth > failure.depth:
                failure = outcome
        return failure

    def _judged(self, rewriting: Rewriting, candidate: Match) -> Match | Mismatch:
        if rewriting.output(candidate.root) is None:
            label = rewriting.graph.label(candidate.root).replace("{", "{{").replace("}", "}}")
            return Mismatch(CONDITION, f"another output of {label} is read too")
        if malformed := next(filter(rewriting.is_malformed, candidate.nodes), None):
            label = rewriting.graph.label(malformed).replace("{", "{{").replace("}", "}}")
            return Mismatch(CONDITION, f"an attribute of {label} has another type than the operator's")
        if rewriting.options.protected:
            calls = zip(candidate.nodes, candidate.pattern.calls(), strict=True)
            protected = next((node for node, call in calls if not call.stays and rewriting.stays(node)), None)
            if protected is not None:
                label = rewriting.graph.label(protected).replace("{", "{{").replace("}", "}}")
                return Mismatch(CONDITION, f"{label} is protected")
        for number, (words, holds) in enumerate(self.conditions.items()):
            if not holds(candidate):
                return Mismatch((CONDITION[0], number), words)
        return candidate

    def apply(self, rewriting: Rewriting, matched: Match) -> "tuple[list[NodeRecord], str]":
        """Put the replacement in the place of a match; the value that the outermost node makes keeps its name.

        Returns:
            The nodes that were inserted or rewired, and why nothing was changed, "" where it was.
        """
        label, place = rewriting.graph.label(matched.root), rewriting.place(matched.root)
        if not rewriting.allows(self.name, place):
            return [], "it was refused before"
        computed = self._computed(matched)
        if isinstance(computed, str):
            rewriting.unfit[self.name, place] = RefusedRewrite(self.name, label, computed, value=place)
            return [], computed
        recorder = RegionRecorder(rewriting, matched, self.name) if rewriting.options.regions else None
        nodes, why = put(rewriting, matched, self.replacement, computed)
        if why:
            rewriting.unfit[self.name, place] = RefusedRewrite(self.name, label, why, value=place)
        else:
            rewriting.unfit.pop((self.name, place), None)
            if recorder is not None:
                source = matched.values[self.replacement.name].name if isinstance(self.replacement, Name) else ""
                rewriting.regions.append(recorder.region(nodes, source))
            rewriting.note(self.name, place, label, f"{matched.pattern} became {self.replacement}")
        return nodes, why

    def why_not(self, rewriting: Rewriting, node: NodeRecord) -> str:
        """The reason why the rule does not apply at a node, in words; "" where it does."""
        outcome = self.find(rewriting, node)
        if isinstance(outcome, Mismatch):
            return f"{self.name}: {outcome.why}"
        computed = self._computed(outcome)
        return f"{self.name}: {computed}" if isinstance(computed, str) else ""

    def _computed(self, matched: Match) -> "Mapping[str, Any] | str":
        """Call the rule's function, if it has one, with a match.

        Raises:
            TransformError: it returns something else.
        """
        computed: Any = self.compute(matched) if self.compute is not None else {}
        if not isinstance(computed, Mapping | str):
            raise TransformError(
                f"the function of the rule {self.name} returned {computed!r:.80}: expected a mapping of names to "
                "arrays, or words that say why the rule does not apply"
            )
        return computed


Act = Callable[[Rewriting, NodeRecord], str]


@dataclass(frozen=True)
class Procedure:
    """A rule of one node and what is around it, written in Python.

    Attributes:
        name, doc, level: as in a Rule.
        op_types: operators of ONNX's own domain at whose nodes the procedure is tried.
        act: a function that rewrites and returns "", or returns why it cannot; it asks `Rewriting.allows` before any
            change.
    """

    name: str
    doc: str
    op_types: tuple[str, ...]
    act: Act
    level: Level = "basic"
    brings: frozenset[str] = frozenset()

    @property
    def roots(self) -> tuple[Root, ...]:
        """Operators and domains of the nodes that the procedure is tried at."""
        return tuple((op_type, "") for op_type in self.op_types)


AnyRule = Rule | Procedure
