"""Check of a rule that a user wrote: operators, attributes and names by which the rule could never apply."""

from collections.abc import Iterable

from onnxlab import schemas
from onnxlab.errors import TransformError
from onnxlab.graph.query.patterns.syntax_tree import Argument, Name, NodeOutput, NodePattern, Rest
from onnxlab.spelling import suggestion
from onnxlab.transforms.rules.rule import Rule


def check(rule: Rule) -> None:
    """Raise TransformError where no node can match the pattern, or no match can have the replacement."""
    replacement = rule.replacement
    parts = [*rule.patterns, *([replacement] if isinstance(replacement, NodePattern) else [])]
    for part in parts:
        for call in part.calls():
            _check_operator(rule, call)
    if rule.compute is None:
        # each alternative has to bind the names; a name that one of them leaves out is told at the match
        bound = {name for pattern in rule.patterns for name in _names([pattern])}
        read = {replacement.name} if isinstance(replacement, Name) else set(_names([replacement]))
        if unbound := sorted(read - bound - {"_"} - _labels(replacement)):
            raise TransformError(
                f"{rule.text!r:.200}: the replacement reads {unbound[0]}, which the pattern does not bind."
                f"{suggestion(unbound[0], bound)}"
            )


def _check_operator(rule: Rule, call: NodePattern) -> None:
    known = schemas.operators(call.domain)
    if not known:
        return  # a domain of the user's own
    for op_type in call.op_types:
        if op_type not in known:
            where = call.domain or "ai.onnx"
            raise TransformError(f"{rule.text!r:.200}: {where} has no operator {op_type}.{suggestion(op_type, known)}")
        versions = (schemas.find(call.domain, op_type, version) for version in schemas.versions(call.domain, op_type))
        attributes = {name for schema in versions if schema is not None for name in schema.attributes}
        for name, _ in call.attributes:
            if name not in attributes:
                raise TransformError(
                    f"{rule.text!r:.200}: {op_type} has no attribute {name}.{suggestion(name, attributes)}"
                )


def _names(arguments: Iterable[Argument]) -> Iterable[str]:
    """Names of values, lists of values and attributes in arguments and all calls inside of them."""
    for argument in arguments:
        if isinstance(argument, Name | Rest | NodeOutput):
            yield argument.name
        elif isinstance(argument, NodePattern):
            if argument.name:
                yield argument.name
            yield from (setting.name for _, setting in argument.attributes if isinstance(setting, Name))
            yield from _names(argument.inputs)


def _labels(replacement: NodePattern | Name) -> set[str]:
    """Names that a replacement gives to its own values."""
    return {call.name for call in replacement.calls() if call.name} if isinstance(replacement, NodePattern) else set()
