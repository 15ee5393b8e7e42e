"""ModelProto to ORT format: a prepared model, whose values all have types, as tables."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import onnx

from onnxlab.errors import SaveError
from onnxlab.formats.ort.decoding import CPU, IDENTIFIER, OrtExtra
from onnxlab.formats.ort.operators import (
    input_arg_counts,
    kernel_types,
    op_id,
    resolver_table,
    schema_of,
    schema_of_id,
)
from onnxlab.formats.ort.runtime_optimizations import RuntimeOptimization, optimization_tables
from onnxlab.formats.ort.writer import LARGEST, write
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.renaming import graphs_of, names_defined
from onnxlab.schemas import canonical_domain

_A = onnx.AttributeProto
_NO_VERSION: Final = (1 << 63) - 1
_LISTS = {_A.FLOATS: "floats", _A.INTS: "ints", _A.STRINGS: "strings"}


def encode(model: onnx.ModelProto, extra: OrtExtra | None, version: int) -> tuple[bytes, list[RuntimeOptimization]]:
    """The bytes of a prepared model, and the runtime optimizations that no longer apply to it.

    Args:
        extra: the further content of the file that the model came from.
        version: 6, or 4 for a file without the types that choose kernels.

    Raises:
        SaveError: the file would have 2 GiB or more, or the format lacks something that the model has.
    """
    size = sum(tensor.ByteSize() for tensor in model.graph.initializer)
    if size > LARGEST:
        raise SaveError("it would have 2 GiB or more, which FlatBuffers cannot hold")
    encoder = _Encoder({canonical_domain(entry.domain): entry.version for entry in model.opset_import}, extra)
    graph = encoder.graph(model.graph, {})
    stored = {
        "ir_version": model.ir_version,
        "opset_import": [{"domain": domain, "version": number} for domain, number in encoder.opsets.items()],
        "producer_name": model.producer_name,
        "producer_version": model.producer_version,
        "domain": model.domain,
        "model_version": model.model_version if model.HasField("model_version") else _NO_VERSION,
        "doc_string": model.doc_string,
        "graph": graph,
        "graph_doc_string": model.graph.doc_string,
        "metadata_props": [{"key": entry.key, "value": entry.value} for entry in model.metadata_props],
    }
    session: dict[str, Any] = {"ort_version": str(version), "model": stored}
    if version >= 5:
        session["kernel_type_str_resolver"] = resolver_table(encoder.kernel_types)
    room = size + 1024 * (len(model.graph.node) + 16)
    return write("InferenceSession", session, IDENTIFIER, room), encoder.dropped


class _Encoder:
    """Makes tables of graphs, and gathers the types of kernels that all graphs share."""

    def __init__(self, opsets: Mapping[str, int], extra: OrtExtra | None) -> None:
        self.opsets, self.extra = opsets, extra
        self.kernel_types: dict[str, Any] = {}
        self._providers = extra.providers if extra is not None else {}
        self._attributes: dict[bytes, dict[str, Any]] = {}
        self.dropped = list(extra.optimizations) if extra is not None else []

    def graph(self, graph: onnx.GraphProto, outer: Mapping[str, Any]) -> dict[str, Any]:
        """The table of a graph; `outer` has the types of the values around it."""
        types = {**outer, **dict(_types(graph))}
        implicit = [list(dict.fromkeys(captured(node))) for node in graph.node]
        optimizations, self.dropped = optimization_tables(self.dropped, graph)
        for entry in (optimizations or {}).get("records", ()):
            for record in entry["runtime_optimization_records"]:
                for ident in record["produced_op_ids"]:
                    self._add_kernel_types(ident)
        nodes = [self._node(node, place, implicit[place], types) for place, node in enumerate(graph.node)]
        return {
            "initializers": [tensor_table(tensor) for tensor in graph.initializer],
            "node_args": _node_args(graph, implicit, types),
            "nodes": nodes,
            "max_node_index": len(graph.node),
            "node_edges": edges(graph, implicit),
            "inputs": [info.name for info in graph.input],
            "outputs": [info.name for info in graph.output],
            "sparse_initializers": [_sparse_table(sparse) for sparse in graph.sparse_initializer],
            "runtime_optimizations": optimizations,
        }

    def _node(self, node: onnx.NodeProto, place: int, implicit: list[str], types: Mapping[str, Any]) -> dict[str, Any]:
        schema = schema_of(node, self.opsets)
        since = schema.since_version if schema is not None else self._since(node)
        ident = op_id(node.domain, node.op_type, since)
        if schema is not None:
            counts = input_arg_counts(schema, len(node.input))
        else:
            counts = list(self.extra.counts.get(ident, {}).get(len(node.input), ())) if self.extra else []
        self._add_kernel_types(ident)
        return {
            "name": node.name,
            "doc_string": node.doc_string,
            "domain": canonical_domain(node.domain),
            "since_version": since,
            "index": place,
            "op_type": node.op_type,
            "type": 0,
            "execution_provider_type": self._providers.get(tuple(node.output), CPU),
            "inputs": list(node.input),
            "outputs": list(node.output),
            "attributes": [self._attribute(attribute, types) for attribute in node.attribute],
            "input_arg_counts": counts or [1] * len(node.input),
            "implicit_inputs": implicit,
        }

    def _since(self, node: onnx.NodeProto) -> int:
        """The version of an operator without a schema, as in the file that the model came from."""
        prefix = op_id(node.domain, node.op_type, 0)[:-1]
        known = [ident for ident in (self.extra.counts if self.extra else ()) if ident.startswith(prefix)]
        return int(known[0].rpartition(":")[2]) if known else 1

    def _add_kernel_types(self, ident: str) -> None:
        if ident in self.kernel_types:
            return
        schema = schema_of_id(ident)
        known = self.extra.kernel_types.get(ident, []) if self.extra is not None else []
        self.kernel_types[ident] = kernel_types(schema) if schema is not None else known

    def _attribute(self, attribute: onnx.AttributeProto, types: Mapping[str, Any]) -> dict[str, Any]:
        """The table of an attribute; equal attributes share a table."""
        if attribute.type not in (_A.INT, _A.FLOAT, _A.INTS, _A.STRING):
            return self._made(attribute, types)
        key = attribute.SerializeToString()
        if key not in self._attributes:
            self._attributes[key] = self._made(attribute, types)
        return self._attributes[key]

    def _made(self, attribute: onnx.AttributeProto, types: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "name": attribute.name, "doc_string": attribute.doc_string or None, "type": attribute.type,
        }  # fmt: skip
        match attribute.type:
            case _A.FLOAT:
                fields["f"] = attribute.f
            case _A.INT:
                fields["i"] = attribute.i
            case _A.STRING:
                fields["s"] = attribute.s
            case _A.TENSOR:
                fields["t"] = tensor_table(attribute.t)
            case _A.GRAPH:
                if not attribute.HasField("g"):
                    raise SaveError(f"attribute {attribute.name!r} is a GRAPH without its graph")
                fields["g"] = self.graph(attribute.g, types)
            case _A.TENSORS:
                fields["tensors"] = [tensor_table(tensor) for tensor in attribute.tensors]
            case kind if kind in _LISTS:
                fields[_LISTS[kind]] = list(getattr(attribute, _LISTS[kind]))
            case kind:
                raise SaveError(f"attribute {attribute.name!r} is a {_A.AttributeType.Name(kind)}, not in ORT format")
        return fields


def captured(node: onnx.NodeProto) -> Iterator[str]:
    """Names that the bodies of a node read from outside of it, in the order in which they are read."""
    for attribute in node.attribute:
        for body in graphs_of(attribute):
            defined = names_defined(body)
            for inner in body.node:
                yield from (name for name in inner.input if name and name not in defined)
                yield from (name for name in captured(inner) if name not in defined)
            yield from (info.name for info in body.output if info.name not in defined)


def edges(graph: onnx.GraphProto, implicit: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Edges from every node to the readers of its outputs, and back; inputs and initializers have none."""
    producers = {
        name: (place, slot) for place, node in enumerate(graph.node) for slot, name in enumerate(node.output) if name
    }
    into: list[set[tuple[int, int, int]]] = [set() for _ in graph.node]
    out: list[set[tuple[int, int, int]]] = [set() for _ in graph.node]
    for place, node in enumerate(graph.node):
        for slot, name in enumerate((*node.input, *implicit[place])):
            if name in producers:
                maker, output = producers[name]
                into[place].add((maker, output, slot))
                out[maker].add((place, output, slot))
    return [
        {"node_index": place, "input_edges": sorted(into[place]), "output_edges": sorted(out[place])}
        for place in range(len(graph.node))
    ]


