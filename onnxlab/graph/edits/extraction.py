"""A part of a model as a model of its own: what some values are computed from, up to where others are given."""

import warnings
from collections.abc import Callable, Iterable, Sequence

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.protos.renaming import nodes_inside
from onnxlab.graph.protos.value_info import describe

Declaration = Callable[[int], "onnx.ValueInfoProto | None"]
"""Returns the declaration of a value id, inferred or stated, None where nothing is known."""


def extract(
    graph: ModelGraph,
    outputs: Sequence[ValueRecord],
    inputs: Sequence[ValueRecord] = (),
    declaration: Declaration | None = None,
) -> onnx.ModelProto:
    """A new model that computes `outputs` from `inputs`, and from those graph inputs that are needed besides.

    Captured values, initializers, functions, declarations, quantization annotations, opsets, metadata and device
    configurations are copied too; training information is not, and a warning says so.
    All values are of one scope. Values that its nodes read from scopes around it become inputs, or initializers.

    Args:
        declaration: returns declarations for the inputs and outputs; default: those of the model.

    Raises:
        EditError: the values are of different scopes, a value has no producer, an input lies behind the outputs, or a
            node refers to an attribute of the function around it.
    """
    if not outputs:
        raise EditError("a model needs at least one output; name the values that it shall compute")
    scope = _common_scope(graph, [*outputs, *inputs])
    if graph.header.training_info:
        warnings.warn("the training information of the model is left behind", stacklevel=3)
    part = _Part(graph, scope, {value.id for value in inputs})
    part.collect([value.id for value in outputs])
    if apart := [value for value in inputs if not value.is_input and value.id not in part.reached]:
        behind, targets = (", ".join(repr(value.name) for value in values) for values in (apart, outputs))
        raise EditError(f"{targets} is not computed from {behind}; choose inputs that lie before the outputs")
    declare = declaration or (lambda vid: graph.values[vid].info)
    ids = [value.id for value in inputs] + part.found_inputs
    return part.model(dict.fromkeys(ids), [value.id for value in outputs], declare)


def _common_scope(graph: ModelGraph, values: Iterable[ValueRecord]) -> Scope:
    scopes = {value.scope: value for value in values}
    if len(scopes) > 1:
        first, second, *_ = scopes.values()
        raise EditError(f"{first.name!r} and {second.name!r} are in different graphs; choose values of one graph")
    return graph.scopes[next(iter(scopes))]


