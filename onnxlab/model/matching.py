"""Matching in a Model: patterns of nodes, where rules match, and why they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from onnxlab.graph.handles.model_lookup import Lookup, NodeKey, NodeKeys
from onnxlab.infer import Inference

if TYPE_CHECKING:
    from onnxlab.model.commit import Commit
    from onnxlab.transforms.live_matches import LiveMatches
    from onnxlab.transforms.near_misses import NearMiss
    from onnxlab.transforms.occurrences import Occurrence
    from onnxlab.transforms.rules.rule import AnyRule
    from onnxlab.transforms.rules.user_rules import RuleSource

_MICROSOFT = frozenset(("com.microsoft",))


class PatternMatching(Lookup):
    """Patterns and rules of a Model, as members."""

    __slots__ = ()

    inference: Inference

    if TYPE_CHECKING:

        def subscribe(self, follower: Callable[[Commit], Any]) -> Callable[[], None]:
            """Call a function with every Commit: Model has it."""

    def pattern(self, nodes: NodeKeys, *, numbers: bool = True) -> str:
        """Write nodes as a pattern, for `find_pattern` and, with what takes their place, for `rewrite`.

        Inputs from outside of the selection become any value or any constant; attributes are those that the nodes set.
        A node that other nodes read too is written `~Operator(…)` and stays where the rest is replaced.

        Args:
            nodes: one node, or several connected ones of which one depends on all others.
            numbers: write constants of one element, and lists of up to eight integers, as they are; False lets any
                constant take their place.

        Returns:
            str: such as "Relu(BatchNormalization(x, scale:const, b:const, input_mean:const, input_var:const))".

        Raises:
            TransformError: no pattern describes these nodes; the message says what to select.
            NameLookupError: there is no such node.

        Examples:
            >>> pattern = model.pattern(["/block1/Add", "/block1/relu2/Relu"])
            >>> pattern
            'Relu(Add(x, y))'
            >>> len(model.find_pattern(pattern))
            2
            >>> model.rewrite(f"{pattern} => Max(Add(x, y), 0.0)", dry_run=True).nodes
            (24, 24)
        """
        from onnxlab.transforms.patterns.selecting import pattern_of
        from onnxlab.transforms.rewriting import Rewriting as GraphRewriting

        with self.graph.lock:
            rewriting = GraphRewriting(self.graph, self.inference.facts, lambda names: {})
            return str(pattern_of(rewriting, self._node_records(nodes), numbers))

    def find_pattern(self, pattern: str) -> list[Occurrence]:
        """Find every place where a pattern of nodes matches; places may overlap.

        Args:
            pattern: such as "Add(MatMul(a, w:const), c:const)"; the guide to rewriting says what may stand there, and
                `pattern` writes it for nodes.

        Returns:
            list[Occurrence]: each place with its `nodes`, the outermost first, and its `values` by the pattern's names.

        Raises:
            TransformError: the text is no pattern; the message says where.

        Examples:
            >>> place = model.find_pattern("Relu(BatchNormalization(x, *weights))")[0]
            >>> place.node, place.values["x"]
            (<Node '/stem/relu/Relu': Relu>, <Value 'stem/conv_out'>)
        """
        from onnxlab.transforms.occurrences import occurrences

        with self.graph.lock:
            return occurrences(self.graph, self.inference.facts, pattern)

    def rules(self) -> tuple[AnyRule, ...]:
        """List the rules that come with onnxlab.

        Returns:
            tuple[AnyRule, ...]: each with `name`, `doc`, `level`, and the text of those that are written as patterns.

        Examples:
            >>> [rule.text for rule in model.rules() if rule.name == "gemm_add"]
            ['Add(Gemm(a, w:const), c:const) => Gemm(a, w, c)']
        """
        from onnxlab.transforms.rules import built_in_rules

        return built_in_rules.STANDARD

    def matches(self, rules: RuleSource | Iterable[RuleSource] | None = None, *, microsoft: bool = True) -> LiveMatches:
        """Follow where rules match: after an edit only what is near it is matched again.

        Rules that are written in Python as procedures are left out; `optimize(dry_run=True)` tries those too.

        Args:
            rules: as for `rewrite`; default: all that come with onnxlab, but for those that undo others.
            microsoft: whether rules may introduce operators of com.microsoft.

        Returns:
            LiveMatches: `counts` by rule, and the nodes `of` a rule, both for the model as it is at the time of the
                question.

        Raises:
            TransformError: a rule cannot be understood.

        Examples:
            >>> live = model.matches()
            >>> before = live.counts["conv_batch_normalization"]
            >>> model.nodes["/stem/bn/BatchNormalization"].attributes["training_mode"] = 1
            >>> before - live.counts["conv_batch_normalization"]
            1
        """
        from onnxlab.transforms.live_matches import LiveMatches
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.rules.user_rules import rules_from

        chosen = built_in_rules.up_to("layout") if rules is None else rules_from(rules)
        brings = frozenset(domain for rule in chosen for domain in rule.brings) if rules is not None else frozenset()
        live = LiveMatches(self.graph, self.inference, chosen, brings | (_MICROSOFT if microsoft else frozenset()))
        method = WeakMethod(live.follow)

        def pass_on(commit: Commit) -> None:
            follow = method()
            if follow is None:
                end()
            else:
                follow(commit.touched, commit.fact_ids)

        end = self.subscribe(pass_on)
        return live

    def why_not(self, node: NodeKey, rule: RuleSource, *, microsoft: bool = True) -> str:
        """Tell why a rule does not apply at a node: the deepest point at which it failed.

        Args:
            node: the node to match with the outermost call of the rule's pattern.
            rule: as for `rewrite`.
            microsoft: whether rules may introduce operators of com.microsoft.

        Returns:
            str: the reason, after the rule's name; "" where it applies.

        Raises:
            NameLookupError: there is no such node.
            TransformError: the rule cannot be understood.

        Examples:
            >>> model.why_not("/stem/relu/Relu", onnxlab.rule("Relu(Relu(x)) => Relu(x)", name="twice"))
            'twice: /stem/bn/BatchNormalization is BatchNormalization, not Relu'
        """
        from onnxlab.transforms import near_misses
        from onnxlab.transforms.rules.user_rules import rules_from

        domains = _MICROSOFT if microsoft else frozenset[str]()
        with self.graph.lock:
            record, first = self._node_record(node), rules_from(rule)[0]
            return near_misses.why_not(self.graph, self.inference.facts, record, first, domains | first.brings)

    def near_misses(self, node: NodeKey, rules: RuleSource | Iterable[RuleSource] | None = None) -> list[NearMiss]:
        """List what comes of rules at a node: those that apply, then those that almost do, the nearest first.

        Args:
            node: a node for any call of a pattern; the outermost call may match a node that depends on it.
            rules: as for `rewrite`; default: all that come with onnxlab.

        Returns:
            list[NearMiss]: of each rule with the node's operator in its pattern: where it was tried, and what failed.

        Raises:
            NameLookupError: there is no such node.
            TransformError: a rule cannot be understood.

        Examples:
            >>> print(model.near_misses("/stem/bn/BatchNormalization")[0])
            conv_batch_normalization: applies at /stem/bn/BatchNormalization
        """
        from onnxlab.transforms import near_misses
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.rules.user_rules import rules_from

        candidates = built_in_rules.STANDARD if rules is None else rules_from(rules)
        with self.graph.lock:
            return near_misses.near_misses(
                self.graph, self.inference.facts, self._node_record(node), candidates, _MICROSOFT
            )
