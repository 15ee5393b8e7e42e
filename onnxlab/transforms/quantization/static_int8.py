"""Nodes in 8 bits: QuantizeLinear and DequantizeLinear around them, which runtimes fuse into products of integers.

What makes a value keeps its node under another name; the DequantizeLinear behind it makes the value, so that readers
and outputs stay as they are. Values that such a node does not make are quantized beside their readers in floats.
"""

from onnx import helper

from onnxlab.graph.edit.changes import InsertNode, SetInputs, SetOutputs
from onnxlab.graph.index.records import NodeRecord
from onnxlab.transforms.quantization import integers
from onnxlab.transforms.quantization.calibration import Calibration
from onnxlab.transforms.quantization.int8_nodes import BIAS, DATA, WEIGHT, Int8Nodes, channel_axis
from onnxlab.transforms.quantization.stored_weights import put, remove_constant
from onnxlab.transforms.rewriting import Array, Rewriting


def run(rewriting: Rewriting, form: str, calibration: Calibration) -> None:
    """Compute the nodes of the main graph in 8 bits that can be."""
    nodes = Int8Nodes(rewriting, form, calibration)
    nodes.choose()
    nodes.tell()
    _Conversion(rewriting, form, calibration, nodes).run()


class _Conversion:
    """One conversion of a model.

    Args:
        rewriting: the model, in an open edit.
        form: the name under which applications are noted.
        calibration: ranges of values.
        nodes: the chosen nodes.
    """

    def __init__(self, rewriting: Rewriting, form: str, calibration: Calibration, nodes: Int8Nodes) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._form = form
        self._calibration = calibration
        self._nodes = nodes
        chosen = nodes.nodes.values()
        self._inputs = {node.id: list(node.inputs) for node in chosen}  # all as they are before
        self._outputs = {node.id: list(node.outputs) for node in chosen}
        computing = [node for node in chosen if nodes.role(node) != "moved"]
        self._clipped = {vid for node in computing for vid in node.outputs if vid and nodes.is_clipped_after(vid)}
        makes = {vid for node in chosen for vid in node.outputs if vid in nodes.values} - self._clipped
        self._names = {vid: self._graph.values[vid].name for vid in makes | self._clipped}
        self._sources = {vid: self._graph.values[nodes.source(vid)].name for vid in nodes.values}
        self._scales: dict[int, tuple[Array, Array]] = {}
        self._weights: dict[tuple[int, bytes], str] = {}  # by value and scales: the name of it as floats again
        self._stored_scales: dict[tuple[str, str], str] = {}  # by the value that they are of
        self._copied: set[int] = set()  # constants that others read too, as they were

    def run(self) -> None:
        """Change the nodes, producers first."""
        chosen = [*self._nodes.nodes.values()]
        captions = [(self._rewriting.place(node), self._graph.label(node)) for node in chosen]
        for node, caption in zip(chosen, captions, strict=True):
            effect = self._change(node)
            self._rewriting.note(self._form, *caption, effect)

    def _scale(self, vid: int) -> tuple[Array, Array]:
        """Scale and zero point of a value."""
        if vid not in self._scales:
            low, high = self._calibration.ranges[self._sources[vid]]
            self._scales[vid] = integers.of_range(low, high, self._calibration.activations)
        return self._scales[vid]

    def _change(self, node: NodeRecord) -> str:
        """Let a node read and make 8 bits; the effect in words."""
        names, effect, before = [*node.proto.input], "", self._inputs[node.id]
        role = self._nodes.role(node)
        for slot in self._nodes.data(node):
            if not self._nodes.is_stored(before[slot]):
                names[slot] = self._read(before[slot])
            elif role == "pointwise":
                names[slot] = self._stored(before[slot], self._constant(before[slot]))
        if role == "product" and self._nodes.is_stored(before[WEIGHT]):
            effect = self._change_weight(node, names)
        if names != list(node.proto.input):
            self._graph.apply(SetInputs(node.id, tuple(names)))
        for vid in self._copied.intersection(before):
            self._drop(vid)
        for slot, vid in enumerate(self._outputs[node.id]):
            if vid in self._names and vid not in self._clipped:
                self._make(node, slot, vid)
        return f"{node.op_type} computes in 8 bits{effect}"

    def _constant(self, vid: int) -> list[Array]:
        array = self._nodes.constant(vid)
        assert array is not None
        return integers.of_constant(array, self._calibration.activations)

    # -- weights -----------------------------------------------------------------------------------------------------

    def _change_weight(self, node: NodeRecord, names: list[str]) -> str:
        """Store the weight of a product as int8 and its bias as int32; the effect in words."""
        before, bias = self._inputs[node.id], None
        scale = self._scale(before[DATA])[0]
        weight = self._nodes.constant(before[WEIGHT])
        assert weight is not None
        axis, least = channel_axis(node, weight), None
        if len(before) > BIAS and before[BIAS]:
            bias = self._nodes.constant(before[BIAS])
            assert bias is not None
            bias = bias.reshape(-1)
            least = integers.least_scales(bias, scale, axis is not None)
        bits = 7 if self._calibration.reduce_range else 8
        parts = integers.of_weight(weight, axis, bits, least)
        names[WEIGHT] = self._stored(before[WEIGHT], parts, axis)
        if bias is not None:
            names[BIAS] = self._stored(before[BIAS], integers.of_bias(bias, scale, parts[1]), 0)
        sizes = f"{weight.nbytes:,} bytes become {sum(part.nbytes for part in parts):,}"
        return f"; {sizes}, off by {integers.error_of(weight, parts, axis):.2g} %"

    def _stored(self, vid: int, parts: list[Array], axis: int | None = None) -> str:
        """The name of a constant, made of integers; it keeps its own where nothing reads it as it was."""
        value = self._nodes.original(vid)
        key = value.id, parts[1].tobytes()
        if key not in self._weights:
            name = value.name
            if value.id != vid or len(value.uses) > 1 or value.formal_outputs:
                name = self._rewriting.fresh(f"{self._graph.values[vid].name}_dequantized")
            self._copied |= {vid, value.id} if name != value.name else set()
            attributes = {} if axis is None or not parts[1].ndim else {"axis": axis}
            put(self._rewriting, self._graph.scopes[value.scope], value, parts, attributes, name)
            self._weights[key] = name
        return self._weights[key]

    def _drop(self, vid: int) -> None:
        """Take out a constant that nothing reads any more, and what it is another name of."""
        value = self._graph.values.get(vid)
        if value is None or value.uses or value.formal_outputs:
            return
        maker = self._rewriting.maker(value)
        read = [] if maker is None else [source for source in maker.inputs if source]
        remove_constant(self._rewriting, value)
        for source in read:
            self._drop(source)

    # -- values ------------------------------------------------------------------------------------------------------

    def _read(self, vid: int) -> str:
        """The name under which a value is had as floats that 8 bits hold; its own where it is only clipped here."""
        if vid not in self._names and vid not in self._sources:
            return self._graph.values[vid].name
        if vid not in self._names:
            value = self._graph.values[vid]
            producer = self._graph.nodes.get(value.producers[0][0]) if value.producers else None
            position = 0 if producer is None else self._graph.main.position(producer) + 1
            self._names[vid] = self._rewriting.fresh(f"{value.name}_dequantized")
            self._pair(value.name, self._names[vid], vid, position)
        return self._names[vid]

    def _make(self, node: NodeRecord, slot: int, vid: int) -> None:
        """Let a node make a value under another name, and a DequantizeLinear make it as it is read."""
        name = self._names[vid]
        outputs = [*node.proto.output]
        outputs[slot] = self._rewriting.fresh(f"{name}_float")
        self._graph.apply(SetOutputs(node.id, tuple(outputs)))
        self._pair(outputs[slot], name, vid, self._graph.main.position(node) + 1)

    def _pair(self, source: str, result: str, vid: int, position: int) -> None:
        """Insert a QuantizeLinear and a DequantizeLinear."""
        name, main = self._sources[vid], self._graph.main
        parts = []
        for word, array in zip(("scale", "zero_point"), self._scale(vid), strict=True):
            key = name, word
            if key not in self._stored_scales:
                self._stored_scales[key] = self._rewriting.fresh(f"{name}_{word}")
                self._rewriting.store(self._stored_scales[key], array)
            parts.append(self._stored_scales[key])
        middle = self._rewriting.fresh(f"{result}_quantized")
        for op_type, read, target in (("QuantizeLinear", source, middle), ("DequantizeLinear", middle, result)):
            called = self._rewriting.fresh(f"{result}/{op_type}", node=True)
            pair = helper.make_node(op_type, [read, *parts], [target], called)
            self._graph.apply(InsertNode(main.id, position, pair))
            position += 1
