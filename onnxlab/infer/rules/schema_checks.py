"""Checks by schemas alone: arity, element types in and out; and conflicts with declared types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from onnxlab import dtypes
from onnxlab.graph.protos.long_lists import LongList
from onnxlab.infer.rules.operators import Operator, Problem
from onnxlab.schemas import FormalParameter, Schema
from onnxlab.shapes import (
    UNKNOWN,
    Fact,
    MapFact,
    OptionalFact,
    SequenceFact,
    SparseTensorFact,
    TensorFact,
)

Facts = Sequence["Fact | None"]


def arity_problem(schema: Schema, inputs: Facts, outputs: int) -> Problem | Literal[False]:
    """The fault in the number of inputs or outputs, or the required one that is absent; False for none."""
    if not schema.min_output <= outputs <= schema.max_output:
        low, high = schema.min_output, schema.max_output
        expected = str(low) if low == high else f"at least {low}" if outputs < low else f"at most {high}"
        message = f"it has {outputs} outputs, its operator makes {expected}"
        return Problem("error", "arity", message, expected, str(outputs), "name as many outputs as the operator makes")
    count = len(inputs)
    if not schema.min_input <= count <= schema.max_input:
        low, high = schema.min_input, schema.max_input
        expected = str(low) if low == high else f"at least {low}" if count < low else f"at most {high}"
        message = f"it has {count} inputs, its operator takes {expected}"
        return Problem("error", "arity", message, expected, str(count), "connect or remove inputs")
    for slot, fact in enumerate(inputs):
        formal = schema.input(slot)
        if fact is None and formal is not None and formal.option == "single":
            message = f"its required input {formal.name!r} is absent"
            return Problem("error", "arity", message, formal.name, "nothing", f"connect a value to {formal.name!r}")
    return False


_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "string": (str, bytes),
    "ints": (int,), "floats": (float,), "strings": (str, bytes),
}  # fmt: skip


def attribute_problems(schema: Schema, attributes: Mapping[str, Any]) -> list[Problem]:
    """Required attributes that are missing, and attributes whose value is of another type than the operator takes."""
    problems = []
    for name in schema.required:
        if attributes.get(name) is None:
            expected = schema.attributes[name].type
            message = f"its required attribute {name!r} is missing"
            problems.append(Problem("error", "attribute-missing", message, expected, "none", f"set {name!r}"))
    for name, value in attributes.items():
        spec = schema.attributes.get(name)
        if spec is None or value is schema.defaults.get(name) or (kinds := _KINDS.get(spec.type)) is None:
            continue
        plural = spec.type.endswith("s")
        # the first item tells the type of all, and a list of a large forest has millions of items
        is_list = isinstance(value, (tuple, LongList))
        some = value[:1] if plural and is_list else (value,)
        if is_list != plural or not all(isinstance(item, kinds) for item in some):
            message = f"its attribute {name!r} is {value!r}"
            hint = f"set {name!r} to a value of type {spec.type}"
            problems.append(Problem("error", "attribute-type", message, spec.type, _kind_of(value), hint))
    return problems


def oddities(schema: Schema, attributes: Mapping[str, Any], repeated: str, unbound: str = "") -> list[Problem]:
    """Problems of a node that do not matter to its shapes.

    These are attributes that the operator does not have in ONNX or that stand twice, a reference to an attribute of a
    function outside of any function, and a deprecated operator.
    """
    if schema.onnx is None and not schema.runtime:  # registered here: other runtimes may take more
        return []
    problems = []
    for name in attributes:
        if name not in schema.attributes and not name.startswith("__") and not schema.unchecked_attributes:
            known = ", ".join(schema.attributes) or "none"
            message = f"it has no attribute {name!r} in version {schema.since_version}"
            hint = "clear it, or import the opset that has it"
            problems.append(Problem("error", "attribute-unknown", message, f"one of {known}", name, hint))
    if repeated:
        message = f"it has more than one attribute {repeated!r}"
        problems.append(Problem("error", "attribute-repeated", message, "one", "two", "clear one of them"))
    if unbound:
        message = f"its attribute {unbound!r} refers to an attribute of a function, and the node is in no function"
        hint = "set the attribute to a value"
        problems.append(Problem("error", "attribute-reference", message, "a value", "a reference", hint))
    if schema.deprecated:
        message = f"it is deprecated since version {schema.since_version}"
        hint = "use what replaced it, or an older opset"
        problems.append(Problem("error", "deprecated", message, "an operator in use", "a deprecated one", hint))
    return problems


def _kind_of(value: Any) -> str:
    """The type of an attribute's value, as schemas name it."""
    if isinstance(value, (tuple, LongList)):
        return f"{_kind_of(value[0])}s" if value else "an empty list"
    return next((name for name, kinds in _KINDS.items() if isinstance(value, kinds)), type(value).__name__)


def missing_opset(operator: Operator) -> Problem:
    """The problem of an operator whose domain is not imported."""
    domain = operator.domain or "ai.onnx"
    assumption = (
        f"version {operator.schema.since_version} of it was taken" if operator.schema else "any version will do"
    )
    message = f"the model has no opset import of {domain!r}; {assumption}"
    return Problem("error", "missing-opset", message, f"an opset import of {domain!r}", "none", "add the opset import")