def _types(graph: onnx.GraphProto) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, {doc string, type}) of the values of a graph whose types are declared."""
    for name, elem, dims in (
        *((tensor.name, tensor.data_type, tensor.dims) for tensor in graph.initializer),
        *((sparse.values.name, sparse.values.data_type, sparse.dims) for sparse in graph.sparse_initializer),
    ):
        yield name, {"type": _type_of_tensor(elem, tuple(dims))}
    known: dict[bytes, dict[str, Any]] = {}
    for info in (*graph.value_info, *graph.output, *graph.input):
        if info.HasField("type"):
            key = info.type.SerializeToString()
            table = known.get(key)
            if table is None:
                table = known[key] = type_table(info.type, info.name)
            yield info.name, {"doc_string": info.doc_string or None, "type": table}


@lru_cache(1024)
def _type_of_tensor(elem: int, dims: tuple[int, ...]) -> dict[str, Any]:
    shape = {"dim": [{"value": {"dim_type": 1, "dim_value": dim}} for dim in dims]}
    return {"value": (1, {"elem_type": elem, "shape": shape})}


def _node_args(
    graph: onnx.GraphProto, implicit: Sequence[Sequence[str]], types: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Every value that a graph names, with its type; an absent input is one without a name."""
    names = dict.fromkeys(info.name for info in (*graph.input, *graph.output))
    names.update(dict.fromkeys(tensor.name for tensor in graph.initializer))
    names.update(dict.fromkeys(sparse.values.name for sparse in graph.sparse_initializer))
    for place, node in enumerate(graph.node):
        names.update(dict.fromkeys((*node.input, *implicit[place], *node.output)))
    return [{"name": name, **types.get(name, {})} for name in names]


