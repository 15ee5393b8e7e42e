"""Whether a node is one of an operator's version: arity, attributes, and the types that are known."""

from collections.abc import Mapping, Sequence

import onnx

from onnxlab import dtypes, schemas
from onnxlab.graph.attributes import encode
from onnxlab.graph.validation import attribute_problem

Types = Mapping[str, onnx.TypeProto]
"""Types of values by name, as far as they are known."""

KEPT = {"Constant": 1, "Identity": 1, "If": 1, "Loop": 1, "Scan": 9, "SequenceMap": 17}
"""Operators whose versions from this one on differ in nothing but the types and attributes that they take."""


def since(node: onnx.NodeProto, version: int) -> int:
    """The version since which a node's operator is what it is in `version`; 0 where there is none, or none any more."""
    schema = schemas.find(node.domain, node.op_type, version)
    return 0 if schema is None or schema.deprecated else schema.since_version


def misfit(node: onnx.NodeProto, version: int, types: Types) -> str:
    """Why a node cannot be of an opset version, "" where it can."""
    schema = schemas.find(node.domain, node.op_type, version)
    if schema is None or schema.deprecated:
        return f"ai.onnx {version} has no {node.op_type}"
    sides = ((node.input, schema.inputs, schema.min_input, schema.max_input, "input"),
             (node.output, schema.outputs, schema.min_output, schema.max_output, "output"))  # fmt: skip
    for names, _, low, high, what in sides:
        if not low <= _count(names) <= high:
            return f"{schema.op_type} of ai.onnx {version} does not have {_count(names)} {what}s"
    for attribute in node.attribute:
        if problem := attribute_problem(schema, attribute):
            return f"{schema.op_type} of ai.onnx {version}: {problem.rstrip('.')}"
    given = {attribute.name for attribute in node.attribute}
    if lacking := [name for name, spec in schema.attributes.items() if spec.required and name not in given]:
        return f"{schema.op_type} of ai.onnx {version} needs the attribute {lacking[0]!r}"
    for names, formals, *_ in sides:
        for slot, name in enumerate(names):
            formal = formals[min(slot, len(formals) - 1)] if formals else None
            if formal and name in types and not _allowed(types[name], formal.type_str, schema):
                return f"{schema.op_type} of ai.onnx {version} does not take {spelled(types[name])} as {formal.name}"
    return ""


def _count(names: Sequence[str]) -> int:
    """How many slots are used: those left out at the end do not count."""
    return next((number for number in range(len(names), 0, -1) if names[number - 1]), 0)


def _allowed(given: onnx.TypeProto, wanted: str, schema: schemas.Schema) -> bool:
    allowed = schema.type_constraints.get(wanted, (wanted,))
    return not (text := spelled(given)) or text in allowed


def spelled(given: onnx.TypeProto) -> str:
    """A type as schemas spell it ("tensor(float)"), "" where it is not known."""
    kind = given.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        elem_type = getattr(given, kind).elem_type
        name = onnx.TensorProto.DataType.Name(elem_type).lower() if elem_type in dtypes.ELEM_TYPES else ""
        return name and f"{kind.removesuffix('_type')}({name})"
    if kind in ("sequence_type", "optional_type"):
        inner = spelled(getattr(given, kind).elem_type)
        return inner and f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    return ""


def without_new(node: onnx.NodeProto, version: int, older: int, defaults: bool = False) -> onnx.NodeProto:
    """A node of a version without the attributes that an older one lacks; `defaults`: of these only the needless."""
    schema, past = (schemas.find(node.domain, node.op_type, each) for each in (version, older))
    if schema is None or past is None:
        return node
    kept = [
        each for each in node.attribute
        if each.name in past.attributes or (defaults and not _is_default(each, schema))
    ]  # fmt: skip
    spare = len(node.input) > past.max_input >= _count(node.input)  # slots at the end that are left out
    if len(kept) == len(node.attribute) and not spare:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(kept)
    if spare:
        del copy.input[_count(node.input) :]
    return copy


def _is_default(attribute: onnx.AttributeProto, schema: schemas.Schema) -> bool:
    spec = schema.attributes.get(attribute.name)
    if spec is None or spec.default is None:
        return False
    return _bare(attribute) == _bare(encode(spec.name, spec.default, spec.type))


def same(one: onnx.NodeProto, other: onnx.NodeProto, version: int) -> bool:
    """Whether two nodes of a version say the same: operator, wires, and attributes with their defaults."""
    return (
        one.op_type == other.op_type
        and list(one.input)[: _count(one.input)] == list(other.input)[: _count(other.input)]
        and list(one.output)[: _count(one.output)] == list(other.output)[: _count(other.output)]
        and _attributes(one, version) == _attributes(other, version)
    )


def _attributes(node: onnx.NodeProto, version: int) -> dict[str, bytes]:
    schema = schemas.find(node.domain, node.op_type, version)
    specs = schema.attributes.values() if schema else ()
    given = {spec.name: encode(spec.name, spec.default, spec.type) for spec in specs if spec.default is not None}
    given.update((attribute.name, attribute) for attribute in node.attribute)
    return {name: _bare(attribute) for name, attribute in given.items()}


def _bare(attribute: onnx.AttributeProto) -> bytes:
    """What an attribute says, without its documentation."""
    copy = onnx.AttributeProto()
    copy.CopyFrom(attribute)
    copy.ClearField("doc_string")
    return copy.SerializeToString(deterministic=True)
