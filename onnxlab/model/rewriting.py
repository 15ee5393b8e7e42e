"""Rewriting a Model: rules that leave it computing the same, tried before they stay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxlab.argument_types import expect, several
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.model_lookup import NodeKey
from onnxlab.limits import FOLDED
from onnxlab.model.matching import PatternMatching
from onnxlab.spelling import suggestion

if TYPE_CHECKING:
    from onnxlab.transforms.foreign import Engine
    from onnxlab.transforms.receipt import Receipt
    from onnxlab.transforms.rules.rule import Level
    from onnxlab.transforms.rules.user_rules import RuleSource
    from onnxlab.transforms.suggestions import Suggestion
    from onnxlab.transforms.verification import Judgment

_BUDGET = "a number of bytes"
_MICROSOFT = frozenset(("com.microsoft",))


def _checked(budget: int) -> int:
    """A budget as an int. Raises TypeError or EditError where it is no number of bytes from 0 on."""
    budget = expect(budget, int, "budget", _BUDGET)
    if budget < 0:
        raise EditError(f"budget is {budget}: expected {_BUDGET} from 0 on")
    return budget


def _protected(graph: ModelGraph, names: Collection[str] | str) -> frozenset[str]:
    """Names that are to stay, of which one alone may be a string.

    Raises:
        TypeError: something is no name.
        NameLookupError: a name or prefix is of nothing in the model, so that nothing would stay by it.
    """
    protected = frozenset(several(names, str, "protect", "names of nodes, values, graphs or functions"))
    if not protected:
        return protected
    with graph.lock:
        nodes = {node.name for node in graph.nodes.values()}
        known = nodes.union(value.name for value in graph.values.values())
        known = known.union(*({scope.name, graph.scope_path(scope)} for scope in graph.scopes.values())) - {""}
    for name in sorted(protected - known):
        prefix = name.rstrip("*").rstrip("/") + "/"
        is_prefix = any(node.startswith(prefix) for node in nodes)
        if name != prefix or not is_prefix:
            close = suggestion(name.rstrip("/"), known) if name else ""
            hint = f", and no name of a node begins with {prefix!r}.{close}"
            if is_prefix:
                hint = f"; write {prefix!r} for all nodes whose names begin with it"
            raise NameLookupError(f"protect has {name!r}: no node, value, graph or function is called so{hint}")
    return protected


class ModelRewriting(PatternMatching):
    """Rewrites of a Model, as members."""

    __slots__ = ()

    def simplify(
        self,
        *,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        protect: Collection[str] = (),
        budget: int = FOLDED,
        finite_only: bool = False,
        dry_run: bool = False,
        engine: Engine | None = None,
    ) -> Receipt:
        """Leave less of the model without changing what it computes, as one step of the history.

        Values that depend on no input are computed and stored, sizes that inference knows are stored, and nodes that do
        nothing, undo or repeat each other, or that nothing needs are removed. Remaining values keep their names.

        Args:
            verify: run the model before and after on inputs of several kinds; an application of a rule that changes
                an output is taken back, and the receipt says which.
            samples: inputs to verify with, in place of made-up ones.
            protect: names of nodes, values, graphs and functions that stay as they are, and prefixes of the names of
                nodes that end in "/".
            budget: bytes that stored results may add to the model.
            finite_only: accept differences in NaN and infinities alone.
            dry_run: only say what would be done.
            engine: "onnxsim", "onnxruntime" or "onnxscript" does it in place of these rules, in a process of its own;
                what it did is one application, verified like any other.

        Returns:
            Receipt: each application of a rule, what was lost, and the outcome of running both models.

        Raises:
            EditError: the model must not be edited.
            NameLookupError: a name in `protect` is of nothing in the model.
            TransformError: the engine is not installed, or fails.

        Examples:
            >>> receipt = model.simplify()
            >>> receipt.nodes[1] <= receipt.nodes[0]
            True
        """
        from onnxlab.transforms import pipeline as plans
        from onnxlab.transforms.foreign import plan_of
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.verification_runs import Trust
        from onnxlab.transforms.verified_rewrites import Rewrite

        plan = plan_of(engine, self.graph) if engine else plans.standard(built_in_rules.up_to("basic"))
        label = f"simplify by {engine}" if engine else "simplify"
        options = RewriteOptions(_protected(self.graph, protect), _checked(budget))
        rewrite = Rewrite(self.graph, self.inference, label, plan, options, Trust(verify, samples, finite_only))
        return rewrite.look() if dry_run else rewrite.do()

    def optimize(
        self,
        level: Level = "extended",
        *,
        microsoft: bool = False,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        protect: Collection[str] = (),
        finite_only: bool = False,
        dry_run: bool = False,
        engine: Engine | None = None,
    ) -> Receipt:
        """Simplify the model, and let single operators take the place of what they were written out as.

        Args:
            level: "basic" is what `simplify` does; "extended" recognizes activations, normalizations and attention
                where the model's opset has them; "layout" moves Transposes besides.
            microsoft: whether rules may introduce operators of com.microsoft, which ONNX Runtime has.
            verify: as for `simplify`.
            samples: as for `simplify`.
            protect: as for `simplify`.
            finite_only: as for `simplify`.
            dry_run: only say what would be done.
            engine: as for `simplify`.

        Returns:
            Receipt: as of `simplify`.

        Raises:
            TransformError: there is no such level, or the engine is not installed, or fails.
            EditError: the model must not be edited.
            NameLookupError: a name in `protect` is of nothing in the model.

        Examples:
            >>> model.optimize("extended", dry_run=True).verdict
            'not run'
        """
        from onnxlab.transforms import pipeline as plans
        from onnxlab.transforms.foreign import plan_of
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.verification_runs import Trust
        from onnxlab.transforms.verified_rewrites import Rewrite

        rules = built_in_rules.up_to(level)
        plan = plan_of(engine, self.graph, level) if engine else plans.standard(rules)
        label = f"optimize by {engine}" if engine else "optimize"
        domains = _MICROSOFT if microsoft else frozenset[str]()
        options = RewriteOptions(_protected(self.graph, protect), FOLDED, domains)
        rewrite = Rewrite(self.graph, self.inference, label, plan, options, Trust(verify, samples, finite_only))
        return rewrite.look() if dry_run else rewrite.do()

    def fold(
        self,
        *,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        protect: Collection[str] = (),
        budget: int = FOLDED,
        finite_only: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Store what nodes make of constants alone, and take out what nothing needs then.

        Args:
            verify: as for `simplify`.
            samples: as for `simplify`.
            protect: as for `simplify`.
            budget: bytes that stored results may add to the model.
            finite_only: as for `simplify`.
            dry_run: only say what would be done.

        Returns:
            Receipt: as of `simplify`.

        Raises:
            EditError: the model must not be edited.
            NameLookupError: a name in `protect` is of nothing in the model.

        Examples:
            >>> model.fold(dry_run=True).applied
            ()
        """
        from onnxlab.transforms import pipeline as plans
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.verification_runs import Trust
        from onnxlab.transforms.verified_rewrites import Rewrite

        plan = plans.standard((), ("constant_folding", "unused"))
        options = RewriteOptions(_protected(self.graph, protect), _checked(budget))
        trust = Trust(verify, samples, finite_only)
        rewrite = Rewrite(self.graph, self.inference, "fold constants", plan, options, trust)
        return rewrite.look() if dry_run else rewrite.do()

    def rewrite(
        self,
        rules: RuleSource | Iterable[RuleSource],
        *,
        nodes: Iterable[NodeKey] | None = None,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        protect: Collection[str] = (),
        finite_only: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Apply rules wherever they match, as one step of the history.

        Args:
            rules: one or several: what `onnxlab.rule` makes, the text of a rule, the name of one that comes with
                onnxlab (`rules` lists them) or of a pass ("constant_folding", "known_shapes", "control_flow",
                "duplicates", "unused"), or the path of a `.toml` or `.py` file of rules. A Python file is run.
            nodes: nodes that the outermost call of a rule may match; default: all.
            verify: as for `simplify`.
            samples: as for `simplify`.
            protect: as for `simplify`.
            finite_only: as for `simplify`.
            dry_run: only say what would be done.

        Returns:
            Receipt: as of `simplify`.

        Raises:
            TransformError: a rule cannot be understood; the message says where.
            EditError: the model must not be edited.
            NameLookupError: a name in `protect` is of nothing in the model.

        Examples:
            >>> receipt = model.rewrite("Relu(x) => LeakyRelu(x, alpha=0.0)", dry_run=True)
            >>> receipt.applied[0].place
            '/stem/relu/Relu'
        """
        from onnxlab.transforms import pipeline as plans
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.verification_runs import Trust
        from onnxlab.transforms.verified_rewrites import Rewrite

        plan, parsed = plans.asked(rules)
        domains = frozenset(domain for rule in parsed for domain in rule.brings)
        chosen = None if nodes is None else frozenset(node.id for node in self._node_records(nodes))
        options = RewriteOptions(_protected(self.graph, protect), FOLDED, domains, nodes=chosen)
        trust = Trust(verify, samples, finite_only, regions=any(rule not in built_in_rules.STANDARD for rule in parsed))
        pending = Rewrite(self.graph, self.inference, "rewrite", plan, options, trust)
        return pending.look() if dry_run else pending.do()

    def prove(
        self,
        before: int | str | ModelRewriting = -1,
        *,
        samples: Sequence[Mapping[str, Any]] | None = None,
        finite_only: bool = False,
        undo: bool = False,
    ) -> Judgment:
        """Test whether edits changed what the model computes, on inputs of several kinds and sizes.

        Args:
            before: the state to compare with: a number of edits since the model was loaded, negative from now, or the
                label of the edit that led to it; or another model.
            samples: inputs to compare with, in place of made-up ones.
            finite_only: accept differences in NaN and infinities alone.
            undo: go back to that state where the outputs are not accepted.

        Returns:
            Judgment: `verdict`, `why`, and `feeds` that show a difference.

        Raises:
            EditError: the history has no such state, or an edit is open.

        Examples:
            >>> model.nodes[0].name = "first"
            >>> print(model.prove())
            bit equal
        """
        from onnxlab.analysis.diff.versions import as_of
        from onnxlab.transforms.edit_verification import prove
        from onnxlab.transforms.verification_runs import Trust

        trust = Trust(True, samples, finite_only)
        with self.graph.lock:
            state = None if isinstance(before, ModelRewriting) else self.graph.history.position_of(before)
            past = before.graph if isinstance(before, ModelRewriting) else as_of(self.graph, state or 0)
            judged = prove(past, self.graph, trust)
            if undo and state is not None and not trust.accepts(judged):
                self.graph.travel(state)
            return judged

    def suggest(
        self,
        *,
        level: Level = "layout",
        microsoft: bool = False,
        verify: bool = True,
        timed: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Suggestion]:
        """List the rules and passes that would change something, each measured alone; nothing stays changed.

        Args:
            level: as for `optimize`.
            microsoft: as for `optimize`.
            verify: run the model before and after each.
            timed: measure runs with NumPy and onnxruntime; needs `verify`.
            samples: inputs to run with, in place of made-up ones.

        Returns:
            list[Suggestion]: rule, places, nodes, bytes and seconds that it saves, the verdict; most nodes first.

        Raises:
            TransformError: there is no such level.
            EditError: the model must not be edited.

        Examples:
            >>> [each.rule for each in model.suggest(verify=False)][:1]
            ['conv_batch_normalization']
        """
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.suggestions import suggestions
        from onnxlab.transforms.verification_runs import Trust

        rules = built_in_rules.up_to(level)
        options = RewriteOptions(domains=_MICROSOFT if microsoft else frozenset())
        return suggestions(self.graph, self.inference, rules, options, Trust(verify, samples), timed and verify)
