"""Models in ORT format to ModelProto: nodes sorted, opset imports back to what is used, the rest kept beside it."""

import heapq
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import onnx

from onnxlab.errors import LoadError
from onnxlab.formats.ort.reader import FlatBuffer, FlatTable, damaged
from onnxlab.formats.ort.runtime_optimizations import RuntimeOptimization, read_optimizations
from onnxlab.graph.protos import tensors
from onnxlab.schemas import canonical_domain

IDENTIFIER: Final = b"ORTM"
VERSIONS: Final = ("1", "2", "3", "4", "5", "6")
_NO_VERSION: Final = (1 << 63) - 1
_A = onnx.AttributeProto
_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
_PARAM, _VALUE = 2, 1


CPU: Final = "CPUExecutionProvider"
"""The execution provider of nodes without another one."""


@dataclass(frozen=True, slots=True)
class OrtExtra:
    """The content of a file in ORT format besides its model.

    Attributes:
        version: the version of the format, "1" to "6".
        opset_import: (domain, version) pairs of the file; ONNX Runtime lists every domain that it knows.
        kernel_types: {op id: [(kernel type string, [(0 for an input or 1 for an output, its place)])]}.
        counts: {op id: {number of inputs: how many belong to each formal one}}.
        optimizations: rewrites that the runtime may make when it loads the file.
        order: whether the file's nodes were in topological order.
        providers: {outputs of a node: its execution provider}, for nodes of other providers than the CPU's.
    """

    version: str
    opset_import: tuple[tuple[str, int], ...] = ()
    kernel_types: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    optimizations: tuple[RuntimeOptimization, ...] = ()
    order: bool = True
    providers: Mapping[tuple[str, ...], str] = field(default_factory=dict)


def decode(data: bytes) -> tuple[onnx.ModelProto, OrtExtra]:
    """The model in a file, and the further content of the file; raises LoadError where the file is damaged."""
    try:
        return _decoded(data)
    except (struct.error, ValueError, OverflowError, TypeError) as error:  # numbers out of the range of a proto's field
        raise error if isinstance(error, LoadError) else damaged(f"{error}") from None


def _decoded(data: bytes) -> tuple[onnx.ModelProto, OrtExtra]:
    session = FlatBuffer(data).root("InferenceSession")
    version = session.text("ort_version")
    if version not in VERSIONS:
        raise LoadError(f"it is in version {version!r:.40} of ORT format; versions 1 to 6 are read")
    stored = session["model"]
    if stored is None or stored["graph"] is None:
        raise LoadError("it is a file in ORT format without a graph: its session state alone is no model")
    reader = _Reader()
    model = onnx.ModelProto(ir_version=stored["ir_version"])
    for name in ("producer_name", "producer_version", "domain", "doc_string"):
        if name in stored:
            setattr(model, name, stored.text(name))
    if stored["model_version"] != _NO_VERSION:
        model.model_version = stored["model_version"]
    for entry in stored["metadata_props"]:
        model.metadata_props.add(key=entry.text("key"), value=entry.text("value"))
    reader.graph(stored["graph"], model.graph, "graph")
    if "graph_doc_string" in stored:
        model.graph.doc_string = stored.text("graph_doc_string")
    if _needs_4(model):
        model.ir_version = 4
    opsets = tuple((canonical_domain(entry.text("domain")), entry["version"]) for entry in stored["opset_import"])
    for domain, number in opsets:
        if domain in reader.domains or (not domain and not reader.domains):
            model.opset_import.add(domain=domain, version=number)
    resolver = session["kernel_type_str_resolver"]
    extra = OrtExtra(
        version, opsets, _kernel_types(resolver) if resolver is not None else {}, reader.counts,
        tuple(reader.optimizations), reader.sorted, reader.providers,
    )  # fmt: skip
    return model, extra


def _needs_4(model: onnx.ModelProto) -> bool:
    """Whether the IR version demands that initializers are inputs, and some are not: former Constant nodes."""
    inputs = {info.name for info in model.graph.input}
    return model.ir_version < 4 and any(tensor.name not in inputs for tensor in model.graph.initializer)


def _kernel_types(resolver: FlatTable) -> dict[str, Any]:
    return {
        entry.text("op_id"): [
            (kind.text("kernel_type_str"), [(place["arg_type"], place["index"]) for place in kind["args"]])
            for kind in entry["kernel_type_str_args"]
        ]
        for entry in resolver["op_kernel_type_str_args"]
    }