def tensor_table(tensor: onnx.TensorProto) -> dict[str, Any]:
    """The table of a tensor."""
    fields: dict[str, Any] = {
        "name": tensor.name,
        "doc_string": tensor.doc_string or None,
        "dims": list(tensor.dims),
        "data_type": tensor.data_type,
    }
    if tensor.data_type == onnx.TensorProto.STRING:
        fields["string_data"] = list(tensor.string_data)
    elif tensor.HasField("raw_data"):
        fields["raw_data"] = tensor.raw_data
    else:
        fields["raw_data"] = tensors.from_array(tensors.to_array(tensor)).raw_data
    return fields


def _sparse_table(sparse: onnx.SparseTensorProto) -> dict[str, Any]:
    values, indices = tensor_table(sparse.values), tensor_table(sparse.indices)
    return {"values": values, "indices": indices, "dims": list(sparse.dims)}


def type_table(proto: onnx.TypeProto, name: str) -> dict[str, Any]:
    """The table of a type; raises SaveError for one that the format does not have."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            inner: dict[str, Any] = {"elem_type": proto.tensor_type.elem_type}
            if proto.tensor_type.HasField("shape"):
                inner["shape"] = {"dim": [_dim(dim) for dim in proto.tensor_type.shape.dim]}
            value = (1, inner)
        case "sparse_tensor_type":  # ONNX Runtime stores it as a tensor type
            value = (1, {"elem_type": proto.sparse_tensor_type.elem_type})
        case "sequence_type":
            value = (2, {"elem_type": type_table(proto.sequence_type.elem_type, name)})
        case "map_type":
            key = proto.map_type.key_type
            value = (3, {"key_type": key, "value_type": type_table(proto.map_type.value_type, name)})
        case kind:
            raise SaveError(
                f"the type of {name!r} is {kind or 'not known'}; ORT format has tensors, sequences and maps"
            )
    return {"denotation": proto.denotation or None, "value": value}


def _dim(dim: onnx.TensorShapeProto.Dimension) -> dict[str, Any]:
    match dim.WhichOneof("value"):
        case "dim_value" if dim.dim_value >= 0:  # some exporters write negative sizes for unknown ones
            value: dict[str, Any] = {"dim_type": 1, "dim_value": dim.dim_value}
        case "dim_param" if not dim.dim_param.startswith("unk__"):  # inference's names for unknown dims
            value = {"dim_type": 2, "dim_param": dim.dim_param}
        case _:
            value = {}
    return {"value": value, "denotation": dim.denotation or None}
