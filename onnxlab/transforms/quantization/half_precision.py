"""Nodes that compute in half precision: weights and values between them are of half the bytes, with Casts around."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import onnx
from onnx import helper

from onnxlab import dtypes, schemas
from onnxlab.errors import LoadError
from onnxlab.graph.edit.changes import InsertNode, SetInputs, SetOutputs
from onnxlab.graph.edits import set_initializer
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.operator_schema import FormalParameter, Schema
from onnxlab.ops import find_traits
from onnxlab.shapes import TensorFact
from onnxlab.transforms.quantization.stored_weights import is_beyond, take_from_inputs, unfit
from onnxlab.transforms.receipt import RefusedRewrite
from onnxlab.transforms.rewriting import Rewriting

_COMPUTING: Final = (
    "convolution", "matrix", "recurrent", "normalization", "activation", "pooling", "reduction", "shape", "elementwise",
)  # fmt: skip
"""Families of operators whose results follow from numbers alone, so that they may be rounded."""

_SUMMING: Final = frozenset(("ConvInteger", "MatMulInteger"))


def run(rewriting: Rewriting, form: str, elem_type: int) -> None:
    """Let nodes of graphs and bodies compute in another type of floats wherever they can."""
    _Conversion(rewriting, form, elem_type).run()


@dataclass(frozen=True, slots=True)
class _Slots:
    """The inputs and outputs of a node that get the other type."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class _Conversion:
    """One conversion of a model.

    Args:
        rewriting: the model, in an open edit.
        form: the name under which applications are noted.
        elem_type: the type to compute in.
    """

    def __init__(self, rewriting: Rewriting, form: str, elem_type: int) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._form = form
        self._type = elem_type
        self._chosen: dict[int, _Slots] = {}
        self._made: set[int] = set()  # values that come in the other type
        self._beyond: set[int] = set()  # values that stay, since they reach further than the other type
        self._names: dict[int, str] = {}  # by value: the name under which it is had in the other type

    def run(self) -> None:
        """Choose the nodes, then change them, producers first."""
        for node in list(self._rewriting.nodes()):
            slots = self._choice(node)
            if isinstance(slots, str):
                root = self._graph.root(self._graph.scopes[node.scope])
                label = root.name if root.is_function else self._graph.label(node)
                self._rewriting.unfit[self._form, label] = RefusedRewrite(self._form, label, slots)
            elif slots is not None and self._is_allowed(node):
                self._chosen[node.id] = slots
                self._made.update(node.outputs[slot] for slot in slots.outputs)
            if node.id not in self._chosen and self._reaches_beyond(node):
                self._beyond.update(node.outputs)
        self._drop_idle()
        wide = {vid for vid in self._made if not self._is_read_in_half_alone(self._graph.values[vid])}
        stored = {vid for vid in self._stored() if self._is_read_in_half_alone(self._graph.values[vid])}
        nodes = [self._graph.nodes[ident] for ident in self._chosen]
        captions = [(self._rewriting.place(node), self._graph.label(node)) for node in nodes]  # both as they are before
        for node, caption in zip(nodes, captions, strict=True):
            self._change(node, self._chosen[node.id], wide, stored, caption)

    def _drop_idle(self) -> None:
        """Leave out nodes that move weights alone, where nothing chosen reads the result: a Cast would follow each."""
        for ident in reversed(list(self._chosen)):
            node = self._graph.nodes[ident]
            if not find_traits(node.domain, node.op_type).moves_only or not self._made.isdisjoint(node.inputs):
                continue
            uses = [use for vid in node.outputs if vid for use in self._graph.values[vid].uses]
            if not any(reader in self._chosen and slot in self._chosen[reader].inputs for reader, slot in uses):
                del self._chosen[ident]
                self._made.difference_update(node.outputs)

    def _is_allowed(self, node: NodeRecord) -> bool:
        most = self._rewriting.options.most
        return (most is None or len(self._chosen) < most) and self._rewriting.allows(
            self._form, self._rewriting.place(node)
        )

    # -- choosing ----------------------------------------------------------------------------------------------------

    def _choice(self, node: NodeRecord) -> _Slots | str | None:
        """The slots to convert; why a node with floats stays as it is; None for a node without floats."""
        inputs, outputs = self._floats(node.inputs), self._floats(node.outputs)
        if not inputs or node.bodies:
            return None  # bodies are converted by their nodes
        traits, schema = find_traits(node.domain, node.op_type), self._graph.schema(node)
        if (why := self._refusal(node, inputs)) or schema is None:
            return why
        slots = self._slots(schema, inputs, outputs)
        if not slots.inputs:
            return self._missing(node) if outputs else None
        sources = [node.inputs[slot] for slot in inputs]
        if not slots.outputs and not self._made.issuperset(sources):
            return None  # nothing follows in fewer bits, and what it reads would be rounded for it alone
        if traits.moves_only and not any(vid in self._made or self._is_stored(vid) for vid in sources):
            return None  # it computes nothing, so that the Cast behind it does as well
        return next(filter(None, (self._unfit(node, node.inputs[slot]) for slot in slots.inputs)), slots)

    def _refusal(self, node: NodeRecord, inputs: Sequence[int]) -> str:
        """The reason why a node keeps its type whatever its operator takes, "" where there is none."""
        traits, root = find_traits(node.domain, node.op_type), self._graph.root(self._graph.scopes[node.scope])
        if root.is_function or function_key(node.proto) in self._graph.index.functions:
            return "it is a function; inline it first"
        if self._graph.schema(node) is None:
            return f"{node.op_type} is unknown"
        is_computing = traits.category in _COMPUTING and not traits.random and node.op_type != "BitCast"
        if not is_computing or traits.shape == "data":
            return f"{node.op_type} keeps its type"
        if any(vid and not self._rewriting.elem_type(vid) for vid in node.inputs):
            return "the element type of an input is not known"
        if traits.moves_only and any(item.name == "reduction" and item.s != b"none" for item in node.proto.attribute):
            return "onnxruntime has no reduction of it in half precision"
        if any(self._is_quantized(node.inputs[slot]) for slot in inputs):
            return "what it reads is quantized; runtimes compute it in int8 as it stands"
        return ""

    def _missing(self, node: NodeRecord) -> str:
        """The reason why a node cannot compute in the type: its operator has none in this version of its domain."""
        name, imported = dtypes.name(self._type), self._graph.opset_version(node.domain) or 1
        for version in schemas.versions(node.domain, node.op_type):
            schema = schemas.find(node.domain, node.op_type, version)
            types = schema.type_constraints.values() if schema is not None and version > imported else ()
            if any(f"tensor({name})" in names for names in types):
                return f"{node.op_type} has no {name} before {node.domain or 'ai.onnx'} {version}"
        return f"{node.op_type} has no {name}"

    def _floats(self, values: Sequence[int]) -> list[int]:
        return [slot for slot, vid in enumerate(values) if vid and self._rewriting.elem_type(vid) == dtypes.FLOAT]

    def _slots(self, schema: Schema, inputs: Sequence[int], outputs: Sequence[int]) -> _Slots:
        """The slots whose formal parameters take the other type; outputs where an input decides their type."""
        type_str = f"tensor({dtypes.name(self._type)})"

        def takes(formal: FormalParameter | None) -> bool:
            return formal is not None and type_str in schema.type_constraints.get(formal.type_str, (formal.type_str,))

        formals = {slot: schema.input(slot) for slot in inputs}
        converted = tuple(slot for slot, formal in formals.items() if takes(formal))
        kinds = {formal.type_str for slot in converted if (formal := formals[slot]) is not None}
        following = tuple(
            slot for slot in outputs if (formal := schema.output(slot)) is not None and formal.type_str in kinds
        )
        return _Slots(converted, following)

    def _reaches_beyond(self, node: NodeRecord) -> bool:
        """Whether a node that stays as it is makes numbers beyond the other type, as those that mask elements are."""
        if node.op_type == "ConstantOfShape" and not node.domain:
            fills = [item.t for item in node.proto.attribute if item.t.data_type == dtypes.FLOAT]
            try:
                return any(is_beyond(tensors.to_array(fill, self._graph.base_dir), self._type) for fill in fills)
            except LoadError:
                return False  # it fails when the model runs, whatever is done here
        traits = find_traits(node.domain, node.op_type)
        return (traits.moves_only or traits.masks == "passed") and not self._beyond.isdisjoint(node.inputs)

    def _unfit(self, node: NodeRecord, vid: int) -> str:
        """The reason why a node cannot read a value in the other type, "" where it can."""
        value, traits = self._graph.values[vid], find_traits(node.domain, node.op_type)
        if vid in self._beyond and (traits.moves_only or traits.masks or traits.layer == "attention"):
            return f"{value.name} reaches beyond {dtypes.name(self._type)}"
        try:
            array = self._rewriting.constant(value)
        except LoadError as error:
            return f"{value.name} cannot be read: {error}"
        if array is None:
            return ""
        why = unfit(array, self._type)
        if why and is_beyond(array, self._type):
            self._beyond.add(vid)
        return f"{value.name}: {why}" if why else ""

    def _is_quantized(self, vid: int) -> bool:
        """Whether a value is quantized, or a sum of integers that is larger than float16 holds before it is scaled."""
        while producers := self._graph.values[vid].producers:
            maker = self._graph.nodes[producers[0][0]]
            if maker.op_type != "Cast":
                return maker.op_type in _SUMMING or find_traits(maker.domain, maker.op_type).category == "quantization"
            vid = maker.inputs[0]
        return False

    def _is_read_in_half_alone(self, value: ValueRecord) -> bool:
        return not value.formal_outputs and all(
            reader in self._chosen and slot in self._chosen[reader].inputs for reader, slot in value.uses
        )

    def _stored(self) -> Iterator[int]:
        """Constants that chosen nodes read in the other type."""
        for ident, slots in self._chosen.items():
            for slot in slots.inputs:
                vid = self._graph.nodes[ident].inputs[slot]
                if self._is_stored(vid):
                    yield vid

    def _is_stored(self, vid: int) -> bool:
        return isinstance(self._rewriting.stored(self._graph.values[vid]), onnx.TensorProto)

    # -- changing ----------------------------------------------------------------------------------------------------

    def _change(
        self, node: NodeRecord, slots: _Slots, wide: set[int], stored: set[int], caption: tuple[str, str]
    ) -> None:
        graph, names = self._graph, [*node.proto.input]
        for slot in slots.inputs:
            names[slot] = self._in_half(graph.values[node.inputs[slot]], stored)
        if names != list(node.proto.input):
            graph.apply(SetInputs(node.id, tuple(names)))
        for slot in slots.outputs:
            self._make(node, slot, wide)
        self._rewriting.note(self._form, *caption, f"{node.op_type} computes in {dtypes.name(self._type)}")

    def _in_half(self, value: ValueRecord, stored: set[int]) -> str:
        """The name under which a value is had in the other type; made where it is not yet."""
        if value.id not in self._names:
            if value.id in stored:
                self._store(value)
                return value.name
            self._names[value.id] = self._cast(value)
        return self._names[value.id]

    def _store(self, value: ValueRecord) -> None:
        """Store a constant in the other type under its own name."""
        array, maker = self._rewriting.constant(value), self._rewriting.maker(value)
        assert array is not None
        half, scope = array.astype(dtypes.to_numpy(self._type)), self._graph.scopes[value.scope]
        self._names[value.id] = value.name
        if maker is None:
            take_from_inputs(self._graph, scope, value)
            set_initializer(self._graph, value, half)
        else:
            self._rewriting.remove(maker)
            value = self._rewriting.store(value.name, half, scope)
            self._names[value.id] = value.name
        self._say(value.id, half.shape)

    def _say(self, vid: int, shape: "tuple[object, ...] | None") -> None:
        self._rewriting.say(vid, TensorFact(self._type, shape))  # type: ignore[arg-type]

    def _cast(self, value: ValueRecord) -> str:
        """Insert a Cast to the other type behind what makes a value; returns the name of its output."""
        scope = self._graph.scopes[value.scope]
        producer = self._graph.nodes.get(value.producers[0][0]) if value.producers else None
        position = scope.position(producer) + 1 if producer is not None else 0
        name = self._rewriting.fresh(f"{value.name}_{dtypes.name(self._type)}")
        node = helper.make_node("Cast", [value.name], [name], f"{name}/Cast", to=int(self._type))
        self._graph.apply(InsertNode(scope.id, position, node))
        return name

    def _make(self, node: NodeRecord, slot: int, wide: set[int]) -> None:
        """Let a node make a value in the other type, under another name where others read it in float32."""
        vid, graph = node.outputs[slot], self._graph
        value, scope, shape = graph.values[vid], graph.scopes[node.scope], self._rewriting.shape(vid)
        if vid not in wide:
            self._names[vid] = value.name
            self._say(vid, shape)
            return
        name, name32 = self._rewriting.fresh(f"{value.name}_{dtypes.name(self._type)}"), value.name
        outputs = [*node.proto.output]
        outputs[slot] = name
        graph.apply(SetOutputs(node.id, tuple(outputs)))
        cast = helper.make_node("Cast", [name], [name32], f"{name32}/Cast", to=int(dtypes.FLOAT))
        graph.apply(InsertNode(scope.id, scope.position(node) + 1, cast))
        self._names[vid] = self._names[scope.names[name32]] = name
        self._say(scope.names[name], shape)