class _Reader:
    """Fills graphs, and gathers their domains, providers, counts and optimizations."""

    def __init__(self) -> None:
        self.domains: set[str] = set()
        self.counts: dict[str, dict[int, tuple[int, ...]]] = {}
        self.optimizations: list[RuntimeOptimization] = []
        self.sorted = True
        self.providers: dict[tuple[str, ...], str] = {}

    def graph(self, stored: FlatTable, graph: onnx.GraphProto, name: str) -> None:
        """Fill a graph; the format has no names of graphs."""
        graph.name = name
        for tensor in stored["initializers"]:
            fill_tensor(tensor, graph.initializer.add())
        for sparse in stored["sparse_initializers"]:
            _fill_sparse(sparse, graph.sparse_initializer.add())
        ends = {"input": stored.texts("inputs"), "output": stored.texts("outputs")}
        infos = {info.text("name"): info for info in stored["node_args"]}
        for field_name, names in ends.items():
            for entry in names:
                _fill_info(infos.get(entry), getattr(graph, field_name).add(name=entry))
        known = {"", *ends["input"], *ends["output"], *(tensor.name for tensor in graph.initializer)}
        by_index: dict[int, onnx.NodeProto] = {}
        for position, node in enumerate(_sorted(stored["nodes"])):
            self.sorted &= node[0] == position
            decoded = graph.node.add()
            self._node(node[1], decoded)
            by_index[node[1]["index"]] = decoded
        made_here = {name for node in graph.node for name in node.output} | known
        for info_name, info in infos.items():
            if info_name not in known and info_name in made_here and info["type"] is not None:
                _fill_info(info, graph.value_info.add(name=info_name))
        if stored["runtime_optimizations"] is not None:
            self.optimizations += read_optimizations(stored["runtime_optimizations"], by_index)

    def _node(self, stored: FlatTable, node: onnx.NodeProto) -> None:
        node.op_type = stored.text("op_type")
        if domain := stored.text("domain"):
            node.domain = domain
        self.domains.add(domain)
        for name in ("name", "doc_string"):
            if text := stored.text(name):
                setattr(node, name, text)
        node.input.extend(stored.texts("inputs"))
        node.output.extend(stored.texts("outputs"))
        for attribute in stored["attributes"]:
            self._attribute(attribute, node.attribute.add())
        provider = stored.text("execution_provider_type")
        if provider not in ("", CPU):
            self.providers[tuple(node.output)] = provider
        counts = tuple(map(int, stored["input_arg_counts"]))
        op_id = f"{domain}:{node.op_type}:{stored['since_version']}"
        self.counts.setdefault(op_id, {})[len(node.input)] = counts

    def _attribute(self, stored: FlatTable, attribute: onnx.AttributeProto) -> None:
        attribute.name, kind = stored.text("name"), stored["type"]
        if doc := stored.text("doc_string"):
            attribute.doc_string = doc
        if kind not in _FILL:
            raise LoadError(f"its attribute {attribute.name!r:.100} has the unknown type {kind}")
        attribute.type = kind
        name, fill = _FILL[kind]
        if kind == _A.GRAPH:
            if stored["g"] is None:
                raise damaged(f"the attribute {attribute.name!r:.100} has no graph")
            self.graph(stored["g"], attribute.g, attribute.name)
        elif kind == _A.GRAPHS:
            for body in stored["graphs"]:
                self.graph(body, attribute.graphs.add(), attribute.name)
        else:
            fill(attribute, stored[name])


def _fill_tensors(attribute: onnx.AttributeProto, stored: Sequence[FlatTable]) -> None:
    for tensor in stored:
        fill_tensor(tensor, attribute.tensors.add())


def _fill_one_tensor(attribute: onnx.AttributeProto, stored: FlatTable | None) -> None:
    if stored is None:
        raise damaged(f"the attribute {attribute.name!r:.100} has no tensor")
    fill_tensor(stored, attribute.t)


def _set(name: str) -> Any:
    return lambda attribute, value: setattr(attribute, name, value)


def _extend(name: str) -> Any:
    return lambda attribute, values: getattr(attribute, name).extend(values)


