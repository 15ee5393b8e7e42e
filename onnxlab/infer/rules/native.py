"""onnx's own C++ inference of one node, for every operator that has no rule here.

Facts go in as serialized TypeProtos, symbolic dims as opaque names that are recognized on the way back; only the
node's own inputs are passed, since the cost grows with what is passed. A dim that comes back without a size is a hole,
`hole(slot, axis)`: the caller replaces holes by symbols of the node at hand, so that results can be shared.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import onnx
import onnx.shape_inference

from onnxlab import dtypes
from onnxlab.infer.facts.policy import refined
from onnxlab.infer.facts.type_encoding import encode
from onnxlab.infer.facts.type_protos import fact_of_type, tensor_of_fact
from onnxlab.shapes import UNKNOWN, Dim, Expr, Fact, FactError, TensorFact, symbol

_names: WeakValueDictionary[str, Expr] = WeakValueDictionary()
_types: dict[Fact, bytes] = {}
_data: dict[Fact, bytes] = {}
_CACHED = 20_000
_CHECKED_ELSEWHERE = (
    "has unsupported type", "has inconsistent type", "has been deprecated", "not in range [min=",
)  # fmt: skip
"""Messages about what onnx refuses for one node but not in a model; `schema_checks` says more of these problems."""

_OWN_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training")

_infer_shapes = onnx.shape_inference.infer_shapes
infer_node_outputs = onnx.shape_inference.infer_node_outputs
"""onnx's own function, even where another is put in its place later."""
_REFUSALS = (
    onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError, MemoryError,
)  # fmt: skip

LONGEST_LIST = 4096
"""The longest list of sizes, axes or pieces that is passed to onnx's rules, which make as many dims or outputs."""

_VERSIONS = 2**31

_LISTS = frozenset(("tensor(int64)", "tensor(int32)"))
"""The types of inputs that list sizes or axes, which take no others."""

_INDICES = frozenset((
    "B", "I", "Y", "batch_indices", "indices", "labels", "nonpad_kv_seqlen", "position_ids", "sequence_lens", "target",
    "write_indices",
))  # fmt: skip
"""Names of inputs of these types that list neither sizes nor axes: onnx's rules make no dims of them."""

_TERM = r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(?:,{_TERM})*(?:->{_TERM})?")
"""The equation of an Einsum, without blanks. onnx's rule never ends where an equation has anything else in it."""


def hole(slot: int, axis: Hashable, minimum: int | None = 0) -> Dim:
    """Stands for an unknown size in output `slot` of whatever node the result is used for."""
    return symbol("?", key=("hole", slot, axis, minimum), minimum=minimum)


def _write(expr: Expr) -> str:
    name = f"\x01{expr.serial}"
    _names[name] = expr
    return name


def _type_bytes(fact: Fact) -> bytes:
    encoded = _types.get(fact)
    if encoded is None:
        if len(_types) > _CACHED:
            _types.clear()
        encoded = _types[fact] = encode(fact, _write)
    return encoded


def _data_bytes(fact: TensorFact) -> bytes:
    encoded = _data.get(fact)
    if encoded is None:
        if len(_data) > _CACHED:
            _data.clear()
        tensor = tensor_of_fact(fact)
        encoded = _data[fact] = tensor.SerializeToString() if tensor is not None else b""
    return encoded


