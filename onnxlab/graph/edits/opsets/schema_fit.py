"""Whether a node is one of an operator's version: arity, attributes, and the types that are known."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from onnxlab import dtypes, schemas
from onnxlab.graph.edit.validation import attribute_problem
from onnxlab.graph.protos.attributes import decode, encode
from onnxlab.graph.protos.tensors import from_array
from onnxlab.ops import find_traits

Types = Mapping[str, onnx.TypeProto]
"""Types of values by name, as far as they are known."""


def kept_since(op_type: str) -> int | None:
    """The version from which on versions differ in nothing but types and attributes; None where that is unsaid."""
    return find_traits("", op_type).same_since or None


def since(node: onnx.NodeProto, version: int) -> int:
    """The version since which a node's operator is what it is in `version`; 0 where there is none, or none any more."""
    schema = schemas.find(node.domain, node.op_type, version)
    return 0 if schema is None or schema.removed else schema.since_version


def misfit(node: onnx.NodeProto, version: int, types: Types) -> str:
    """The reason why a node cannot be of an opset version, "" where it can."""
    schema = schemas.find(node.domain, node.op_type, version)
    if schema is None or schema.removed:
        return f"ai.onnx {version} has no {node.op_type}"
    sides = ((node.input, schema.inputs, schema.min_input, schema.max_input, "input"),
             (node.output, schema.outputs, schema.min_output, schema.max_output, "output"))  # fmt: skip
    for names, _, low, high, side in sides:
        if not low <= _count(names) <= high:
            return f"{schema.op_type} of ai.onnx {version} does not have {_count(names)} {side}s"
    for attribute in node.attribute:
        if problem := attribute_problem(schema, attribute):
            return f"{schema.op_type} of ai.onnx {version}: {problem.rstrip('.')}"
        if problem := value_problem(node, attribute, version):
            return problem
    present = {attribute.name for attribute in node.attribute}
    if lacking := [name for name, spec in schema.attributes.items() if spec.required and name not in present]:
        return f"{schema.op_type} of ai.onnx {version} needs the attribute {lacking[0]!r}"
    for names, formals, *_ in sides:
        for slot, name in enumerate(names):
            formal = formals[min(slot, len(formals) - 1)] if formals else None
            if formal and name in types and not _allowed(types[name], formal.type_str, schema):
                return f"{schema.op_type} of ai.onnx {version} does not take {spelled(types[name])} as {formal.name}"
    return ""


def value_problem(node: onnx.NodeProto, attribute: onnx.AttributeProto, version: int) -> str:
    """The problem of an attribute whose value a version does not have yet, or no more."""
    rows = find_traits("", node.op_type).value_versions.get(attribute.name, {})
    first, last = rows.get(value := attribute.s.decode("utf-8", "replace"), (1, None))
    if first <= version <= (last or version):
        return ""
    return f"{node.op_type} of ai.onnx {version} has no {attribute.name} {value!r}"


def _count(names: Sequence[str]) -> int:
    """The number of slots in use: those left out at the end do not count."""
    return next((number for number in range(len(names), 0, -1) if names[number - 1]), 0)


def _allowed(proto_type: onnx.TypeProto, type_str: str, schema: schemas.Schema) -> bool:
    allowed = schema.type_constraints.get(type_str, (type_str,))
    return not (text := spelled(proto_type)) or text in allowed


def spelled(proto_type: onnx.TypeProto) -> str:
    """A type as schemas spell it ("tensor(float)"), "" where it is not known."""
    kind = proto_type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        elem_type = getattr(proto_type, kind).elem_type
        name = onnx.TensorProto.DataType.Name(elem_type).lower() if elem_type in dtypes.ELEM_TYPES else ""
        return name and f"{kind.removesuffix('_type')}({name})"
    if kind in ("sequence_type", "optional_type"):
        inner = spelled(getattr(proto_type, kind).elem_type)
        return inner and f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    return ""


