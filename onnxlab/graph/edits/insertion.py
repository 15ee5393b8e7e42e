"""Put another model into this one: its nodes, tensors, functions and declarations under names that are free."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from onnxlab.errors import EditError
from onnxlab.graph import tensors
from onnxlab.graph.changes import InsertEntry, InsertFormal, InsertNode, SetInitializer
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.merging import adopt_functions, adopt_opsets, all_nodes, raise_ir_version
from onnxlab.graph.names import suggestion
from onnxlab.graph.records import NodeRecord, ValueRecord
from onnxlab.graph.renaming import Renaming, names_defined

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


@dataclass(frozen=True, slots=True)
class Inserted:
    """What came in.

    Attributes:
        nodes: in the order of the other model.
        names: what the other model's values are called here.
    """

    nodes: tuple[NodeRecord, ...]
    names: Mapping[str, str]


def insert_model(
    graph: "ModelGraph",
    other: "ModelGraph",
    connect: Mapping[str, ValueRecord] | None = None,
    prefix: str = "",
    add_outputs: bool = True,
) -> Inserted:
    """Put a copy of another model's graph behind the nodes of the main graph, as one step.

    Args:
        connect: the value that each input of the other model reads; those left out become inputs of this one.
        prefix: put before all names; names that are taken get a number behind them anyway.
        add_outputs: whether the other model's outputs become outputs of this one.

    Raises:
        EditError: it has no such input, or uses operators that mean something else at this model's opset version.
    """
    source = other.proto.graph
    wires = dict(connect or {})
    inputs = {info.name for info in source.input}
    if unknown := [name for name in wires if name not in inputs]:
        raise EditError(f"the other model has no input {unknown[0]!r}.{suggestion(unknown[0], inputs)}")
    if inner := [value for value in wires.values() if value.scope != graph.main.id]:
        raise EditError(f"{inner[0].name!r} belongs to an inner scope; connect values of the main graph")
    if other.proto.training_info:
        warnings.warn("the training information of the inserted model is left behind", stacklevel=3)
    fresh = FreshNames(graph)
    names = {name: wires[name].name if name in wires else fresh.value(prefix + name) for name in names_defined(source)}
    with graph.edit(f"insert {source.name or 'a model'}"):
        adopt_opsets(graph, other.proto.opset_import, all_nodes(source.node), graph.main, "the other model")
        raise_ir_version(graph, other.proto.ir_version)
        renamed = adopt_functions(graph, other.proto.functions)
        renaming = Renaming(names, lambda name: fresh.value(prefix + name), renamed)
        _insert_sources(graph, other, names, set(wires), renaming)
        nodes = tuple(_insert_nodes(graph, other, renaming, fresh, prefix))
        _insert_entries(graph, source, renaming, set(wires))
        if add_outputs:
            _insert_outputs(graph, source, renaming)
    return Inserted(nodes, names)


def _insert_sources(
    graph: "ModelGraph", other: "ModelGraph", names: Mapping[str, str], wired: set[str], renaming: Renaming
) -> None:
    """Inputs that are not wired, and stored tensors."""
    main, source = graph.main, other.proto.graph
    for info in source.input:
        if info.name not in wired:
            graph.apply(InsertFormal(main.id, "input", len(main.inputs), renaming.info(info)))
    for tensor in source.initializer:
        if tensor.name not in wired:
            graph.apply(SetInitializer(main.id, names[tensor.name], _tensor(graph, other, tensor, names[tensor.name])))
    for sparse in source.sparse_initializer:
        name = names[sparse.values.name]
        copy = onnx.SparseTensorProto()
        copy.CopyFrom(sparse)
        copy.values.name = name
        graph.apply(SetInitializer(main.id, name, copy, sparse=True))


def _tensor(graph: "ModelGraph", other: "ModelGraph", tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    """A copy under another name; data that lies beside the other model is read in."""
    copy = onnx.TensorProto()
    if tensor.data_location == onnx.TensorProto.EXTERNAL and other.base_dir != graph.base_dir:
        copy.CopyFrom(tensors.from_array(tensors.to_array(tensor, other.base_dir)))
        copy.metadata_props.extend(tensor.metadata_props)
        if tensor.doc_string:
            copy.doc_string = tensor.doc_string
    else:
        copy.CopyFrom(tensor)
    copy.name = name
    return copy


def _insert_nodes(
    graph: "ModelGraph", other: "ModelGraph", renaming: Renaming, fresh: FreshNames, prefix: str
) -> list[NodeRecord]:
    main, added = graph.main, []
    for node_id in other.index.topological(other.main):
        copy = renaming.node(other.nodes[node_id].proto)
        if copy.name:
            copy.name = fresh.node(prefix + copy.name)
        position = len(main.node_ids)
        graph.apply(InsertNode(main.id, position, copy))
        added.append(graph.nodes[main.node_ids[position]])
    return added


def _insert_entries(graph: "ModelGraph", source: onnx.GraphProto, renaming: Renaming, wired: set[str]) -> None:
    main = graph.main
    for info in source.value_info:
        if info.name in renaming.values and info.name not in wired:
            graph.apply(InsertEntry(main.id, "value_info", len(main.proto.value_info), renaming.info(info)))
    for annotation in source.quantization_annotation:
        if annotation.tensor_name in renaming.values and annotation.tensor_name not in wired:
            position = len(main.proto.quantization_annotation)
            graph.apply(InsertEntry(main.id, "quantization_annotation", position, renaming.annotation(annotation)))


def _insert_outputs(graph: "ModelGraph", source: onnx.GraphProto, renaming: Renaming) -> None:
    main = graph.main
    for info in source.output:
        named = renaming.info(info)
        vid = main.names.get(named.name, 0)
        if vid and vid not in main.outputs:
            graph.apply(InsertFormal(main.id, "output", len(main.outputs), named))
