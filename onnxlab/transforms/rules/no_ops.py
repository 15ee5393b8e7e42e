"""Removal of nodes whose output equals their input."""

from collections.abc import Callable
from typing import Final

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.rule import Procedure

Test = Callable[[Rewriting, NodeRecord], "ValueRecord | None"]
"""A function that returns the value a node passes on unchanged, None where the node changes it."""

_TESTS: dict[str, tuple[Test, tuple[str, ...]]] = {}


def _gives_back(name: str, *op_types: str) -> Callable[[Test], Test]:
    """Register a test that tells when nodes of these operators do nothing."""

    def add(test: Test) -> Test:
        _TESTS[name] = test, op_types
        return test

    return add


def removal(name: str, test: Test, op_types: tuple[str, ...]) -> Procedure:
    """The rule that removes nodes whose output equals their input."""

    def act(rewriting: Rewriting, node: NodeRecord) -> str:
        source = test(rewriting, node)
        if source is None:
            return f"{node.op_type} changes its input, or this is not known"
        place, label, op_type = rewriting.place(node), rewriting.graph.label(node), node.op_type
        if not rewriting.allows(name, place):
            return "it was refused before"
        if not rewriting.bypass(node, source):
            return f"an output of the graph cannot be {source.name}"
        rewriting.note(name, place, label, f"the output of {op_type} equals its input")
        return ""

    return Procedure(name, f"Remove {', '.join(op_types)} nodes whose output equals the input.", op_types, act)


@_gives_back("identity", "Identity")
def _first(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    return rewriting.input(node, 0)


def _only(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The input of a node that takes any number and has one."""
    return rewriting.input(node, 0) if sum(map(bool, node.inputs)) == 1 else None


@_gives_back("same_shape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile")
def _same_shape(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The input of a node that only changes the shape, where the shape stays the same."""
    source = rewriting.input(node, 0)
    if source is None or not node.outputs[0]:
        return None
    before, after = rewriting.shape(source.id), rewriting.shape(node.outputs[0])
    return source if before is not None and before == after else None


@_gives_back("same_type", "Cast", "CastLike")
def _cast(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    source = rewriting.input(node, 0)
    if source is None or not node.outputs[0]:
        return None
    before = rewriting.elem_type(source.id)
    return source if before and before == rewriting.elem_type(node.outputs[0]) else None


@_gives_back("dropout", "Dropout")
def _dropout(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The input of a Dropout that does not train; before opset 7 an attribute says so."""
    version = rewriting.graph.opset_version("", rewriting.graph.main) or 0
    if version < 7:
        tested = any(attribute.name == "is_test" and attribute.i for attribute in node.proto.attribute)
        return rewriting.input(node, 0) if tested else None
    trains = rewriting.input(node, 2)
    if trains is not None:
        training = rewriting.constant(trains)
        if training is None or training.any():
            return None
    return rewriting.input(node, 0)


@_gives_back("same_order", "Transpose")
def _transpose(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    for attribute in node.proto.attribute:
        if attribute.name == "perm":
            return rewriting.input(node, 0) if list(attribute.ints) == list(range(len(attribute.ints))) else None
    source = rewriting.input(node, 0)
    shape = rewriting.shape(source.id) if source is not None else None
    return source if shape is not None and len(shape) < 2 else None


@_gives_back("no_padding", "Pad")
def _pad(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    pads = rewriting.constant(rewriting.input(node, 1))
    if pads is not None:
        return None if pads.any() else rewriting.input(node, 0)
    for attribute in node.proto.attribute:
        if attribute.name == "pads":
            return None if any(attribute.ints) else rewriting.input(node, 0)
    return None


@_gives_back("whole_slice", "Slice")
def _slice(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    steps = rewriting.input(node, 4)
    if steps is not None:
        step_values = rewriting.constant(steps)
        if step_values is None or (step_values < 1).any():
            return None
    return _same_shape(rewriting, node)


def _add(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The value that zeros are added to, where the sum is that value.

    Adding -0.0 changes nothing; adding 0.0 turns -0.0 into 0.0, which is allowed where no sign of a zero matters.
    """
    source = _neutral(0, -0.0, both=True)(rewriting, node)
    if source is not None:
        return source
    source = _neutral(0, 0.0, both=True)(rewriting, node)  # first: seldom so, and signs take a walk
    return None if source is None or rewriting.sees_zero_signs(node) else source


def _neutral(*neutral: float, both: bool) -> Test:
    """A test of a sum or product: one side is these numbers alone, bit by bit, and the shape stays."""

    def test(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
        for slot, other in ((0, 1), (1, 0)) if both else ((0, 1),):
            source, constant = rewriting.input(node, slot), rewriting.input(node, other)
            if source is None or constant is None or not _is_all(rewriting, constant, neutral):
                continue
            before, after = rewriting.shape(source.id), rewriting.shape(node.outputs[0])
            if before is not None and before == after and rewriting.stored(source) is None:
                return source
        return None

    return test


def _is_all(rewriting: Rewriting, value: ValueRecord, neutral: tuple[float, ...]) -> bool:
    array = rewriting.constant(value)
    if array is None or not array.size or array.dtype == object:
        return False
    real = array.dtype.kind == "f" or dtypes.is_extension(array.dtype)
    number = neutral[-1] if real else neutral[0]
    target = np.full((), number, array.dtype)
    same: bool = np.array_equal(array, np.broadcast_to(target, array.shape))
    return same and (not real or bool(np.all(np.signbit(array.astype(np.float64)) == np.signbit(number))))


_gives_back("single_operand", "Concat", "Sum", "Max", "Min", "Mean")(_only)
_gives_back("times_one", "Mul")(_neutral(1.0, both=True))
_gives_back("divided_by_one", "Div")(_neutral(1.0, both=False))
_gives_back("plus_zero", "Add")(_add)
_gives_back("minus_zero", "Sub")(_neutral(0.0, both=False))

RULES: Final = tuple(removal(name, test, op_types) for name, (test, op_types) in _TESTS.items())
