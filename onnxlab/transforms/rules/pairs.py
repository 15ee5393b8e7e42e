"""Nodes that undo or repeat what the node before them did."""

from typing import Final

import numpy as np
from onnx import helper

from onnxlab import dtypes
from onnxlab.graph.edit.changes import SetAttribute
from onnxlab.graph.index.records import NodeRecord
from onnxlab.ops import find_traits
from onnxlab.transforms.rewriting import Array, Rewriting
from onnxlab.transforms.rules.rule import Procedure

_MANTISSA: Final = {dtypes.FLOAT16: (11, 5), dtypes.BFLOAT16: (8, 8), dtypes.FLOAT: (24, 8), dtypes.DOUBLE: (53, 11)}
_REFUSED: Final = "it was refused before"


def _before(rewriting: Rewriting, node: NodeRecord, op_type: str) -> NodeRecord | None:
    """The node that makes the first input, where it is of this operator."""
    maker = rewriting.maker(rewriting.input(node, 0))
    fits = maker is not None and maker.op_type == op_type and not maker.domain and maker.scope == node.scope
    return maker if fits else None


def _reshape_before(rewriting: Rewriting, node: NodeRecord) -> NodeRecord | None:
    """The node that makes the first input, where it only gives another shape."""
    maker = rewriting.maker(rewriting.input(node, 0))
    if maker is None or maker.scope != node.scope:
        return None
    return maker if find_traits(maker.domain, maker.op_type).reshapes else None


def permutation(node: NodeRecord) -> list[int] | None:
    """The permutation of a Transpose; None where it reverses all axes, or is none."""
    for attribute in node.proto.attribute:
        if attribute.name == "perm":
            axes = list(attribute.ints)
            return axes if sorted(axes) == list(range(len(axes))) else None
    return None


def _transposes(rewriting: Rewriting, node: NodeRecord) -> str:
    inner = _before(rewriting, node, "Transpose")
    source = rewriting.input(inner, 0) if inner is not None else None
    if inner is None or source is None:
        return "no Transpose comes before it"
    first, second = permutation(inner), permutation(node)
    if first is None or second is None or len(first) != len(second):
        return "the permutations are not both told"
    joined = [first[axis] for axis in second]
    label, place = rewriting.graph.label(node), rewriting.place(node)
    if not rewriting.allows("transposes", place):
        return _REFUSED
    if joined == sorted(joined) and rewriting.bypass(node, source):
        rewriting.note("transposes", place, label, "the second Transpose undoes the first")
        return ""
    rewriting.graph.apply(SetAttribute(node.id, "perm", helper.make_attribute("perm", joined)))
    rewriting.read(node, 0, source)
    rewriting.note("transposes", place, label, f"one Transpose {joined} in place of two")
    return ""


def _casts(rewriting: Rewriting, node: NodeRecord) -> str:
    inner = _before(rewriting, node, "Cast")
    source = rewriting.input(inner, 0) if inner is not None else None
    if inner is None or source is None or not node.outputs[0]:
        return "no Cast comes before it"
    first, middle = rewriting.elem_type(source.id), rewriting.elem_type(inner.outputs[0])
    if not first or not _holds(middle, first):
        return "the first Cast may lose something"
    label, place = rewriting.graph.label(node), rewriting.place(node)
    if not rewriting.allows("casts", place):
        return _REFUSED
    if first != rewriting.elem_type(node.outputs[0]):
        rewriting.read(node, 0, source)
        rewriting.note("casts", place, label, f"casts {dtypes.name(first)} at once")
        return ""
    if not rewriting.bypass(node, source):
        return f"an output of the graph cannot be {source.name}"
    rewriting.note("casts", place, label, f"{dtypes.name(first)} to {dtypes.name(middle)} and back loses nothing")
    return ""


def _holds(wide: int, narrow: int) -> bool:
    """Whether every element of one type is one of another type too."""
    if wide == narrow:
        return True
    if narrow == dtypes.BOOL:
        return False  # truth values are no numbers
    ours, theirs = _MANTISSA.get(wide), _MANTISSA.get(narrow)
    if ours is not None and theirs is not None:
        return ours[0] >= theirs[0] and ours[1] >= theirs[1]
    if not dtypes.is_integer(narrow):
        return False
    unsigned, bits = dtypes.name(narrow).startswith("u"), dtypes.bits(narrow)
    if dtypes.is_integer(wide):
        more = dtypes.bits(wide) > bits
        return more and (unsigned or not dtypes.name(wide).startswith("u"))
    return ours is not None and ours[0] >= bits


