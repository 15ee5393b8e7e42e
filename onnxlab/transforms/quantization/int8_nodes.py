"""The nodes that are computed in 8 bits, and the values between them, by the traits of operators and by ranges."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.ops import find_traits
from onnxlab.transforms.quantization.calibration import Calibration
from onnxlab.transforms.quantization.stored_weights import is_set, needed, unfit
from onnxlab.transforms.receipt import RefusedRewrite
from onnxlab.transforms.rewriting import Array, Rewriting

DATA, WEIGHT, BIAS = 0, 1, 2
"""Slots of a product."""


@dataclass(slots=True)
class Int8Nodes:
    """The choice of nodes.

    Args:
        rewriting: the model, in an open edit.
        form: the name under which applications are noted.
        calibration: ranges of values.

    Attributes:
        nodes: the chosen nodes, by id, producers first.
        values: values that are had in 8 bits, by id.
        why: why nodes that could be computed so are not, by id.
    """

    rewriting: Rewriting
    form: str
    calibration: Calibration
    nodes: dict[int, NodeRecord] = field(default_factory=dict)
    values: set[int] = field(default_factory=set)
    why: dict[int, str] = field(default_factory=dict)

    def choose(self) -> None:
        """Choose products, and then what stands between them."""
        main, graph = self.rewriting.graph.main, self.rewriting.graph
        nodes = [node for node in self.rewriting.nodes() if not is_constant(node)]
        inner = [node for node in nodes if node.scope != main.id]
        nodes = [node for node in nodes if node.scope == main.id]
        products = {node.id for node in nodes if self.role(node) == "product" and self._fits(node)}
        for ident in products:
            self.values.update(self._values(graph.nodes[ident]))
            if find_traits(graph.nodes[ident].domain, graph.nodes[ident].op_type).layer == "convolution":
                self.values.add(graph.nodes[ident].outputs[0])  # runtimes have none that makes floats
        for node in reversed(nodes):
            self._want_before(node)
        for node in nodes:
            if node.id in products or self._stands_between(node, products):
                self.nodes[node.id] = node
                self.values.update(self._made(node) if node.id not in products else ())
                self.values.update(self._values(node) if self.role(node) == "pointwise" else ())
        for node in inner:
            if self.role(node) == "product":
                self.why[node.id] = "calibration measures values of the main graph alone"
        for node in nodes:
            if node.id not in self.nodes and node.id not in self.why and self._has_floats(node):
                self.why[node.id] = (
                    "nothing next to it is in 8 bits"
                    if self.role(node)
                    else f"runtimes compute {node.op_type} in floats"
                )
        most = self.rewriting.options.most
        allowed = [node for node in self.nodes.values() if self.rewriting.allows(self.form, self.rewriting.place(node))]
        self.nodes = {node.id: node for node in allowed[:most]}

    def tell(self) -> None:
        """Say which nodes stay, and why."""
        for ident, why in self.why.items():
            label = self.rewriting.graph.label(self.rewriting.graph.nodes[ident])
            self.rewriting.unfit[self.form, str(ident)] = RefusedRewrite(self.form, label, why)

    def role(self, node: NodeRecord) -> str:
        """The trait `int8` of a node."""
        return find_traits(node.domain, node.op_type).int8

    def data(self, node: NodeRecord) -> list[int]:
        """The slots of a node that 8 bits are for."""
        role = self.role(node)
        slots = [DATA, WEIGHT] if role == "product" else [DATA] if role != "pointwise" else range(len(node.inputs))
        return [slot for slot in slots if slot < len(node.inputs) and node.inputs[slot]]

    def is_stored(self, vid: int) -> bool:
        """Whether a value is constant."""
        return self.rewriting.stored(self.original(vid)) is not None

    def constant(self, vid: int) -> Array | None:
        """The elements of a constant value, None for any other."""
        return self.rewriting.constant(self.original(vid))

    def original(self, vid: int) -> ValueRecord:
        """The value itself, or the one that it is another name of: exporters name a weight twice by Identity."""
        value = self.rewriting.graph.values[vid]
        while (maker := self.rewriting.maker(value)) is not None and maker.op_type == "Identity" and not maker.domain:
            value = self.rewriting.graph.values[maker.inputs[0]]
        return value

    def is_clipped_after(self, vid: int) -> bool:
        """Whether all that reads a value is one chosen node that the next QuantizeLinear makes needless."""
        value = self.rewriting.graph.values[vid]
        if value.formal_outputs or len(value.uses) != 1 or not value.producers:
            return False
        reader, slot = next(iter(value.uses))
        return slot == DATA and reader in self.nodes and self.role(self.nodes[reader]) == "clipped"

    def source(self, vid: int) -> int:
        """The value whose scale a value shares: what is only moved has that of what it is moved from."""
        while producers := self.rewriting.graph.values[vid].producers:
            node = self.nodes.get(producers[0][0])
            if node is None or self.role(node) != "moved":
                break
            vid = node.inputs[DATA]
        return vid

    def _values(self, node: NodeRecord) -> Iterator[int]:
        """The values that a node reads in 8 bits, constants left out."""
        for slot in self.data(node):
            if not self.is_stored(node.inputs[slot]):
                yield node.inputs[slot]

    def _made(self, node: NodeRecord) -> Iterator[int]:
        """The values that a node makes in 8 bits, indices left out."""
        for vid in node.outputs:
            if vid and self.rewriting.elem_type(vid) == dtypes.FLOAT:
                yield vid

    def _has_floats(self, node: NodeRecord) -> bool:
        return any(vid and self.rewriting.elem_type(vid) == dtypes.FLOAT for vid in node.outputs)

    def _want_before(self, node: NodeRecord) -> None:
        """Want what a node moves in 8 bits where they are wanted behind it, and others read it, too.

        onnxruntime moves a QuantizeLinear up past such nodes, with a range that need not be that of what it meets.
        """
        if not self._moves_one(node) or node.outputs[0] not in self.values or not self._fits(node):
            return
        data = node.inputs[DATA]
        if not self.is_stored(data) and self._is_read_besides(data):
            self.values.add(data)

    def _is_read_besides(self, vid: int) -> bool:
        """Whether a value, or one that it is moved from, has more than one reader."""
        while True:
            value = self.rewriting.graph.values[vid]
            if value.formal_outputs or len(value.uses) > 1:
                return True
            maker = self.rewriting.maker(value)
            if maker is None or not self._moves_one(maker):
                return False
            vid = maker.inputs[DATA]

    def _moves_one(self, node: NodeRecord) -> bool:
        return self.role(node) == "moved" and len(node.outputs) == 1 and bool(node.inputs)

    def _stands_between(self, node: NodeRecord, products: set[int]) -> bool:
        """Whether a node that is no product is computed in 8 bits, since what is next to it is."""
        role = self.role(node)
        if role in ("", "product") or not (read := list(self._values(node))):
            return False
        is_wanted = any(vid in self.values for vid in node.outputs if vid)
        makers = [self.rewriting.maker(self.rewriting.graph.values[vid]) for vid in read]
        is_next = any(maker is not None and maker.id in self.nodes for maker in makers)
        inside = [vid in self.values for vid in read]
        if role == "clipped" and is_wanted and not inside[0]:
            maker = makers[0]  # a product that may make floats, which only this reads
            is_single = len(self.rewriting.graph.values[read[0]].uses) == 1
            return maker is not None and maker.id in products and is_single and self._fits(node)
        if role == "pointwise" and is_wanted and any(inside):
            return self._fits(node)
        return all(inside) and (is_wanted or is_next) and self._fits(node)

    # -- what a node needs -------------------------------------------------------------------------------------------

    def _fits(self, node: NodeRecord) -> bool:
        why = self._unfit(node)
        if why:
            self.why[node.id] = why
        return not why

    def _unfit(self, node: NodeRecord) -> str:
        """The reason why a node cannot be computed in 8 bits, "" where it can."""
        graph, slots = self.rewriting.graph, self.data(node)
        if function_key(node.proto) in graph.index.functions:
            return "it is a function; inline it first"
        results = [vid for vid in node.outputs if vid] if self.role(node) != "moved" else []
        for vid in (*(node.inputs[slot] for slot in slots), *results):
            if why := self._unfit_value(vid):
                return f"{graph.values[vid].name}: {why}"
        if self.role(node) == "product":
            if slots != [DATA, WEIGHT] or self.is_stored(node.inputs[DATA]):
                return "its first input is constant; model.fold() computes what depends on constants alone"
            return self._unfit_bias(node)
        return ""

    def _unfit_value(self, vid: int) -> str:
        value, elem_type = self.rewriting.graph.values[vid], self.rewriting.elem_type(vid)
        if elem_type != dtypes.FLOAT:
            return f"it is {dtypes.name(elem_type)}, not float32" if elem_type else "its element type is not known"
        maker = self.rewriting.maker(value)
        if maker is not None and find_traits(maker.domain, maker.op_type).category == "quantization":
            return "it is quantized already"
        try:
            array = self.constant(vid)
        except LoadError as error:
            return f"it cannot be read: {error}"
        if array is not None:
            return needed(self.rewriting.graph, self.original(vid)) or unfit(array, dtypes.INT8)
        if value.name not in self.calibration.ranges:
            return "calibration measured no range of it"
        is_finite = all(map(math.isfinite, self.calibration.ranges[value.name]))
        return "" if is_finite else "it has NaN or infinities on inputs of the calibration"

    def _unfit_bias(self, node: NodeRecord) -> str:
        """The reason why the bias of a product cannot be int32, "" where it can."""
        vid = node.inputs[BIAS] if len(node.inputs) > BIAS else 0
        if not vid:
            return ""
        bias, weight = self.constant(vid), self.constant(node.inputs[WEIGHT])
        if bias is None or weight is None:
            return "its bias or weight is computed" if bias is None else "it has a bias, and its weight is computed"
        if why := unfit(bias, dtypes.INT8):
            return f"bias {why}"
        factors = [item.f for item in node.proto.attribute if item.name in ("alpha", "beta")]
        if any(factor != 1 for factor in factors):
            return "its alpha or beta is not 1"
        axis = channel_axis(node, weight)
        channels = weight.shape[axis] if axis is not None else 0
        return "" if bias.shape in ((channels,), (1, channels)) else f"its bias is of shape {list(bias.shape)}"


def channel_axis(node: NodeRecord, weight: Array) -> int | None:
    """The axis of a weight whose channels have a scale each; None where one scale is for all."""
    if find_traits(node.domain, node.op_type).layer == "convolution":
        return 0
    transposed = is_set(node, "transB")
    return (0 if transposed else 1) if weight.ndim == 2 else None