def infer(
    schema: Any,
    node: onnx.NodeProto,
    inputs: Sequence[Fact | None],
    opsets: Mapping[str, int],
    ir_version: int,
    computed: Container[int] = (),
) -> list[Fact]:
    """Facts of a node's outputs by its onnx.defs.OpSchema.

    Args:
        computed: slots of inputs whose known elements onnx's rules see only as in a model where nodes compute them:
            as sizes, where a rule asks for sizes. A call then takes a hundred times as long.

    Raises:
        FactError: onnx rejects the node; the message is onnx's, without its prefix.
    """
    _refuse_counts(schema, node)
    _refuse_equation(schema, node)
    _refuse_versions({**opsets, "the IR": ir_version})
    inputs = [_of_few(schema, slot, fact) for slot, fact in enumerate(inputs)]
    types = {name: _type_bytes(fact) for name, fact in zip(node.input, inputs, strict=True) if fact is not None}
    data = {
        name: encoded
        for slot, (name, fact) in enumerate(zip(node.input, inputs, strict=True))
        if isinstance(fact, TensorFact) and fact.known is not None and slot not in computed
        if (encoded := _data_bytes(fact))
    }
    try:
        if schema.has_function and not schema.has_type_and_shape_inference_function:
            types_by_name = _by_model(node, types, data, opsets, ir_version)
        elif hasattr(schema, "_infer_node_outputs"):
            types_by_name = schema._infer_node_outputs(
                node.SerializeToString(), types, data, {}, dict(opsets), ir_version
            )
        else:
            types_by_name = by_public_function(schema, node, types, data, opsets, ir_version)
    except _REFUSALS as error:
        if not any(words in str(error) for words in _CHECKED_ELSEWHERE):
            raise FactError(_sentence(error), code="onnx-inference") from None
        try:
            types_by_name = _by_model(node, types, data, opsets, ir_version)
        except _REFUSALS as another:
            raise FactError(_sentence(another), code="onnx-inference") from None
    facts = [_fact(types_by_name.get(name, b""), slot) for slot, name in enumerate(node.output)]
    asks = range(len(inputs)) if schema.domain not in _OWN_DOMAINS else computed
    if asks and (shapes := _as_shapes(node, inputs, asks)):
        facts = _with_shapes(node, facts, types, data, shapes, opsets, ir_version)
    return _without_false_zeros(facts, inputs)


def _refuse_versions(versions: Mapping[str, int]) -> None:
    """Raise FactError for versions beyond the 32 bits in which onnx counts them."""
    for domain, version in versions.items():
        if not -_VERSIONS <= version < _VERSIONS:
            message = f"onnx has no rule for version {version} of {domain or 'ai.onnx'}"
            raise FactError(message, code="onnx-inference", expected="a version that exists", found=str(version))


def _refuse_counts(schema: Any, node: onnx.NodeProto) -> None:
    """Raise FactError where onnx's rule would run out of memory, or of its vectors, by a number in an attribute."""
    if schema.name != "Split" or schema.domain:
        return
    outputs = len(node.output)
    count = next((attribute.i for attribute in node.attribute if attribute.name == "num_outputs"), outputs)
    if not outputs <= count <= LONGEST_LIST + outputs:
        message = f"num_outputs is {count}, and it has {outputs} outputs"
        raise FactError(message, code="bad-attribute", expected=str(outputs), found=str(count))


def _refuse_equation(schema: Any, node: onnx.NodeProto) -> None:
    """Raise FactError where onnx's rule would read the equation of an Einsum for ever."""
    if schema.name != "Einsum" or schema.domain:
        return
    equation = next((attribute.s for attribute in node.attribute if attribute.name == "equation"), b"")
    if not _EQUATION.fullmatch(equation.decode("latin-1").replace(" ", "")):
        message = f"its equation is {equation.decode(errors='backslashreplace')!r}"
        expected = "letters, commas, '...' and '->'"
        raise FactError(message, code="attribute-value", expected=expected, hint="correct the equation")


def is_long_list(schema: Any, slot: int, fact: Fact | None) -> bool:
    """Whether an input is a list of sizes or axes that is too long for onnx's rules."""
    if not isinstance(fact, TensorFact) or fact.shape is None or len(fact.shape) != 1:
        return False
    length = fact.shape[0]
    if not isinstance(length, int) or length <= LONGEST_LIST:
        return False
    formal = schema.inputs[min(slot, len(schema.inputs) - 1)]
    return formal.name not in _INDICES and _LISTS.issuperset(formal.types)


def _of_few(schema: Any, slot: int, fact: Fact | None) -> Fact | None:
    """The fact without its size where that is the length of a list too long for onnx's rules."""
    if not is_long_list(schema, slot, fact):
        return fact
    return TensorFact(fact.elem_type, (hole(slot, 0),))  # type: ignore[union-attr]


def _as_shapes(node: onnx.NodeProto, inputs: Sequence[Fact | None], slots: Container[int]) -> dict[str, TensorFact]:
    """By name, a tensor with the dims that an input lists, for inputs that list sizes: numbers or expressions."""
    shapes = {}
    for slot, (name, fact) in enumerate(zip(node.input, inputs, strict=True)):
        known = fact.known if slot in slots and isinstance(fact, TensorFact) and fact.rank == 1 else None
        if known is not None and known.kind == "i":
            items = known.items
            if all(isinstance(item, Expr) or (isinstance(item, int) and item >= 0) for item in items):
                shapes[name] = TensorFact(dtypes.FLOAT, items)  # type: ignore[arg-type]
    return shapes