def type_string(fact: Fact | None) -> str:
    """The type as schemas spell it ("tensor(float)"), "" where it is not known."""
    if type(fact) is TensorFact:
        return _TENSORS.get(fact.elem_type, "")
    match fact:
        case SparseTensorFact() if fact.elem_type:
            return f"sparse_{_TENSORS.get(fact.elem_type, '')}"
        case SequenceFact() if inner := type_string(fact.elem):
            return f"seq({inner})"
        case OptionalFact() if inner := type_string(fact.elem):
            return f"optional({inner})"
    return ""


_SPELLED = {dtypes.FLOAT: "float", dtypes.DOUBLE: "double"}
_TENSORS = {elem: f"tensor({_SPELLED.get(elem) or dtypes.name(elem)})" for elem in dtypes.ELEM_TYPES}
_MEANT = {text: elem for elem, text in _TENSORS.items()}


def type_problems(schema: Schema, inputs: Facts) -> tuple[Problem, ...]:
    """Inputs whose type the operator does not take, or that should have the same type and have not."""
    kinds = tuple([fact.elem_type if type(fact) is TensorFact else fact for fact in inputs])
    seen = _seen.get(id(schema))
    if seen is None:
        seen = _seen[id(schema)] = (schema, {})
    problems = seen[1].get(kinds)
    if problems is None:
        if len(seen[1]) >= _KINDS_SEEN:
            seen[1].clear()
        problems = seen[1][kinds] = tuple(_type_problems(schema, inputs))
    return problems


_KINDS_SEEN = 256
_seen: dict[int, tuple[Schema, dict[tuple[object, ...], tuple[Problem, ...]]]] = {}
"""Problems by the schema's id and the inputs' element types; the schema is kept so that no other gets its id."""


def _type_problems(schema: Schema, inputs: Facts) -> list[Problem]:
    problems: list[Problem] = []
    bound: dict[str, tuple[str, str]] = {}
    for slot, fact in enumerate(inputs):
        formal, actual = schema.input(slot), type_string(fact)
        if formal is None or not actual:
            continue
        allowed = schema.type_constraints.get(formal.type_str, (formal.type_str,))
        if actual not in allowed:
            shown = ", ".join(sorted(allowed))
            message = f"its input {formal.name!r} is a {actual}, which the operator does not take"
            hint = "insert a Cast" if actual.startswith("tensor(") else ""
            problems.append(Problem("error", "type-mismatch", message, shown, actual, hint))
        elif formal.type_str in schema.type_constraints and not _free(schema, formal):
            first, kind = bound.setdefault(formal.type_str, (formal.name, actual))
            if kind != actual:
                message = f"its inputs {first!r} and {formal.name!r} must have the same type"
                problems.append(Problem("error", "type-mismatch", message, kind, actual, "insert a Cast"))
    return problems


def _free(schema: Schema, formal: FormalParameter) -> bool:
    """Whether inputs of one type variable may differ: the heterogeneous variadic ones of Loop, Scan and the like."""
    return formal.option == "variadic" and ((schema.onnx is None and not schema.runtime) or not formal.homogeneous)


def output_types(schema: Schema | None, inputs: Facts, count: int) -> tuple[Fact, ...]:
    """Facts of the outputs that follow from the schema's types alone: element types, no shapes."""
    if schema is None:
        return (UNKNOWN,) * count
    bound: dict[str, Fact] = {}
    for slot, fact in enumerate(inputs):
        formal = schema.input(slot)
        if formal is not None and fact is not None and fact is not UNKNOWN:
            bound.setdefault(formal.type_str, fact)
    return tuple(_output_type(schema, bound, slot) for slot in range(count))


def _output_type(schema: Schema, bound: dict[str, Fact], slot: int) -> Fact:
    formal = schema.output(slot)
    if formal is None:
        return UNKNOWN
    allowed = schema.type_constraints.get(formal.type_str, (formal.type_str,))
    if len(allowed) == 1 and allowed[0] in _MEANT:
        return TensorFact(_MEANT[allowed[0]])
    match bound.get(formal.type_str):
        case TensorFact(elem_type=elem_type):
            return TensorFact(elem_type)
        case SequenceFact(elem=TensorFact(elem_type=elem_type)):
            return SequenceFact(TensorFact(elem_type))
    return UNKNOWN


def contradiction(declared: Fact, inferred: Fact) -> str:
    """The kind of contradiction between declared and inferred type: "type", "rank", "dim", or "" for none."""
    if declared is UNKNOWN or inferred is UNKNOWN:
        return ""
    match declared, inferred:
        case (TensorFact() | SparseTensorFact(), TensorFact() | SparseTensorFact()) if type(declared) is type(inferred):
            if declared.elem_type and inferred.elem_type and declared.elem_type != inferred.elem_type:
                return "type"
            return _shape_contradiction(declared, inferred)
        case (SequenceFact(), SequenceFact()):
            return contradiction(declared.elem, inferred.elem)
        case (OptionalFact(), OptionalFact()):
            return contradiction(declared.elem, inferred.elem)
        case (MapFact(), MapFact()):
            keys = declared.key_type, inferred.key_type
            return "type" if all(keys) and keys[0] != keys[1] else contradiction(declared.elem, inferred.elem)
    return "" if type(declared) is type(inferred) else "type"


def _shape_contradiction(declared: Fact, inferred: Fact) -> str:
    if declared.shape is None or inferred.shape is None:
        return ""
    if len(declared.shape) != len(inferred.shape):
        return "rank"
    pairs = zip(declared.shape, inferred.shape, strict=True)
    return "dim" if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs) else ""