_FILL: Final[dict[int, tuple[str, Any]]] = {
    _A.FLOAT: ("f", _set("f")), _A.INT: ("i", _set("i")), _A.STRING: ("s", _set("s")),
    _A.TENSOR: ("t", _fill_one_tensor), _A.GRAPH: ("g", None), _A.FLOATS: ("floats", _extend("floats")),
    _A.INTS: ("ints", _extend("ints")), _A.STRINGS: ("strings", _extend("strings")),
    _A.TENSORS: ("tensors", _fill_tensors), _A.GRAPHS: ("graphs", None),
}  # fmt: skip


def fill_tensor(stored: FlatTable, tensor: onnx.TensorProto, in_file: bool = True) -> None:
    """Fill a TensorProto, with its data where `in_file` is set; raises LoadError where the file lacks the data."""
    tensor.name, tensor.data_type = stored.text("name"), stored["data_type"]
    if doc := stored.text("doc_string"):
        tensor.doc_string = doc
    tensor.dims.extend(stored["dims"])
    if not in_file:
        return
    if stored["external_data_offset"] >= 0:
        raise LoadError(f"its tensor {tensor.name!r:.100} is in another file, which ONNX Runtime does not read either")
    if tensor.data_type == onnx.TensorProto.STRING:
        tensor.string_data.extend(stored["string_data"])
    else:
        tensor.raw_data = bytes(stored["raw_data"])


def _fill_sparse(stored: FlatTable, sparse: onnx.SparseTensorProto) -> None:
    if stored["values"] is None or stored["indices"] is None:
        raise damaged("a sparse initializer lacks its values or indices")
    fill_tensor(stored["values"], sparse.values)
    fill_tensor(stored["indices"], sparse.indices)
    if sparse.indices.data_type != onnx.TensorProto.INT64:  # ONNX Runtime takes the smallest type that suffices
        sparse.indices.CopyFrom(tensors.from_array(tensors.to_array(sparse.indices).astype("<i8")))
    sparse.dims.extend(stored["dims"])


def _fill_info(stored: FlatTable | None, info: onnx.ValueInfoProto) -> None:
    if stored is None:
        return
    if doc := stored.text("doc_string"):
        info.doc_string = doc
    if stored["type"] is not None:
        _fill_type(stored["type"], info.type)


def _fill_type(stored: FlatTable, proto: onnx.TypeProto) -> None:
    if denotation := stored.text("denotation"):
        proto.denotation = denotation
    kind = stored["value_type"]
    if not kind or (inner := stored["value"]) is None:
        return
    if kind == _TENSOR:
        proto.tensor_type.elem_type = inner["elem_type"]
        if inner["shape"] is not None:
            proto.tensor_type.shape.SetInParent()
            for dim in inner["shape"]["dim"]:
                _fill_dim(dim, proto.tensor_type.shape.dim.add())
        return
    if kind == _SEQUENCE:
        proto.sequence_type.SetInParent()
        inner_type, target = inner["elem_type"], proto.sequence_type.elem_type
    else:
        proto.map_type.key_type = inner["key_type"]
        inner_type, target = inner["value_type"], proto.map_type.value_type
    if inner_type is not None:
        _fill_type(inner_type, target)


def _fill_dim(stored: FlatTable, dim: onnx.TensorShapeProto.Dimension) -> None:
    if denotation := stored.text("denotation"):
        dim.denotation = denotation
    value = stored["value"]
    if value is None:
        return
    if value["dim_type"] == _VALUE:
        dim.dim_value = value["dim_value"]
    elif value["dim_type"] == _PARAM:
        dim.dim_param = value.text("dim_param")


def _sorted(nodes: Sequence[FlatTable]) -> Iterator[tuple[int, FlatTable]]:
    """(place in the file, node) in topological order, else as in the file; nodes of a cycle come last."""
    maker = {name: place for place, node in enumerate(nodes) for name in node["outputs"] if name}
    needs = [
        {maker[name] for name in (*node["inputs"], *node["implicit_inputs"]) if name in maker} - {place}
        for place, node in enumerate(nodes)
    ]
    readers: dict[int, list[int]] = {}
    for place, before in enumerate(needs):
        for other in before:
            readers.setdefault(other, []).append(place)
    ready = [place for place, before in enumerate(needs) if not before]
    heapq.heapify(ready)
    done = set()
    while ready:
        place = heapq.heappop(ready)
        done.add(place)
        yield place, nodes[place]
        for reader in readers.get(place, ()):
            needs[reader].discard(place)
            if not needs[reader]:
                heapq.heappush(ready, reader)
    yield from ((place, node) for place, node in enumerate(nodes) if place not in done)
