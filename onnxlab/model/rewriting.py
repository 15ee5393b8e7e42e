"""Rewriting a Model: rules that leave it computing the same, tried before they stay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from onnxlab.argument_types import expect
from onnxlab.errors import EditError
from onnxlab.graph.handles.model_lookup import NodeKey
from onnxlab.graph.query.protected_names import of_operators, protected_names
from onnxlab.limits import FOLDED
from onnxlab.model.matching import PatternMatching

if TYPE_CHECKING:
    from onnxlab.transforms.foreign import Engine
    from onnxlab.transforms.pipeline import Pipeline
    from onnxlab.transforms.quantization.calibration import ActivationType, RangeName
    from onnxlab.transforms.quantization.forms import FormName
    from onnxlab.transforms.receipt import Receipt
    from onnxlab.transforms.rewriting import RewriteOptions
    from onnxlab.transforms.rules.rule import Level
    from onnxlab.transforms.rules.user_rules import RuleSource
    from onnxlab.transforms.suggestions import Suggestion
    from onnxlab.transforms.verification import Judgment
    from onnxlab.transforms.verification_runs import Trust

_BUDGET = ("budget", int, "a number of bytes")
_SHARE = ("at_most", (int, float), "a part of an output's largest element, such as 0.01,")
_Number = TypeVar("_Number", int, float)
_MICROSOFT = frozenset(("com.microsoft",))


def _from_zero(number: _Number, name: str, kind: type[_Number] | tuple[type, ...], words: str) -> _Number:
    """The number. Raises TypeError or EditError where it is no number from 0 on."""
    number = expect(number, kind, name, words)
    if not number >= 0:
        raise EditError(f"{name} is {number}: expected {words} from 0 on")
    return number


class ModelRewriting(PatternMatching):
    """Rewrites of a Model, as members."""

    __slots__ = ()

    def _rewritten(self, label: str, plan: Pipeline, options: RewriteOptions, trust: Trust, dry_run: bool) -> Receipt:
        """Rewrite the model as one step, or only say what that would do."""
        from onnxlab.transforms.verified_rewrites import Rewrite

        rewrite = Rewrite(self.graph, self.inference, label, plan, options, trust)
        return rewrite.look() if dry_run else rewrite.do()

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

        plan = plan_of(engine, self.graph) if engine else plans.standard(built_in_rules.up_to("basic"))
        label = f"simplify by {engine}" if engine else "simplify"
        options = RewriteOptions(protected_names(self.graph, protect), _from_zero(budget, *_BUDGET))
        return self._rewritten(label, plan, options, Trust(verify, samples, finite_only), dry_run)

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

        rules = built_in_rules.up_to(level)
        plan = plan_of(engine, self.graph, level) if engine else plans.standard(rules)
        label = f"optimize by {engine}" if engine else "optimize"
        domains = _MICROSOFT if microsoft else frozenset[str]()
        options = RewriteOptions(protected_names(self.graph, protect), FOLDED, domains)
        return self._rewritten(label, plan, options, Trust(verify, samples, finite_only), dry_run)

    def quantize(  # noqa: PLR0913
        self,
        form: FormName,
        *,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        calibrate: Iterable[Mapping[str, Any]] | None = None,
        ranges: RangeName = "minmax",
        activations: ActivationType = "uint8",
        reduce_range: bool = False,
        block_size: int = 32,
        at_most: float | None = None,
        protect: Collection[str] = (),
        leave: Collection[str] = (),
        dry_run: bool = False,
    ) -> Receipt:
        """Bring the model into fewer bits, as one step of the history; inputs and outputs keep their types.

        Args:
            form: "int8_weights", "float16_weights" and "bfloat16_weights" store large weights in fewer bits, and nodes
                compute in float32 as before; "float16" and "bfloat16" compute in that type wherever operators and
                numbers allow it; "int8" computes products and what stands between them in 8 bits, and
                "int8_dynamic" products with matrices, without inputs of yours. "int4_weights" and "uint4_weights"
                store matrices of products in blocks of 4 bits.
            verify: run the model before and after; what makes NaN or infinities of finite numbers is taken back, and
                `note` of the receipt says how far the outputs are off.
            samples: inputs to run on, in place of the first ones of `calibrate`, or made-up ones.
            calibrate: for "int8", inputs as they come in use: their runs measure the ranges of values.
            ranges: "minmax" takes all numbers, "percentile" all but one in ten thousand, "mse" what loses least.
            activations: values in "uint8" with a zero point, which ONNX Runtime wants, or in "int8" around zero.
            reduce_range: store weights in 7 bits, for x64 processors without VNNI, whose sums of 8 bits saturate.
            block_size: for weights in 4 bits, the elements that share a scale: a power of two from 16 on.
            at_most: the largest accepted difference as part of an output's largest element (0.01 is one percent);
                where it is exceeded, what costs most is taken back, each measured alone. Default: any.
            protect: as for `simplify`; a node that stays keeps its weights.
            leave: operators whose nodes stay, such as "Gemm".
            dry_run: only say what would be done.

        Returns:
            Receipt: `applied` has weights or nodes, `unfit` those that stay and why, `bytes` the sizes of all tensors.

        Raises:
            TransformError: there is no such form, the model's version of ai.onnx is too old for it, or it needs inputs.
            EditError: the model must not be edited.
            NameLookupError: a name in `protect` or `leave` is of nothing in the model.
            FeedError: inputs do not fit the model.

        Examples:
            >>> receipt = model.quantize("int8_weights")
            >>> receipt.verdict, receipt.bytes[1] < 0.6 * receipt.bytes[0]
            ('rounded', True)
        """
        from onnxlab.transforms.quantization.calibration import calibrated
        from onnxlab.transforms.quantization.forms import check_version, plan_of
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.verification_runs import Trust

        options = RewriteOptions(protected_names(self.graph, protect) | of_operators(self.graph, leave))
        share, calibration = None if at_most is None else _from_zero(at_most, *_SHARE), None
        if calibrate is not None:
            check_version(form, self.graph)  # before anything runs
            calibration = calibrated(self.graph, self.inference, calibrate, ranges, activations, reduce_range)
            samples = calibration.feeds if samples is None else samples
        plan = plan_of(form, self.graph, calibration, block_size)
        trust = Trust(verify, samples, loses=True, at_most=share)
        return self._rewritten(f"quantize to {form}", plan, options, trust, dry_run)

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

        plan = plans.standard((), ("constant_folding", "unused"))
        options = RewriteOptions(protected_names(self.graph, protect), _from_zero(budget, *_BUDGET))
        trust = Trust(verify, samples, finite_only)
        return self._rewritten("fold constants", plan, options, trust, dry_run)

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

        plan, parsed = plans.asked(rules)
        domains = frozenset(domain for rule in parsed for domain in rule.brings)
        chosen = None if nodes is None else frozenset(node.id for node in self._node_records(nodes))
        options = RewriteOptions(protected_names(self.graph, protect), FOLDED, domains, nodes=chosen)
        trust = Trust(verify, samples, finite_only, regions=any(rule not in built_in_rules.STANDARD for rule in parsed))
        return self._rewritten("rewrite", plan, options, trust, dry_run)

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
        level: Level | FormName = "layout",
        microsoft: bool = False,
        verify: bool = True,
        timed: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Suggestion]:
        """List the rules and passes that would change something, each measured alone; nothing stays changed.

        Args:
            level: as for `optimize`, or a form of `quantize`.
            microsoft: as for `optimize`.
            verify: run the model before and after each.
            timed: measure runs with NumPy and onnxruntime; needs `verify`.
            samples: inputs to run with, in place of made-up ones.

        Returns:
            list[Suggestion]: rule, places, nodes, bytes and seconds that it saves, the verdict; most nodes first.

        Raises:
            TransformError: there is no such level, or the model's version of ai.onnx is too old for the form.
            EditError: the model must not be edited.

        Examples:
            >>> [each.rule for each in model.suggest(verify=False)][:1]
            ['conv_batch_normalization']
        """
        from onnxlab.transforms import suggestions
        from onnxlab.transforms.quantization.forms import FORMS, plan_of
        from onnxlab.transforms.rewriting import RewriteOptions
        from onnxlab.transforms.rules import built_in_rules
        from onnxlab.transforms.verification_runs import Trust

        options = RewriteOptions(domains=_MICROSOFT if microsoft else frozenset())
        if level in FORMS:
            plan, trust, doc = plan_of(level, self.graph), Trust(verify, samples, loses=True), FORMS[level].doc
            names = (self.graph, self.inference, level, doc)
            return suggestions.suggestion(*names, plan, options, trust, timed and verify)
        rules, trust = built_in_rules.up_to(level), Trust(verify, samples)
        return suggestions.suggestions(self.graph, self.inference, rules, options, trust, timed and verify)