class _Part:
    """The nodes and values of an extraction so far."""

    def __init__(self, graph: ModelGraph, scope: Scope, stops: set[int]) -> None:
        self._graph = graph
        self._scope = scope
        self._stops = stops
        self._nodes: set[int] = set()
        self._stored: dict[int, None] = {}
        self.found_inputs: list[int] = []
        self.reached: set[int] = set()

    def collect(self, values: Iterable[int]) -> None:
        """Walk up from values to the stops, graph inputs and initializers."""
        graph = self._graph
        stack, seen = list(values), set(self._stops)
        while stack:
            vid = stack.pop()
            if vid in self._stops:
                self.reached.add(vid)
            if not vid or vid in seen:
                continue
            seen.add(vid)
            value = graph.values[vid]
            if value.scope != self._scope.id or not value.producers:
                self._source(value)
                continue
            for node_id, _ in value.producers:
                if node_id not in self._nodes:
                    self._nodes.add(node_id)
                    node = graph.nodes[node_id]
                    stack.extend([*node.inputs, *graph.index.captures(node)])
            stack.extend(self._annotated(value))

    def _source(self, value: ValueRecord) -> None:
        if value.initializer is not None:
            self._stored[value.id] = None
        if value.id in self._graph.index.undefined:
            raise EditError(f"{value.name!r} is read but nothing makes it; make it an input of the new model")
        if value.is_input or value.initializer is None:
            self.found_inputs.append(value.id)

    def _annotated(self, value: ValueRecord) -> list[int]:
        """Scales and zero points that a quantization annotation gives a value."""
        if self._scope.is_function:
            return []
        names = self._scope.names
        annotations = self._scope.proto.quantization_annotation
        return [
            names[entry.value]
            for position in self._scope.places("quantization_annotation").positions(value.name)
            if annotations[position].tensor_name == value.name
            for entry in annotations[position].quant_parameter_tensor_names
            if entry.value in names
        ]

    def model(self, inputs: Iterable[int], outputs: Iterable[int], declare: Declaration) -> onnx.ModelProto:
        source, values = self._graph.proto, self._graph.values
        model = onnx.ModelProto()
        for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
            if source.HasField(field):
                setattr(model, field, getattr(source, field))
        model.metadata_props.extend(source.metadata_props)
        model.configuration.extend(source.configuration)
        root = self._graph.root(self._scope)
        model.opset_import.extend((root.proto if root.is_function else source).opset_import)
        graph = model.graph
        graph.name = self._scope.name or "graph"
        if self._scope.proto.doc_string:
            graph.doc_string = self._scope.proto.doc_string
        graph.metadata_props.extend(self._scope.proto.metadata_props)
        self._add_nodes(graph)
        inputs, outputs = list(inputs), list(outputs)
        for infos, formals in ((graph.input, inputs), (graph.output, outputs)):
            for vid in formals:
                infos.append(self._declared(values[vid], declare))
        self._add_stored(graph)
        self._add_entries(graph, {*inputs, *outputs})
        self._add_functions(model)
        return model

    def _declared(self, value: ValueRecord, declare: Declaration) -> onnx.ValueInfoProto:
        """The declaration of an input or output of the part: an input of the model with its documentation."""
        known = value.info if value.is_input and value.info is not None else declare(value.id)
        info = onnx.ValueInfoProto()
        if known is not None:
            info.CopyFrom(known)
        info.name = value.name
        describe(info, value.info)
        return info

    def _add_nodes(self, graph: onnx.GraphProto) -> None:
        """The nodes, producers first. One that also makes a value which is given makes it under a name of no use."""
        records, values = self._graph.nodes, self._graph.values
        for node_id in self._order:
            node = graph.node.add()
            node.CopyFrom(records[node_id].proto)
            for slot, vid in enumerate(records[node_id].outputs):
                if vid in self._stops:
                    node.output[slot] = self._free(f"{values[vid].name}_unused")
        if not self._graph.root(self._scope).is_function:
            return
        for node in nodes_inside(graph.node):
            for attribute in node.attribute:
                if attribute.ref_attr_name:
                    raise EditError(
                        f"{node.name or node.op_type} takes {attribute.name!r} from the function's attribute "
                        f"{attribute.ref_attr_name!r}; inline the function first, then extract"
                    )

    @property
    def _order(self) -> list[int]:
        """The nodes, producers first."""
        graph, scope = self._graph, self._scope
        order = graph.index.topological(scope) if scope.backward else sorted(self._nodes, key=self._label)
        return [node for node in order if node in self._nodes]

    def _label(self, node: int) -> int:
        return self._graph.nodes[node].label

    def _free(self, name: str) -> str:
        while any(name in scope.names for scope in self._graph.scopes.values()):
            name += "_"
        return name

    def _add_stored(self, graph: onnx.GraphProto) -> None:
        for vid in self._stored:
            tensor = self._graph.values[vid].initializer
            if isinstance(tensor, onnx.SparseTensorProto):
                graph.sparse_initializer.append(tensor)
            else:
                graph.initializer.append(tensor)

    def _add_entries(self, graph: onnx.GraphProto, formal: set[int]) -> None:
        """Declarations and annotations of all values that came along."""
        records = self._graph.nodes
        computed = [vid for node in self._order for vid in records[node].outputs if vid and vid not in self._stops]
        for vid in dict.fromkeys([*computed, *self._stored]):
            value = self._graph.values[vid]
            if value.info is not None and vid not in formal and not value.is_input:
                graph.value_info.append(value.info)
        if self._scope.is_function:
            return
        present = {self._graph.values[vid].name for vid in [*computed, *self._stored, *formal]}
        for annotation in self._scope.proto.quantization_annotation:
            if annotation.tensor_name in present:
                graph.quantization_annotation.append(annotation)

    def _add_functions(self, model: onnx.ModelProto) -> None:
        """Functions that the nodes call, and those that these call, in the order of the file."""
        scopes, functions = self._graph.scopes, self._graph.index.functions
        needed: set[int] = set()
        waiting = list(nodes_inside(model.graph.node))
        while waiting:
            called = functions.get(function_key(waiting.pop()))
            if called is not None and called not in needed:
                needed.add(called)
                waiting.extend(nodes_inside(scopes[called].proto.node))
        model.functions.extend(
            scopes[function_id].proto for function_id in self._graph.index.function_ids if function_id in needed
        )