def without_new(node: onnx.NodeProto, version: int, older: int, defaults: bool = False) -> onnx.NodeProto:
    """A node of a version without the attributes that an older one lacks; `defaults`: of these only the needless."""
    schema, past = (schemas.find(node.domain, node.op_type, attribute) for attribute in (version, older))
    if schema is None or past is None:
        return node
    remaining = [
        attribute for attribute in node.attribute
        if attribute.name in past.attributes or (defaults and not _is_default(attribute, schema))
    ]  # fmt: skip
    spare = len(node.input) > past.max_input >= _count(node.input)  # only absent slots at the end
    if len(remaining) == len(node.attribute) and not spare:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(remaining)
    if spare:
        del copy.input[_count(node.input) :]
    return copy


_IMPLIED = {"dilations": 1, "strides": 1, "pads": 0, "output_padding": 0}
"""What each element of a list is that an operator takes where the attribute is left out; schemas do not say it."""


def _is_default(attribute: onnx.AttributeProto, schema: schemas.Schema) -> bool:
    spec = schema.attributes.get(attribute.name)
    if spec is None:
        return False
    if spec.default is None:
        neutral = _IMPLIED.get(attribute.name)
        return neutral is not None and set(attribute.ints) == {neutral}
    return _bare(attribute) == _bare(encode(spec.name, spec.default, spec.type))


def same(node: onnx.NodeProto, other: onnx.NodeProto, version: int) -> bool:
    """Whether two nodes of a version say the same: operator, wires, and attributes with their defaults."""
    return (
        node.op_type == other.op_type
        and list(node.input)[: _count(node.input)] == list(other.input)[: _count(other.input)]
        and list(node.output)[: _count(node.output)] == list(other.output)[: _count(other.output)]
        and _attributes(node, version) == _attributes(other, version)
    )


def same_with(
    constants: Mapping[str, onnx.TensorProto], nodes: Sequence[onnx.NodeProto], other: onnx.NodeProto, version: int
) -> bool:
    """Whether nodes are one node and its constants, and say the same as another one that reads `constants`."""
    held = [tensor for node in nodes if node.op_type == "Constant" and (tensor := constant_tensor(node)) is not None]
    rest = [node for node in nodes if node.op_type != "Constant"]
    inner = {**constants, **{tensor.name: tensor for tensor in held}}
    return len(rest) == 1 and same(_inlined(rest[0], inner), _inlined(other, constants), version)


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant node, under the name of its output; None for strings and sparse tensors."""
    attribute = next(iter(node.attribute), None)
    if attribute is None or attribute.ref_attr_name or attribute.name not in ("value", *_PLAIN):
        return None
    tensor = onnx.TensorProto()
    if attribute.name == "value":
        tensor.CopyFrom(attribute.t)
    else:
        tensor.CopyFrom(from_array(np.asarray(decode(attribute), _PLAIN[attribute.name])))
    tensor.name = node.output[0]
    return tensor


_PLAIN = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}


def _inlined(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> onnx.NodeProto:
    """A node with what its constant inputs hold in the place of their names."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for slot, name in enumerate(node.input):
        if name in constants:
            array = numpy_helper.to_array(constants[name])
            copy.input[slot] = f"{array.dtype} {array.shape} {array.tobytes().hex()}"
    return copy


def _attributes(node: onnx.NodeProto, version: int) -> dict[str, bytes]:
    schema = schemas.find(node.domain, node.op_type, version)
    specs = schema.attributes.values() if schema else ()
    attributes = {spec.name: encode(spec.name, spec.default, spec.type) for spec in specs if spec.default is not None}
    attributes.update((attribute.name, attribute) for attribute in node.attribute)
    return {name: _bare(attribute) for name, attribute in attributes.items()}


def _bare(attribute: onnx.AttributeProto) -> bytes:
    """An attribute without its documentation."""
    copy = onnx.AttributeProto()
    copy.CopyFrom(attribute)
    copy.ClearField("doc_string")
    return copy.SerializeToString(deterministic=True)
