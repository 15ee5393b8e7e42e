"""The functions of onnx.shape_inference, with their signatures, results and exceptions.

`infer_shapes` works on a copy and writes what it found: value_info for every value that a node makes, in the graph and
its subgraphs, and the types of graph outputs. Declared types are refined, as onnx does. Symbolic dims are written as
expressions of the model's own symbols ("2*seq + 1"), others as "unk__0", "unk__1", …
`infer_node_outputs` infers one node, `infer_function_output_types` one function; both leave unknown dims empty.
The results contain also what onnx's own rules alone know.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx
import onnx.shape_inference

from onnxlab import schemas
from onnxlab.errors import LoadError
from onnxlab.graph.edit.readonly_graph import ReadOnlyGraph
from onnxlab.graph.protos.nesting import nesting_refused
from onnxlab.infer.dropin.fact_writer import Writer
from onnxlab.infer.dropin.onnx_exceptions import refuse, refuse_cycles
from onnxlab.infer.facts.policy import Policy, is_unknown
from onnxlab.infer.facts.type_protos import type_of_fact
from onnxlab.infer.live.live_inference import Inference
from onnxlab.infer.rules import native
from onnxlab.shapes import Expr, text

LARGEST = (1 << 31) - 1
"""Bytes of the largest message that protobuf serializes."""

LARGE = 1 << 20
"""Bytes beyond which a message is freed at once; for a small graph, this would add a tenth to the work."""


@nesting_refused()
def infer_shapes(
    model: onnx.ModelProto | bytes, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto:
    """Return a copy of a model with the types and shapes that inference finds; a drop-in for onnx.shape_inference's.

    Args:
        model: ModelProto or its bytes.
        check_type: raise where an input's type is not one that its operator takes.
        strict_mode: raise for every error, where onnx raises; else infer what can be inferred.
        data_prop: follow the elements of small tensors through operators that compute shapes.

    Returns:
        onnx.ModelProto: the copy.

    Raises:
        TypeError: `model` is neither a ModelProto nor bytes.
        LoadError: the model has 2 GiB or more, or is nested deeper than protobuf reads.
        onnx.shape_inference.InferenceError: the model is wrong, in strict mode or with check_type; or it does not
            import the domain of an operator.
        onnx.checker.ValidationError: a function of the model calls itself.

    Examples:
        >>> inferred = onnxlab.infer_shapes(model.proto)
        >>> len(inferred.graph.value_info)
        23
    """
    if isinstance(model, (str, os.PathLike)):
        raise TypeError(
            "infer_shapes takes a ModelProto or bytes. For Model paths (str or os.PathLike), use infer_shapes_path(). "
            "Or read the file first: onnx.load(path)"
        )
    if not isinstance(model, (onnx.ModelProto, bytes)):
        raise TypeError(f"infer_shapes takes a ModelProto or bytes, not {type(model).__name__}")
    data = model if isinstance(model, bytes) else model.SerializeToString()
    if len(data) > LARGEST:
        raise LoadError(
            "infer_shapes takes a model below 2 GiB, which is what protobuf can serialize; keep its weights in "
            "external data, or ask onnxlab.load(model).fact(name), which needs no copy"
        )
    copy = onnx.ModelProto()
    copy.ParseFromString(data)
    ours = data if isinstance(model, onnx.ModelProto) else None  # other writers may order fields differently
    with _inferred(copy, check_type, strict_mode, data_prop, ours) as (graph, inference):
        Writer(graph, inference).write_scope(graph.main)
    return copy


@contextmanager
def _inferred(
    model: onnx.ModelProto, check_type: bool, strict: bool, data_prop: bool, data: bytes | None = None
) -> Iterator[tuple[ReadOnlyGraph, Inference]]:
    """A model inferred as onnx would, for the time of a `with`; raises what onnx raises.

    `data` is the model as the protobuf of this process serializes it, None where it is not serialized yet. The records
    of the graph refer to its index and to the message: Python's garbage collector frees them; those of a large model
    are freed at once.
    """
    refuse_cycles(model)
    graph = ReadOnlyGraph(model, data)
    inference = Inference(graph, Policy(data_prop, "refine", as_onnx=True, cross_check=strict))
    try:
        refuse(graph, inference, check_type, strict)
        yield graph, inference
    finally:
        if graph.met.size > LARGE:
            graph.take_apart()


@nesting_refused()
def infer_node_outputs(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    input_types: Mapping[str, onnx.TypeProto],
    input_data: Mapping[str, onnx.TensorProto] | None = None,
    input_sparse_data: Mapping[str, onnx.SparseTensorProto] | None = None,
    opset_imports: Sequence[onnx.OperatorSetIdProto] | None = None,
    ir_version: int = onnx.IR_VERSION,
) -> dict[str, onnx.TypeProto]:
    """Return the types of one node's outputs, of which anything is known; a drop-in for onnx.shape_inference's.

    Args:
        schema: schema of the node's operator; it need not be registered.
        node: the node; its subgraphs may refer to any value of `input_types`.
        input_types: types of the inputs, by value name.
        input_data: elements of inputs that are constants, by value name.
        input_sparse_data: elements of inputs that are sparse constants, by value name.
        opset_imports: opsets that the model around the node imports, by default the schema's `since_version`.
        ir_version: IR version of the model around the node.

    Returns:
        dict[str, onnx.TypeProto]: types by output name.

    Raises:
        KeyError: `input_types` lacks an input of the node.
        onnx.checker.ValidationError: the node has too few or too many inputs or outputs.
        onnx.shape_inference.InferenceError: the operator cannot take these inputs.

    Examples:
        >>> relu = onnx.helper.make_node("Relu", ["x"], ["y"])
        >>> given = {"x": onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2, 3])}
        >>> list(onnxlab.infer_node_outputs(onnx.defs.get_schema("Relu", 14), relu, given))
        ['y']
    """
    theirs = native.infer_node_outputs(
        schema,
        node,
        dict(input_types),
        dict(input_data or {}),
        dict(input_sparse_data or {}),
        list(opset_imports or ()),
        ir_version,
    )
    registered = schemas.find(schema.domain, schema.name, schema.since_version)
    if registered is None or registered.onnx is None or registered.since_version != schema.since_version:
        return theirs
    imports = {opset.domain: opset.version for opset in opset_imports or ()}
    model = onnx.ModelProto(ir_version=ir_version, graph=onnx.GraphProto(name="node", node=[node]))
    for domain, version in {"": schema.since_version, schema.domain: schema.since_version, **imports}.items():
        model.opset_import.add(domain=domain, version=version)
    model.graph.input.extend(
        onnx.ValueInfoProto(name=name, type=type_proto) for name, type_proto in input_types.items()
    )
    for name in node.input:
        if name in (input_data or {}):
            model.graph.initializer.add().CopyFrom(input_data[name])  # type: ignore[index]
            model.graph.initializer[-1].name = name
    for name in node.output:
        if name:
            model.graph.output.add(name=name).type.CopyFrom(theirs.get(name, onnx.TypeProto()))
    with _inferred(model, False, False, False) as (graph, inference):
        types = {name: _type_of(graph, inference, name) for name in node.output if name}
    return {name: proto for name, proto in types.items() if proto.WhichOneof("value")}


@nesting_refused()
def infer_function_output_types(
    function: onnx.FunctionProto, input_types: Sequence[onnx.TypeProto], attributes: Sequence[onnx.AttributeProto]
) -> list[onnx.TypeProto]:
    """Return the types of a function's outputs, in order; a TypeProto without a value where nothing is known.

    Args:
        function: a FunctionProto with the opsets that it imports.
        input_types: types of the inputs in order; a TypeProto without a value, or none at the end, for an input that
            is absent.
        attributes: attributes of the call.

    Returns:
        list[onnx.TypeProto]: types of the outputs in order.

    Raises:
        onnx.shape_inference.InferenceError: a node of the function cannot take its inputs.

    Examples:
        >>> body = [onnx.helper.make_node("Relu", ["x"], ["y"])]
        >>> function = onnx.helper.make_function("local", "F", ["x"], ["y"], body, [onnx.helper.make_opsetid("", 20)])
        >>> given = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2, 3])
        >>> onnxlab.infer_function_output_types(function, [given], [])[0].tensor_type.elem_type
        1
    """
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION, functions=[function])
    model.opset_import.extend(function.opset_import)
    if all(opset.domain != function.domain for opset in function.opset_import):
        model.opset_import.add(domain=function.domain, version=1)
    call = model.graph.node.add(
        op_type=function.name, domain=function.domain, overload=function.overload, attribute=attributes
    )
    call.output.extend(f"y{slot}" for slot in range(len(function.output)))
    for slot, type_proto in enumerate(input_types):
        present = type_proto.WhichOneof("value") is not None
        call.input.append(f"x{slot}" if present else "")
        if present:
            model.graph.input.add(name=f"x{slot}").type.CopyFrom(type_proto)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in call.output)
    with _inferred(model, True, True, False) as (graph, inference):
        return [_type_of(graph, inference, name) for name in call.output]


def _type_of(graph: ReadOnlyGraph, inference: Inference, name: str) -> onnx.TypeProto:
    return type_of_fact(inference.fact(graph.main.names[name]), _named)


def _named(dim: Expr) -> str | None:
    return None if is_unknown(dim) else text(dim)
