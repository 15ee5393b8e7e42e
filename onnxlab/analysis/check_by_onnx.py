"""Findings of onnx's own checker on a model as a whole, where nothing else is wrong with it.

The rules here and onnx's inference of single nodes find most of what onnx refuses, one by one; its checker itself
judges bodies, functions and outputs. Large weights become inputs of their type, since the checker does not look at
their elements.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

import onnx
import onnx.checker
import onnx.shape_inference
from google.protobuf.message import Message

from onnxlab import dtypes
from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope
from onnxlab.graph.index.tables import function_key
from onnxlab.infer.rules.native import LONGEST_LIST, is_long_list
from onnxlab.shapes import Fact, TensorFact

CODE = "refused-by-onnx"
HINT = "onnxlab takes it; other tools that check as onnx does will not"

_WEIGHT = 1 << 16
_MOST_BYTES = 64 << 20
_MOST_NODES = 1_000_000
"""Limits of what onnx is asked: bytes of a weight that is left in, of the rest, nodes with all functions inlined."""

_IMPORTS_SINCE = 3
"""The IR version from which on a model imports opsets: onnx infers nothing for older models. onnx also does not read
sparse initializers as dense ones, as runtimes do."""

_REFUSALS = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, ValueError, MemoryError)
_INNERMOST = re.compile(r"\[(?:Shape|Type)InferenceError\] ")
_NODE = re.compile(r"\(op_type:([^,)]*)(?:, node name: ([^)]*))?\)")


def refusals(graph: ModelGraph, facts: Iterable[tuple[int, Fact]]) -> list[Diagnostic]:
    """The refusal of onnx's checker, inference included, as a warning; or nothing.

    Args:
        facts: with ids of all values, those of bodies and calls included: they tell whether onnx would take too long.
    """
    proto = graph.proto
    if graph.uninferred or proto.ir_version < _IMPORTS_SINCE or proto.graph.sparse_initializer:
        return []
    if _inlined(graph) > _MOST_NODES:
        return []
    for value, fact in facts:
        if reader := _reader_of_long_list(graph, value, fact):
            return [_unasked(graph, value, reader)]
    data = outline(proto)
    if not data:
        return []
    try:
        onnx.checker.C.check_model(data, True, False, False)
    except _REFUSALS as error:
        return [_diagnostic(graph, str(error).strip())]
    return []


def _reader_of_long_list(graph: ModelGraph, value: int, fact: Fact) -> int:
    """The node that takes a vector of integers for a list of axes or sizes where it is too long for one, 0 for none."""
    if type(fact) is not TensorFact or fact.elem_type not in (dtypes.INT64, dtypes.INT32) or fact.rank != 1:
        return 0
    for ident, slot in graph.values[value].uses if value in graph.values else ():
        schema = graph.schema(graph.nodes[ident])
        if schema is not None and schema.onnx is not None and is_long_list(schema.onnx, slot, fact):
            return ident
    return 0


def _unasked(graph: ModelGraph, value: int, reader: int) -> Diagnostic:
    node = graph.nodes[reader]
    message = (
        f"{graph.label(node)} ({node.op_type}): its input {graph.values[value].name!r} lists more than {LONGEST_LIST} "
        "sizes or axes, and onnx was not asked about the model"
    )
    hint = "see where the shape of the list comes from"
    return Diagnostic("warning", "list-too-long", message, reader, value, node.scope, hint=hint)


def _inlined(graph: ModelGraph) -> int:
    """The number of nodes that onnx walks: those of a function as often as it is called."""
    return _size(graph, graph.main, {}) if graph.index.functions else len(graph.nodes)


def _size(graph: ModelGraph, scope: Scope, sizes: dict[int, int]) -> int:
    """Nodes of a scope, of its bodies and of what it calls; `sizes` are those that are known, by id."""
    if scope.id not in sizes:
        sizes[scope.id] = 0  # ends a cycle of calls
        total = len(scope.node_ids)
        for node in map(graph.nodes.__getitem__, scope.node_ids):
            inner = [*itertools.chain.from_iterable(node.bodies.values())]
            if called := graph.index.functions.get(function_key(node.proto)):
                inner.append(called)
            total += sum(_size(graph, graph.scopes[ident], sizes) for ident in inner)
        sizes[scope.id] = total
    return sizes[scope.id]


def outline(proto: onnx.ModelProto) -> bytes:
    """A model with its large weights as inputs, serialized; empty where it is too large even so."""
    if not any(map(_is_large, proto.graph.initializer)):
        return proto.SerializePartialToString() if proto.ByteSize() < _MOST_BYTES else b""
    rest = onnx.ModelProto()
    _copy(proto, rest, "graph")
    _copy(proto.graph, rest.graph, "initializer")
    declared = {info.name for info in proto.graph.input}
    for tensor in proto.graph.initializer:
        if not _is_large(tensor):
            rest.graph.initializer.append(tensor)
        elif tensor.name not in declared:
            rest.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return rest.SerializePartialToString() if rest.ByteSize() < _MOST_BYTES else b""


def _is_large(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.ByteSize() > _WEIGHT


def _copy(source: Message, target: Message, left_out: str) -> None:
    """Copy the fields of a message but for one."""
    for field, value in source.ListFields():
        if field.name == left_out:
            continue
        if isinstance(value, Message):
            getattr(target, field.name).CopyFrom(value)
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            getattr(target, field.name).extend(value)
        else:
            setattr(target, field.name, value)


def _diagnostic(graph: ModelGraph, text: str) -> Diagnostic:
    """The refusal in one line, pinned to the node that it names, if there is one like that."""
    line = _INNERMOST.split(text)[-1].partition("\n")[0][:300]
    named = _NODE.search(text)
    ident = _node(graph, named[1], named[2] or "") if named else 0
    subject = f"{graph.label(graph.nodes[ident])} ({graph.nodes[ident].op_type})" if ident else "the model"
    scope = graph.nodes[ident].scope if ident else 0
    return Diagnostic("warning", CODE, f"onnx refuses {subject}: {line}", ident, 0, scope, hint=HINT)


def _node(graph: ModelGraph, op_type: str, name: str) -> int:
    """The one node of this operator and name, 0 where there are more, or none."""
    alike = [node.id for node in graph.nodes.values() if node.name == name and node.op_type == op_type]
    return alike[0] if len(alike) == 1 else 0
