"""Effects of rewriting for the page: rules with the nodes that go and come, their gains, near misses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from onnxlab.errors import NameLookupError
from onnxlab.graph.handles.handles import Node
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.printable import printable
from onnxlab.transforms.pipeline import PASS_OF, PASSES
from onnxlab.transforms.quantization.forms import FORMS, FormName
from onnxlab.transforms.receipt import Application, Receipt, RefusedRewrite
from onnxlab.transforms.rules import built_in_rules
from onnxlab.transforms.rules.rule import Level, Rule
from onnxlab.transforms.suggestions import PASS_DOCS, Suggestion

if TYPE_CHECKING:
    from onnxlab.model import Model

MOST_PLACES: Final = 2000
"""Most places that are listed for a rule; the count includes all."""

MOST_NEAR: Final = 20
"""Most rules that are listed for a node."""

_RULES: Final = {rule.name: rule for rule in built_in_rules.STANDARD}


def form_of(level: str, rules: Sequence[str]) -> FormName | None:
    """The form of `quantize` that a page asks for, as a level or as the only rule; None where it asks for rules."""
    names = rules or [level]
    return next((form for form in get_args(FormName) if names == [form]), None)


def level_of(word: str) -> Level:
    """The level of optimization that a page names.

    Raises:
        ProtocolError: there is no such level.
    """
    if word not in built_in_rules.LEVELS:
        raise ProtocolError("invalid", f"there is no level {word!r}", f"Use one of {', '.join(built_in_rules.LEVELS)}.")
    return word


def asked_rules(rules: Sequence[str]) -> list[str]:
    """The rules of a request: texts, and names of onnxlab's rules and passes, but no files.

    Raises:
        ProtocolError: an entry is none of these.
    """
    for rule in rules:
        if "=>" not in rule and rule not in _RULES and rule not in PASSES:
            words = f"there is no rule {printable(rule)!r}"
            raise ProtocolError("invalid", words, "Write one as pattern => replacement.")
    return list(rules)


def preview(model: "Model", level: str, rules: list[str], microsoft: bool, protect: list[str] | None) -> JSON:
    """The effect, by rule, of optimizing to a level or of some rules; protected nodes stay."""
    names = protect or ()
    form = form_of(level, rules)
    if form is not None:
        receipt = model.quantize(form, calibrate=calibration(model, form), protect=names, dry_run=True)
    elif rules:
        receipt = model.rewrite(asked_rules(rules), protect=names, dry_run=True)
    else:
        receipt = model.optimize(level_of(level), microsoft=microsoft, protect=names, dry_run=True)
    by_rule: dict[str, list[Application]] = {}
    for application in receipt.applied:
        by_rule.setdefault(application.rule, []).append(application)
    return {
        "rules": [_of_rule(rule, by_rule[rule]) for rule in receipt.counts],
        "nodes": _nodes(receipt),
        "bytes": list(receipt.bytes),
        "staying": [_stays(place) for place in receipt.unfit[:MOST_PLACES]] if form is not None else [],
    }


def calibration(model: "Model", form: FormName) -> list[dict[str, Any]] | None:
    """The inputs on which ranges are measured: those of the last run; None for a form without ranges.

    Raises:
        ProtocolError: the model was not run yet.
    """
    if FORMS[form].run is not None:
        return None
    inputs = model.runner.last_inputs()
    if not inputs:
        words = "int8 needs the ranges of values, which are measured on the inputs of the last run"
        raise ProtocolError("invalid", words, "Run the model on inputs as they come in use first.")
    return [inputs]


def _stays(place: RefusedRewrite) -> str:
    return printable(f"{place.place}: {place.why}")


def _of_rule(rule: str, applied: list[Application]) -> JSON:
    key = PASS_OF.get(rule, rule)
    known = _RULES.get(rule)
    return {
        "rule": printable(rule),
        "key": key,
        "doc": known.doc if known is not None else FORMS[key].doc if key in FORMS else PASS_DOCS.get(key, ""),
        "count": len(applied),
        "places": [_place(application) for application in applied[:MOST_PLACES]],
        "by_place": key not in PASSES and key not in FORMS,
    }


def _place(application: Application) -> JSON:
    return {
        "at": application.at.id if application.at is not None else 0,
        "label": printable(application.place),
        "what": printable(application.what),
        "going": [node.id for node in application.taken],
        "coming": [printable(op_type) for op_type in application.given],
    }


def gains(model: "Model", level: str, microsoft: bool) -> JSON:
    """The gain of each rule alone, or of a form, measured."""
    name = form_of(level, ()) or level_of(level)
    return {"gains": [_gain(gain) for gain in model.suggest(level=name, microsoft=microsoft)]}


def _gain(suggestion: Suggestion) -> JSON:
    return {
        "key": suggestion.rule,
        "nodes": suggestion.nodes,
        "bytes": suggestion.bytes,
        "peak": suggestion.peak,
        "seconds": dict(suggestion.seconds),
        "verdict": f"{suggestion.verdict}: {suggestion.why}" if suggestion.why else suggestion.verdict,
    }


def near_misses(model: "Model", node: int) -> JSON:
    """The rules that apply at a node or nearly do, without procedures, whose reasons tell little."""
    if node not in model.graph.nodes:
        raise NameLookupError(f"node {node} is not in the model any more")
    written = [rule for rule in built_in_rules.STANDARD if isinstance(rule, Rule) and rule.level != "decompose"]
    misses = [miss for miss in model.near_misses(Node(model.graph, node), written) if not miss.why or miss.progress > 0]
    rules = [
        {"rule": miss.rule, "doc": miss.doc, "why": printable(miss.why), "progress": miss.progress}
        for miss in misses[:MOST_NEAR]
    ]
    return {"rules": rules}


def pattern(model: "Model", nodes: list[int], numbers: bool) -> JSON:
    """Nodes as the text of a pattern."""
    gone = [ident for ident in nodes if ident not in model.graph.nodes]
    if gone:
        raise NameLookupError(f"node {gone[0]} is not in the model any more")
    return {"pattern": model.pattern([Node(model.graph, ident) for ident in nodes], numbers=numbers)}


def places(model: "Model", pattern: str) -> JSON:
    """The matches of a pattern: the nodes of each, the outermost first."""
    occurrences = model.find_pattern(pattern)
    return {
        "count": len(occurrences),
        "places": [[node.id for node in occurrence.nodes] for occurrence in occurrences[:MOST_PLACES]],
    }


def on_wire(receipt: Receipt) -> JSON:
    """The effect of a rewrite."""
    return {
        "applied": len(receipt.applied),
        "nodes": _nodes(receipt),
        "verdict": printable(f"{receipt.verdict}: {receipt.note}" if receipt.note else receipt.verdict),
        "bytes": list(receipt.bytes),
        "refused": [printable(str(refusal)) for refusal in receipt.refused],
        "unfit": [printable(str(place)) for place in receipt.unfit[:MOST_NEAR]],
        "lost": [printable(str(loss)) for loss in receipt.lost[:MOST_NEAR]],
    }


def _nodes(receipt: Receipt) -> list[int]:
    """The number of nodes before and now, Constants included, as the page counts them elsewhere."""
    return [nodes + constants for nodes, constants in zip(receipt.nodes, receipt.constants, strict=True)]
