"""Put another model into this one: its nodes, tensors, functions and declarations under names that are free."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from onnxlab import dtypes
from onnxlab.argument_types import several
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertEntry, InsertFormal, InsertNode, RemoveFormal, RenameValue, SetInitializer
from onnxlab.graph.edit.merging import adopt_configurations, adopt_functions, adopt_opsets, all_nodes, raise_ir_version
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.connecting import reading
from onnxlab.graph.edits.extraction import Declaration
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.renaming import Renaming, names_defined
from onnxlab.spelling import suggestion


@dataclass(frozen=True, slots=True)
class Inserted:
    """The nodes and values that came in.

    Attributes:
        nodes: the new nodes, in the order of the other model.
        names: the new names of the other model's values, by their names there.
    """

    nodes: tuple[NodeRecord, ...]
    names: Mapping[str, str]


@recorded
def insert_model(
    graph: ModelGraph,
    other: ModelGraph,
    connect: Mapping[str, ValueRecord] | None = None,
    prefix: str = "",
    add_outputs: bool | Iterable[str] = True,
    feed: Sequence[tuple[ValueRecord, str]] = (),
    declaration: Declaration | None = None,
) -> Inserted:
    """Put a copy of another model's graph behind the nodes of the main graph, or in front of them, as one step.

    Args:
        connect: the value that replaces each input of the other model; other inputs become inputs of this model.
        prefix: put before all names; names in use get a number behind them, too.
        add_outputs: outputs of the other model that become outputs of this one; True: all that are not in `feed`.
        feed: pairs (a value of this model, the output of the other model that its readers read instead). A graph input
            that no node reads any longer is removed.
        declaration: returns the declaration of a value id, to compare element types; default: those of the model.

    Raises:
        EditError: the other model has no such input or output, a wire would join two element types or close a cycle,
            or operators of the other model have another meaning at this model's opset version.
    """
    source = _source(graph, other)
    wires, outputs = dict(connect or {}), {info.name: info for info in source.output}
    words = "True, False, or names of outputs of the other model"
    chosen = list(outputs) if isinstance(add_outputs, bool) else several(add_outputs, str, "add_outputs", words)
    _known(wires, [info.name for info in source.input], "input")
    _known([*chosen, *(name for _, name in feed)], outputs, "output")
    _refuse_wires(graph, source, wires, feed, declaration or (lambda vid: graph.values[vid].info))
    if other.proto.training_info:
        warnings.warn("the training information of the inserted model is left behind", stacklevel=4)
    if isinstance(add_outputs, bool):
        used = {name for _, name in feed}
        chosen = [name for name in chosen if name not in used] if add_outputs else []
    readers = [(value, name, list(dict.fromkeys(node for node, _ in value.uses))) for value, name in feed]
    fresh = FreshNames(graph)
    names = {name: wires[name].name if name in wires else fresh.value(prefix + name) for name in names_defined(source)}
    with graph.edit():
        incoming = all_nodes(source.node)
        adopt_opsets(graph, other.proto.opset_import, incoming, graph.main, "the other model")
        raise_ir_version(graph, other.proto.ir_version)
        renamed = adopt_functions(graph, other.proto.functions, incoming, "the other model")
        renaming = Renaming(names, lambda name: fresh.value(prefix + name), renamed)
        _insert_sources(graph, other, source, names, set(wires), renaming)
        nodes = tuple(_insert_nodes(graph, other, renaming, fresh, prefix))
        _insert_entries(graph, source, renaming, set(wires))
        _insert_outputs(graph, [outputs[name] for name in chosen], renaming)
        for value, name, nodes_before in readers:
            _feed(graph, value, graph.values[graph.main.names[names[name]]], nodes_before)
        _take_freed_names(graph, names, [info.name for info in source.input if info.name not in wires], prefix)
    return Inserted(nodes, names)


def _known(names: Iterable[str], known: Collection[str], side: str) -> None:
    for name in names:
        if name not in known:
            near = suggestion(name, known) or f" It has {', '.join(map(repr, list(known)[:5])) or 'none'}."
            raise EditError(f"the other model has no {side} {name!r}.{near}")


def _refuse_wires(
    graph: ModelGraph,
    source: onnx.GraphProto,
    wires: Mapping[str, ValueRecord],
    feed: Sequence[tuple[ValueRecord, str]],
    declaration: Declaration,
) -> None:
    """Refuse wires between scopes, and between element types that are known and differ."""
    declared = {info.name: info for info in (*source.input, *source.output)}
    for value, name in [*((value, name) for name, value in wires.items()), *feed]:
        if value.scope != graph.main.id:
            raise EditError(f"{value.name!r} belongs to an inner scope; connect values of the main graph")
        known = declaration(value.id)
        ours = known.type.tensor_type.elem_type if known is not None else 0
        theirs = declared[name].type.tensor_type.elem_type
        if ours and theirs and ours != theirs:
            raise EditError(
                f"{value.name!r} is {dtypes.name(ours)} and {name!r} of the other model {dtypes.name(theirs)}; "
                "put a Cast between them"
            )


def _feed(graph: ModelGraph, old: ValueRecord, new: ValueRecord, readers: Iterable[int]) -> None:
    """Let nodes read the other model's outputs; a graph input without readers then goes, with its default."""
    for reader in readers:
        graph.apply(reading(graph, graph.nodes[reader], old, new))
    if old.is_input and not old.uses and not old.formal_outputs:
        main, stored = graph.main, old.initializer
        if stored is not None:
            sparse = isinstance(stored, onnx.SparseTensorProto)
            graph.apply(SetInitializer(main.id, old.name, None, sparse=sparse))
        graph.apply(RemoveFormal(main.id, "input", main.inputs.index(old.id)))