def _reshapes(rewriting: Rewriting, node: NodeRecord) -> str:
    """Skip nodes before this one that only change the shape; skip this one too where the shape is restored."""
    value = rewriting.output(node)
    inner = _reshape_before(rewriting, node)
    if inner is None or value is None:
        return "nothing before it only gives another shape"
    label, place = rewriting.graph.label(node), rewriting.place(node)
    if not rewriting.allows("reshapes", place):
        return _REFUSED
    target, source = rewriting.shape(value.id), rewriting.input(inner, 0)
    current = source
    at: NodeRecord | None = inner
    while current is not None and at is not None:
        if target is not None and rewriting.shape(current.id) == target and current.scope == node.scope:
            if rewriting.bypass(node, current):
                rewriting.note("reshapes", place, label, "the shape is the one before again")
                return ""
            break
        at = _reshape_before(rewriting, at)
        current = rewriting.input(at, 0) if at is not None else None
    if node.op_type == "Reshape" and source is not None and _is_absolute(rewriting, node):
        rewriting.read(node, 0, source)
        rewriting.note("reshapes", place, label, f"does not need the {inner.op_type} before it")
        return ""
    return "the shape before is another one, and the new one depends on it"


def _is_absolute(rewriting: Rewriting, node: NodeRecord) -> bool:
    """Whether the target of a Reshape does not depend on the shape that it is given."""
    target = rewriting.constant(rewriting.input(node, 1))
    return target is not None and bool((target != 0).all())


def _slices(rewriting: Rewriting, node: NodeRecord) -> str:
    """Take slices along different axes at once, where all of them are constant."""
    inner = _before(rewriting, node, "Slice")
    source = rewriting.input(inner, 0) if inner is not None else None
    if inner is None or source is None:
        return "no Slice comes before it"
    if _has_other_readers(rewriting, inner):
        return f"{rewriting.graph.label(inner)} is read by another node too"
    outer_cut, inner_cut = _cut(rewriting, node), _cut(rewriting, inner)
    if outer_cut is None or inner_cut is None:
        return "starts, ends, axes and steps are not all constant"
    if set(outer_cut[2].tolist()) & set(inner_cut[2].tolist()):
        return "both slice the same axis"
    label, place = rewriting.graph.label(node), rewriting.place(node)
    if not rewriting.allows("slices", place):
        return _REFUSED
    scope = rewriting.graph.scopes[node.scope]
    for slot, (first, second) in enumerate(zip(inner_cut, outer_cut, strict=True), 1):
        joined = np.concatenate([first, second])
        rewriting.read(node, slot, rewriting.store(rewriting.fresh(f"{label}_{slot}"), joined, scope))
    rewriting.read(node, 0, source)
    rewriting.note("slices", place, label, "one Slice in place of two")
    return ""


def _has_other_readers(rewriting: Rewriting, node: NodeRecord) -> bool:
    value = rewriting.output(node)
    return value is None or len(value.uses) != 1 or bool(value.formal_outputs)


def _cut(rewriting: Rewriting, node: NodeRecord) -> tuple[Array, Array, Array, Array] | None:
    """Starts, ends, axes (from 0 on) and steps of a Slice, as its inputs say; None where one is not constant."""
    if len(node.inputs) < 4 or not node.outputs[0]:
        return None
    constants = [rewriting.constant(rewriting.input(node, slot)) for slot in range(1, 4)]
    steps = rewriting.input(node, 4)
    step_values = rewriting.constant(steps) if steps is not None else None
    shape = rewriting.shape(node.outputs[0])
    if any(array is None for array in constants) or (steps is not None and step_values is None) or shape is None:
        return None
    starts, ends, axes = (array.astype(np.int64).reshape(-1) for array in constants if array is not None)
    axes = np.where(axes < 0, axes + len(shape), axes)
    return starts, ends, axes, np.ones_like(axes) if step_values is None else step_values.astype(np.int64).reshape(-1)


RULES: Final = (
    Procedure("transposes", "Merge two Transpose nodes in sequence, or remove both.", ("Transpose",), _transposes),
    Procedure("casts", "Merge two Cast nodes in sequence, or remove both, where the first is lossless.",
              ("Cast",), _casts),
    Procedure(
        "reshapes", "Remove the first of two nodes in sequence that only change the shape.",
        ("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshapes,
    ),
    Procedure("slices", "Merge two Slice nodes along different axes.", ("Slice",), _slices),
)  # fmt: skip