def _with_shapes(
    node: onnx.NodeProto,
    facts: list[Fact],
    types: Mapping[str, bytes],
    data: Mapping[str, bytes],
    shapes: Mapping[str, TensorFact],
    opsets: Mapping[str, int],
    ir_version: int,
) -> list[Fact]:
    """The facts with what is open filled in by the inference of a custom schema that asks for symbolic inputs.

    onnx passes symbolic inputs only where data propagation made them: here, a Shape before the node makes them.
    """
    sources = [onnx.NodeProto(op_type="Shape", input=[f"\x02{name}"], output=[name]) for name in shapes]
    kinds = {name: encoded for name, encoded in types.items() if name not in shapes}
    kinds |= {f"\x02{name}": _type_bytes(fact) for name, fact in shapes.items()}
    rest = {name: encoded for name, encoded in data.items() if name not in shapes}
    try:
        types_by_name = _by_model(node, kinds, rest, {"": 21, **opsets}, ir_version, sources)
    except _REFUSALS:
        return facts
    theirs = [_fact(types_by_name.get(name, b""), slot) for slot, name in enumerate(node.output)]
    return [refined(fact, other) for fact, other in zip(facts, theirs, strict=True)]


def _without_false_zeros(facts: list[Fact], inputs: Sequence[Fact | None]) -> list[Fact]:
    """The facts without dims of 0 that may come from symbolic dims: some of onnx's rules compute with these as 0."""
    dims = [dim for fact in inputs if fact is not None for dim in fact.shape or ()]
    if 0 in dims or not any(isinstance(dim, Expr) for dim in dims):
        return facts
    return [_zeros_as_holes(fact, slot) for slot, fact in enumerate(facts)]


def _zeros_as_holes(fact: Fact, slot: int) -> Fact:
    if not isinstance(fact, TensorFact) or fact.shape is None or 0 not in fact.shape:
        return fact
    return TensorFact(
        fact.elem_type, tuple(hole(slot, axis) if dim == 0 else dim for axis, dim in enumerate(fact.shape))
    )


def by_public_function(
    schema: Any,
    node: onnx.NodeProto,
    types: Mapping[str, bytes],
    data: Mapping[str, bytes],
    opsets: Mapping[str, int],
    ir_version: int,
) -> dict[str, bytes]:
    """Serialized types of the outputs by onnx's public function, where onnx lacks the private method."""
    outputs = infer_node_outputs(
        schema,
        node,
        {name: onnx.TypeProto.FromString(encoded) for name, encoded in types.items()},
        {name: onnx.TensorProto.FromString(encoded) for name, encoded in data.items()},
        {},
        [onnx.OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.items()],
        ir_version,
    )
    return {name: proto.SerializeToString() for name, proto in outputs.items()}


def _by_model(
    node: onnx.NodeProto,
    types: Mapping[str, bytes],
    data: Mapping[str, bytes],
    opsets: Mapping[str, int],
    ir_version: int,
    before: Sequence[onnx.NodeProto] = (),
) -> dict[str, bytes]:
    """Serialized types of the outputs by a model of this node and those `before` it: onnx walks function bodies."""
    model = onnx.ModelProto(ir_version=ir_version)
    model.opset_import.extend(onnx.OperatorSetIdProto(domain=d, version=v) for d, v in opsets.items())
    model.graph.node.extend((*before, node))
    for name, encoded in types.items():
        info = model.graph.input.add(name=name)
        info.type.MergeFromString(encoded)
        dims = info.type.tensor_type.shape.dim[:]
        if len(dims) == 1 and dims[0].dim_value > LONGEST_LIST:  # onnx's data propagation makes dims of any vector
            dims[0].ClearField("dim_value")
    for name, encoded in data.items():
        tensor = model.graph.initializer.add()
        tensor.MergeFromString(encoded)
        tensor.name = name
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    inferred = _infer_shapes(model, strict_mode=True, data_prop=True)
    return {info.name: info.type.SerializeToString() for info in inferred.graph.output}


def _fact(encoded: bytes, slot: int) -> Fact:
    if not encoded:
        return UNKNOWN
    return fact_of_type(onnx.TypeProto.FromString(encoded), lambda axis: hole(slot, axis), _ours)


def _ours(name: str) -> Dim:
    return _names.get(name) or symbol(name)


def _sentence(error: Exception) -> str:
    text = str(error).strip()
    return text.split("] ", 1)[-1] if text.startswith("[") else text
