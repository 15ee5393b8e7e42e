"""Rules of layout: Transposes move through what works element by element, until they meet another one."""

from typing import Final

import numpy as np
from onnx import helper

from onnxlab.graph.edit.changes import SetAttribute
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.ops import find_traits
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.pairs import permutation
from onnxlab.transforms.rules.rule import Procedure

_LONGEST: Final = 16
_BINARY: Final = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")


def _unary(node: NodeRecord) -> bool:
    """Whether a node works element by element on its only input."""
    traits = find_traits(node.domain, node.op_type)
    if node.domain or len(node.inputs) != 1 or node.bodies or traits.random:
        return False
    return traits.category in ("activation", "elementwise") and traits.shape == "shapes" and node.op_type not in _AXES


_AXES: Final = ("Softmax", "LogSoftmax", "Hardmax", "CumSum")


def _through(rewriting: Rewriting, node: NodeRecord) -> str:
    """Remove a Transpose that elementwise nodes separate from this one, which takes over its permutation."""
    second = permutation(node)
    chain: list[tuple[NodeRecord, int]] = []
    value = rewriting.input(node, 0)
    inner = None
    while len(chain) < _LONGEST and second is not None:
        maker = rewriting.maker(value)
        if maker is None or value is None or maker.scope != node.scope:
            return f"nothing before it is a Transpose: {value.name if value else 'an input'} comes from outside"
        if maker.op_type == "Transpose" and not maker.domain:
            inner = maker
            break
        slot = _data_slot(rewriting, maker, len(second))
        if slot is None:
            return f"{rewriting.graph.label(maker)} before it does not work element by element on one value"
        if rewriting.stays(maker):
            return f"{rewriting.graph.label(maker)} is protected"
        if len(value.uses) != 1 or value.formal_outputs:
            return f"{rewriting.graph.label(maker)} is read by another node too"
        chain.append((maker, slot))
        value = rewriting.input(maker, slot)
    first = permutation(inner) if inner is not None else None
    if inner is None or first is None or second is None or not chain or len(first) != len(second):
        return "no Transpose comes before it, with what works element by element between them"
    source = rewriting.input(inner, 0)
    place, label = rewriting.place(node), rewriting.graph.label(node)
    if source is None or not rewriting.allows("transposes_apart", place):
        return "it was refused before"
    for chained, slot in chain:
        _reorder(rewriting, chained, slot, first)
    last, slot = chain[-1]
    rewriting.read(last, slot, source)
    joined = [first[axis] for axis in second]
    rewriting.graph.apply(SetAttribute(node.id, "perm", helper.make_attribute("perm", joined)))
    rewriting.note("transposes_apart", place, label, f"one Transpose {joined} in place of two")
    return ""


def _data_slot(rewriting: Rewriting, node: NodeRecord, rank: int) -> int | None:
    """The input that a node works on element by element, the others being constants; None for any other node."""
    if _unary(node):
        return 0
    if node.domain or node.op_type not in _BINARY or len(node.inputs) != 2:
        return None
    values = [rewriting.input(node, slot) for slot in (0, 1)]
    for slot in (0, 1):
        data, constant = values[slot], values[1 - slot]
        array = rewriting.constant(constant)
        shape = rewriting.shape(data.id) if data is not None else None
        if array is not None and array.ndim <= rank and shape is not None and len(shape) == rank:
            return slot
    return None


def _reorder(rewriting: Rewriting, node: NodeRecord, slot: int, first: list[int]) -> None:
    """Put the axes of a node's constant in the order that data has before the first Transpose."""
    for other, vid in enumerate(list(node.inputs)):
        value: ValueRecord | None = rewriting.graph.values[vid] if vid else None
        array = rewriting.constant(value)
        if other == slot or array is None or array.size == 1 or value is None:
            continue
        whole = array.reshape((1,) * (len(first) - array.ndim) + array.shape)
        moved = np.ascontiguousarray(np.transpose(whole, np.argsort(first)))
        scope = rewriting.graph.scopes[node.scope]
        rewriting.read(node, other, rewriting.store(rewriting.fresh(f"{value.name}_transposed"), moved, scope))


RULES: Final = (
    Procedure(
        "transposes_apart", "Merge two Transpose nodes that only elementwise nodes separate.", ("Transpose",),
        _through, "layout",
    ),
)  # fmt: skip