def _take_freed_names(graph: ModelGraph, names: dict[str, str], inputs: Iterable[str], prefix: str) -> None:
    """Give new inputs the names that they should have, where a graph input that they stand in for bore them."""
    for name in inputs:
        if names[name] != prefix + name and not any(prefix + name in scope.names for scope in graph.scopes.values()):
            graph.apply(RenameValue(graph.main.names[names[name]], prefix + name))
            names[name] = prefix + name


def _source(graph: ModelGraph, other: ModelGraph) -> onnx.GraphProto:
    """The graph to copy from; of a model that is put into itself as it is before."""
    source = onnx.GraphProto()
    if other is not graph:
        return other.proto.graph
    source.CopyFrom(graph.proto.graph)
    return source


def _insert_sources(
    graph: ModelGraph,
    other: ModelGraph,
    source: onnx.GraphProto,
    names: Mapping[str, str],
    wired: set[str],
    renaming: Renaming,
) -> None:
    """Inputs that are not wired, and stored tensors."""
    main = graph.main
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
        for part in ("values", "indices"):
            getattr(copy, part).CopyFrom(_tensor(graph, other, getattr(sparse, part), getattr(sparse, part).name))
        copy.values.name = name
        graph.apply(SetInitializer(main.id, name, copy, sparse=True))


def _tensor(graph: ModelGraph, other: ModelGraph, tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    """A copy under another name; data that lies beside the other model is read in."""
    copy = onnx.TensorProto()
    if tensor.data_location == onnx.TensorProto.EXTERNAL and other.base_dir != graph.base_dir:
        copy.CopyFrom(tensors.read_in(tensor, other.base_dir))
    else:
        copy.CopyFrom(tensor)
    copy.name = name
    return copy


def _insert_nodes(
    graph: ModelGraph, other: ModelGraph, renaming: Renaming, fresh: FreshNames, prefix: str
) -> list[NodeRecord]:
    main, added = graph.main, []
    configurations = adopt_configurations(graph, other.proto.configuration)
    for node_id in other.index.topological(other.main):
        copy = renaming.node(other.nodes[node_id].proto)
        if copy.name:
            copy.name = fresh.node(prefix + copy.name)
        for tensor in external_data.tensors_inside([copy]):
            if external_data.is_external(tensor):
                tensor.CopyFrom(_tensor(graph, other, tensor, tensor.name))
        for inner in all_nodes([copy]):
            for placed in inner.device_configurations:
                placed.configuration_id = configurations.get(placed.configuration_id, placed.configuration_id)
        position = len(main.node_ids)
        graph.apply(InsertNode(main.id, position, copy))
        added.append(graph.nodes[main.node_ids[position]])
    return added


def _insert_entries(graph: ModelGraph, source: onnx.GraphProto, renaming: Renaming, wired: set[str]) -> None:
    main = graph.main
    for info in source.value_info:
        if info.name in renaming.values and info.name not in wired:
            graph.apply(InsertEntry(main.id, "value_info", len(main.proto.value_info), renaming.info(info)))
    for annotation in source.quantization_annotation:
        if annotation.tensor_name in renaming.values and annotation.tensor_name not in wired:
            position = len(main.proto.quantization_annotation)
            graph.apply(InsertEntry(main.id, "quantization_annotation", position, renaming.annotation(annotation)))


def _insert_outputs(graph: ModelGraph, outputs: Iterable[onnx.ValueInfoProto], renaming: Renaming) -> None:
    main = graph.main
    for info in outputs:
        named = renaming.info(info)
        vid = main.names.get(named.name, 0)
        if vid and vid not in main.outputs:
            graph.apply(InsertFormal(main.id, "output", len(main.outputs), named))
