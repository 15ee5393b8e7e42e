"""Products of integers with ranges that each run measures: DynamicQuantizeLinear before a MatMulInteger, for no inputs.

onnxruntime fuses the nodes into one. Products alone are changed, since the ranges of every run cost time themselves.
"""

from typing import Final

from onnx import helper

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.edit.changes import InsertNode
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.ops import find_traits
from onnxlab.transforms.metadata_transfer import carry_over, spoken
from onnxlab.transforms.passes.constant_folding import LARGE
from onnxlab.transforms.quantization import integers
from onnxlab.transforms.quantization.stored_weights import is_set, needed, remove_constant, unfit
from onnxlab.transforms.receipt import RefusedRewrite
from onnxlab.transforms.rewriting import Array, Rewriting

_DATA, _WEIGHT, _BIAS = 0, 1, 2
_MATRIX: Final = 2


def run(rewriting: Rewriting, form: str, elem_type: int) -> None:
    """Let products of graphs and bodies with constant matrices multiply integers.

    Args:
        rewriting: the model, in an open edit.
        form: the name under which applications are noted.
        elem_type: of the stored weights.
    """
    conversion = _Conversion(rewriting, form)
    for node in list(rewriting.nodes()):
        traits = find_traits(node.domain, node.op_type)
        if traits.int8 != "product" or traits.layer != "product":
            continue
        if why := conversion.unfit(node):
            label = rewriting.graph.label(node)
            rewriting.unfit[form, str(node.id)] = RefusedRewrite(form, label, why)
        elif rewriting.allows(form, place := rewriting.place(node)):
            label = rewriting.graph.label(node)
            rewriting.note(form, place, label, conversion.change(node))


class _Conversion:
    """One conversion of a model; what is quantized or stored once is read by all that need it."""

    def __init__(self, rewriting: Rewriting, form: str) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._form = form
        self._quantized: dict[tuple[int, int], list[str]] = {}  # by scope and value
        self._weights: dict[tuple[int, bool], tuple[list[str], str]] = {}  # by value and whether it is transposed

    def unfit(self, node: NodeRecord) -> str:
        """The reason why a node keeps multiplying floats, "" where it need not."""
        graph, values = self._graph, self._graph.values
        if graph.root(graph.scopes[node.scope]).is_function:
            return "it is in a function; inline it first"
        if len(node.inputs) <= _WEIGHT or not node.inputs[_DATA] or not node.inputs[_WEIGHT]:
            return "it has no two inputs"
        weight = values[node.inputs[_WEIGHT]]
        for value in (values[node.inputs[_DATA]], weight):
            elem_type = self._rewriting.elem_type(value.id)
            if elem_type != dtypes.FLOAT:
                name = dtypes.name(elem_type) if elem_type else "of a type that is not known"
                return f"{value.name}: it is {name}, not float32"
        if is_set(node, "transA") or any(_factor(node, name) != 1 for name in ("alpha", "beta")):
            return "it does more than multiply and add: transA, alpha or beta"
        try:
            array = self._rewriting.constant(weight)
        except LoadError as error:
            return f"{weight.name} cannot be read: {error}"
        if array is None or array.ndim != _MATRIX:
            return "what it multiplies with is no constant matrix"
        if array.size < LARGE:
            return f"its matrix is of fewer than {LARGE:,} elements"
        why = needed(graph, weight) or unfit(array, dtypes.INT8)
        return f"{weight.name}: {why}" if why else ""

    def change(self, node: NodeRecord) -> str:
        """Put a product of integers in place of a node; the effect in words."""
        graph, scope = self._graph, self._graph.scopes[node.scope]
        result, bias = graph.values[node.outputs[0]].name, ""
        data, weight = (graph.values[node.inputs[slot]] for slot in (_DATA, _WEIGHT))
        if len(node.inputs) > _BIAS and node.inputs[_BIAS]:
            bias = graph.values[node.inputs[_BIAS]].name
        position, op_type, notes = scope.position(node), node.op_type, spoken(node.proto)
        stored, effect = self._stored(weight, is_set(node, "transB"))
        self._rewriting.remove(node)
        before = len(scope.order())
        quantized = self._quantize(data, scope, position)
        position += len(scope.order()) - before
        names = [self._rewriting.fresh(f"{result}_{word}") for word in ("int32", "float", "scales", "scaled")]
        last = names[3] if bias else result
        nodes = [
            helper.make_node("MatMulInteger", [quantized[0], stored[0], quantized[2], stored[2]], [names[0]]),
            helper.make_node("Cast", [names[0]], [names[1]], to=int(dtypes.FLOAT)),
            helper.make_node("Mul", [quantized[1], stored[1]], [names[2]]),
            helper.make_node("Mul", [names[1], names[2]], [last]),
        ]
        nodes += [helper.make_node("Add", [last, bias], [result])] if bias else []
        for place, new in enumerate(nodes, position):
            new.name = self._rewriting.fresh(f"{new.output[0]}/{new.op_type}", node=True)
            graph.apply(InsertNode(scope.id, place, new))
        carry_over(graph, notes, graph.nodes[graph.values[scope.names[result]].producers[0][0]])
        if not (weight.uses or weight.formal_outputs):
            remove_constant(self._rewriting, weight)
        return f"{op_type} multiplies integers{effect}"

    def _quantize(self, value: ValueRecord, scope: Scope, position: int) -> list[str]:
        """The names of a value's integers, scale and zero point, which a node makes at a position."""
        key = scope.id, value.id
        if key not in self._quantized:
            words = ("quantized", "scale", "zero_point")
            names = [self._rewriting.fresh(f"{value.name}_{word}") for word in words]
            maker = self._graph.nodes[value.producers[0][0]] if value.producers else None
            if maker is not None and maker.scope == scope.id:
                position = scope.position(maker) + 1
            called = self._rewriting.fresh(f"{value.name}/DynamicQuantizeLinear", node=True)
            node = helper.make_node("DynamicQuantizeLinear", [value.name], names, called)
            self._graph.apply(InsertNode(scope.id, position, node))
            self._quantized[key] = names
        return self._quantized[key]

    def _stored(self, value: ValueRecord, is_transposed: bool) -> tuple[list[str], str]:
        """The names of a matrix as integers, with scales of its columns; the effect in words."""
        key = value.id, is_transposed
        if key not in self._weights:
            array = self._rewriting.constant(value)
            assert array is not None
            array = array.T if is_transposed else array
            parts = integers.of_weight(array, 1)
            names = self._names(value, parts)
            sizes = f"{array.nbytes:,} bytes become {sum(part.nbytes for part in parts):,}"
            self._weights[key] = names, f"; {sizes}, off by {integers.error_of(array, parts, 1):.2g} %"
            return self._weights[key]
        return self._weights[key][0], ""

    def _names(self, value: ValueRecord, parts: list[Array]) -> list[str]:
        names = [self._rewriting.fresh(f"{value.name}_{word}") for word in ("int8", "scale", "zero_point")]
        for name, array in zip(names, parts, strict=True):
            self._rewriting.store(name, array, self._graph.scopes[value.scope])
        return names


def _factor(node: NodeRecord, name: str) -> float:
    return next((item.f for item in node.proto.attribute if item.name == name), 1.0)
