"""Nodes that give back what they are given: taken out."""

from collections.abc import Callable
from typing import Final

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.ops import find_traits
from onnxlab.transforms.rewriting import Rewriting

NAME = "no-op elimination"

Test = Callable[[Rewriting, NodeRecord], "ValueRecord | None"]
"""What a node gives back, None where it does something."""


TESTS: Final[dict[str, Test]] = {}
"""By operator, what tells that its nodes do nothing."""


def _gives_back(*op_types: str) -> Callable[[Test], Test]:
    """Register what tells when nodes of these operators do nothing."""

    def add(test: Test) -> Test:
        TESTS.update(dict.fromkeys(op_types, test))
        return test

    return add


def run(rewriting: Rewriting) -> None:
    """Let the readers of nodes that do nothing read what these read."""
    for node in rewriting.nodes():
        if node.domain:
            continue
        reshapes = find_traits("", node.op_type).reshapes
        test = _same_shape if reshapes else TESTS.get(node.op_type)
        source = test(rewriting, node) if test is not None else None
        if source is not None:
            rewriting.bypass(NAME, node, source, f"{node.op_type} gives back what it reads")


@_gives_back("Identity")
def _first(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    return rewriting.input(node, 0)


def _only(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The input of a node that takes any number and has one."""
    return rewriting.input(node, 0) if sum(map(bool, node.inputs)) == 1 else None


@_gives_back("Expand", "Tile")
def _same_shape(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The input of a node that only gives another shape, where it is the shape that was."""
    source = rewriting.input(node, 0)
    if source is None or not node.outputs[0]:
        return None
    before, after = rewriting.shape(source.id), rewriting.shape(node.outputs[0])
    return source if before is not None and before == after else None


@_gives_back("Cast", "CastLike")
def _cast(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    source = rewriting.input(node, 0)
    if source is None or not node.outputs[0]:
        return None
    before = rewriting.elem_type(source.id)
    return source if before and before == rewriting.elem_type(node.outputs[0]) else None


@_gives_back("Dropout")
def _dropout(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The input of a Dropout that does not train; before opset 7 an attribute says so."""
    version = rewriting.graph.opset_version("", rewriting.graph.main) or 0
    if version < 7:
        tested = any(attribute.name == "is_test" and attribute.i for attribute in node.proto.attribute)
        return rewriting.input(node, 0) if tested else None
    trains = rewriting.input(node, 2)
    if trains is not None:
        told = rewriting.constant(trains)
        if told is None or told.any():
            return None
    return rewriting.input(node, 0)


@_gives_back("Transpose")
def _transpose(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    for attribute in node.proto.attribute:
        if attribute.name == "perm":
            return rewriting.input(node, 0) if list(attribute.ints) == list(range(len(attribute.ints))) else None
    source = rewriting.input(node, 0)
    shape = rewriting.shape(source.id) if source is not None else None
    return source if shape is not None and len(shape) < 2 else None


@_gives_back("Pad")
def _pad(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    pads = rewriting.constant(rewriting.input(node, 1))
    if pads is not None:
        return None if pads.any() else rewriting.input(node, 0)
    for attribute in node.proto.attribute:
        if attribute.name == "pads":
            return None if any(attribute.ints) else rewriting.input(node, 0)
    return None


@_gives_back("Slice")
def _slice(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    steps = rewriting.input(node, 4)
    if steps is not None:
        told = rewriting.constant(steps)
        if told is None or (told < 1).any():
            return None
    return _same_shape(rewriting, node)


def _add(rewriting: Rewriting, node: NodeRecord) -> ValueRecord | None:
    """The other summand of zeros: of -0.0 always, of 0.0, which makes 0.0 of -0.0, where no sign of a zero matters."""
    source = _neutral(0, -0.0, both=True)(rewriting, node)
    if source is None and not rewriting.sees_zero_signs(node):
        source = _neutral(0, 0.0, both=True)(rewriting, node)
    return source


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
    wanted = np.full((), number, array.dtype)
    same: bool = np.array_equal(array, np.broadcast_to(wanted, array.shape))
    return same and (not real or bool(np.all(np.signbit(array.astype(np.float64)) == np.signbit(number))))


_gives_back("Concat", "Sum")(_only)
_gives_back("Max", "Min")(_only)
_gives_back("Mean")(_only)
_gives_back("Mul")(_neutral(1.0, both=True))
_gives_back("Div")(_neutral(1.0, both=False))
_gives_back("Add")(_add)
_gives_back("Sub")(_neutral(0.0, both=False))
