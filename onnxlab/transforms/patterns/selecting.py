"""Selected nodes as the text of a pattern, with wildcards for what comes from outside."""

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx

from onnxlab.errors import TransformError
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.graph.query.patterns.parser import is_operator
from onnxlab.graph.query.patterns.syntax_tree import Argument, Literal, Name, NodeOutput, NodePattern, Number
from onnxlab.transforms.rewriting import Array, Rewriting

MOST_NODES: Final = 200
"""Nodes of a selection that a pattern may have."""

_MOST_NUMBERS: Final = 8
_DATA: Final = ("x", "y", "z")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_RESERVED: Final = frozenset(("or", "none"))


def pattern_of(rewriting: Rewriting, nodes: Sequence[NodeRecord], numbers: bool = True) -> NodePattern:
    """The pattern of some nodes: what they read from elsewhere is any value, or any constant.

    Its attributes are those that the nodes set. Where nodes outside of the selection read an inner node, the pattern
    allows such readers.

    Args:
        rewriting: the graph.
        nodes: the selection; Constant nodes in it are constants like any other.
        numbers: whether constants of one element, and lists of up to eight integers, are written as they are.

    Raises:
        TransformError: there is no such pattern; the message says why.
    """
    return _Selection(rewriting, nodes, numbers).pattern()


class _Selection:
    def __init__(self, rewriting: Rewriting, nodes: Sequence[NodeRecord], numbers: bool) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._numbers = numbers
        self._nodes = {node.id: node for node in nodes if not is_constant(node)}
        self._names: dict[int, str] = {}  # of values that are written already
        self._used: set[str] = set(_RESERVED)
        self._written: dict[int, int] = {}  # nodes that are written, with the output that has a name

    def pattern(self) -> NodePattern:
        """The pattern, or TransformError."""
        return self._call(self._root(), 0)

    def _root(self) -> NodeRecord:
        """The one node that no other one of the selection reads."""
        if not self._nodes:
            raise TransformError("no node is selected; a pattern needs one at least that is no Constant")
        if len(self._nodes) > MOST_NODES:
            raise TransformError(f"{len(self._nodes)} nodes are selected; a pattern has {MOST_NODES} at most")
        for node in self._nodes.values():
            self._refuse(node)
        read = {vid for node in self._nodes.values() for vid in node.inputs if vid}
        last = [node for node in self._nodes.values() if read.isdisjoint(node.outputs)]
        if len({node.scope for node in self._nodes.values()}) > 1:
            raise TransformError("the selected nodes are of several graphs; a pattern is of one")
        if len(last) != 1:
            labels = " and ".join(self._graph.label(node) for node in last[:3])
            raise TransformError(
                f"no selected node reads {labels}; a pattern has one outermost node: select also what reads them, "
                "or fewer nodes"
            )
        return last[0]

    def _refuse(self, node: NodeRecord) -> None:
        label = self._graph.label(node)
        if node.bodies:
            raise TransformError(f"{label} has bodies, which no pattern can tell; leave it out")
        if not is_operator(node.domain, node.op_type):
            raise TransformError(f"{label}: no pattern can be written of {node.op_type!r} of {node.domain!r}")
        if not any(node.outputs):
            raise TransformError(f"{label} makes nothing; leave it out")

    # -- pieces -----------------------------------------------------------------------------------------------------

    def _call(self, node: NodeRecord, output: int) -> NodePattern:
        """A node that is met for the first time, by one of its outputs."""
        self._written[node.id] = output
        values = self._graph.values
        inside = [reader for vid in node.outputs if vid for reader, _ in values[vid].uses if reader in self._nodes]
        name = self._fresh(node.op_type[:1].lower()) if len(inside) > 1 else ""
        inputs = list(node.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        arguments = tuple(self._argument(node, slot, values[vid] if vid else None) for slot, vid in enumerate(inputs))
        if name:
            self._names[node.outputs[output]] = name
        stays = bool(inside) and any(
            values[vid].formal_outputs or any(reader not in self._nodes for reader, _ in values[vid].uses)
            for vid in node.outputs
            if vid
        )
        return NodePattern((node.op_type,), node.domain, arguments, self._attributes(node), name, stays, output)

    def _argument(self, node: NodeRecord, slot: int, value: ValueRecord | None) -> Argument:
        if value is None:
            return Name("_", optional=True)
        if value.id in self._names:
            return Name(self._names[value.id])
        maker, at = value.producer or (0, 0)
        if maker in self._written:  # another output of a node that is written
            named = self._names[self._nodes[maker].outputs[self._written[maker]]]
            return NodeOutput(named, at)
        if maker in self._nodes:
            return self._call(self._nodes[maker], at)
        constant = self._rewriting.stored(value) is not None
        number = self._number(value) if constant and self._numbers else None
        if number is not None:
            return number
        name = self._names[value.id] = self._fresh(self._formal(node, slot) if constant else "")
        return Name(name, constant=constant)

    def _formal(self, node: NodeRecord, slot: int) -> str:
        """The name of an input in the operator's schema, for constants: "w" of a Conv."""
        schema = self._graph.schema(node)
        formal = schema.input(slot) if schema is not None else None
        name = formal.name.lower() if formal is not None else ""
        return name if _WORD.fullmatch(name) and name not in _DATA else "c"

    def _fresh(self, wish: str) -> str:
        """A name that is not used yet, the wish where possible; without a wish one for data: x, y or z."""
        wishes = [wish] if wish else list(_DATA)
        number = 2 if wish else 1
        while True:
            for name in wishes:
                if name not in self._used:
                    self._used.add(name)
                    return name
            wishes, number = [f"{wish or 'x'}{number}"], number + 1

    def _number(self, value: ValueRecord) -> Number | None:
        """A constant as a number of the pattern, None where the pattern takes any constant."""
        array = self._rewriting.constant(value)
        if array is None or array.dtype == object or not array.size or array.dtype.kind in "cSU":
            return None
        if array.ndim == 1 and array.dtype.kind in "iu":
            return Number(array.tolist()) if array.size <= _MOST_NUMBERS else None
        number = _plain(array.reshape(-1)[0]) if array.size == 1 else None
        return None if number is None else Number(number)

    def _attributes(self, node: NodeRecord) -> tuple[tuple[str, Name | Literal], ...]:
        attributes: list[tuple[str, Name | Literal]] = []
        for attribute in node.proto.attribute:
            if attribute.ref_attr_name or not _WORD.fullmatch(attribute.name) or attribute.name in _RESERVED:
                continue
            value = _literal(attribute)
            if value is not None:
                attributes.append((attribute.name, Literal(value)))
        return tuple(attributes)


def _plain(number: Any) -> int | float | None:
    """A number with the fewest digits that tell it from others of its type; None where no pattern can write it."""
    if number.dtype.kind in "iub":
        return int(number)
    try:
        wide = float(str(number))
    except ValueError:
        return None
    return wide if math.isfinite(wide) else None


def _literal(attribute: onnx.AttributeProto) -> Any:
    """An attribute as a pattern writes it, None where no pattern can."""
    value = decode(attribute)
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return _plain(np.float32(value))
    if isinstance(value, str):
        return value if '"' not in value and "\\" not in value and value.isprintable() else None
    if attribute.type == onnx.AttributeProto.INTS:
        return [int(number) for number in value]
    if attribute.type == onnx.AttributeProto.FLOATS:
        numbers: Array = np.asarray(value, np.float64)
        return numbers.tolist() if np.isfinite(numbers).all() else None
    return None
