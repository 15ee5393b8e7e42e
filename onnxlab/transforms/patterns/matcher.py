"""Where a pattern matches, or why it does not: the deepest point that it got to, in words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.graph.query.patterns.pattern import Argument, Call, Name, Number, Output, Rest, element_types
from onnxlab.ops import find_traits
from onnxlab.shapes import TensorFact
from onnxlab.transforms.rewriting import Array, Rewriting

_EPSILONS = {dtypes.FLOAT16: 2e-3, dtypes.BFLOAT16: 1e-2}


@dataclass(slots=True)
class Match:
    """A place that a pattern matches.

    Attributes:
        root: the node that the pattern's outermost call stands for.
        pattern: the way of writing that matched.
        nodes: all nodes of the pattern, outermost first, in step with `pattern.calls()`.
        values: bound values by name; None for those that are absent, a list for `*name`.
        attributes: bound attributes by name.
        dims: sizes that shapes bind by name.
    """

    root: NodeRecord
    rewriting: Rewriting
    pattern: Call
    nodes: list[NodeRecord] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    dims: dict[str, Any] = field(default_factory=dict)

    def node(self, op_type: str) -> NodeRecord:
        """The first node of an operator."""
        return next(node for node in self.nodes if node.op_type == op_type)

    def array(self, name: str) -> Array | None:
        """The elements of a bound constant, None where it is absent or none."""
        return self.rewriting.constant(self.values.get(name))

    def shape(self, name: str) -> tuple[Any, ...] | None:
        """The dims of a bound value, None where they are not known; of the result for "result"."""
        if name == "result":
            return self.rewriting.shape(self.root.outputs[0])
        value = self.values.get(name)
        return self.rewriting.shape(value.id) if isinstance(value, ValueRecord) else None

    def rank(self, name: str) -> int | None:
        """The rank of a bound value, None where it is not known."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def elem_type(self, name: str) -> int:
        """The element type of a bound value, or of the "result"; 0 where it is not known."""
        if name == "result":
            return self.rewriting.elem_type(self.root.outputs[0])
        value = self.values.get(name)
        return self.rewriting.elem_type(value.id) if isinstance(value, ValueRecord) else 0

    def attribute(self, node: NodeRecord, name: str, default: Any = None) -> Any:
        """An attribute of a node, decoded."""
        for attribute in node.proto.attribute:
            if attribute.name == name:
                value = decode(attribute)
                return list(value) if isinstance(value, tuple) else value
        return default


class Failure:
    """Why a pattern does not match: how far it got, and what failed.

    Attributes:
        depth: nodes that matched, and twice the values that were bound besides, one more where it is a near miss; a
            condition of the rule comes after all of them.
    """

    __slots__ = ("_parts", "_words", "depth")

    def __init__(self, depth: tuple[int, int], words: str, parts: Sequence[Callable[[], str]] = ()) -> None:
        self.depth = depth
        self._words = words
        self._parts = parts

    @property
    def why(self) -> str:
        """What failed, in words; names are looked up when asked."""
        return self._words.format(*(part() for part in self._parts))


MOST_TRIED = 20_000
"""Nodes tried for one match: operands that commute can be tried in as many orders as there are subsets of them."""

CONDITION = (1 << 20, 0)
"""The depth of a condition that does not hold where the whole pattern does."""


def match(rewriting: Rewriting, call: Call, root: NodeRecord) -> Match | Failure:
    """Match one way of writing a pattern at a node."""
    attempt = _Attempt(rewriting, call, root)
    for _ in attempt.node(call, root):
        if attempt.is_closed():
            return attempt.match
    return attempt.failure


class _Attempt:
    """One attempt: generators that bind, yield where all fits, and take back what they bound."""

    def __init__(self, rewriting: Rewriting, call: Call, root: NodeRecord) -> None:
        self.match = Match(root, rewriting, call)
        self.failure = Failure((-1, 0), "it was not tried")
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._left = MOST_TRIED

    def _fail(self, words: str, *parts: Callable[[], str], near: bool = True) -> bool:
        """Keep a failure where none got further; one that is not `near` gives way to one that is."""
        depth = len(self.match.nodes), 2 * len(self.match.values) + near
        if depth > self.failure.depth:
            self.failure = Failure(depth, words, parts)
        return False

    def _label(self, node: NodeRecord) -> Callable[[], str]:
        return lambda: self._graph.label(node)

    # -- nodes ------------------------------------------------------------------------------------------------------

    def node(self, call: Call, node: NodeRecord) -> Iterator[None]:
        """Match a call at a node, in every way."""
        op_type = node.op_type
        if op_type not in call.op_types or node.domain != call.domain:
            expected = " or ".join(call.op_types)
            self._fail("{} is " + f"{op_type}, not {expected}", self._label(node), near=op_type != "Constant")
            return
        if node.scope != self.match.root.scope:
            self._fail("{} is in another graph", self._label(node))
            return
        if node in self.match.nodes:
            return
        self._left -= 1
        if self._left < 0:
            self._fail_last(f"it was given up after {MOST_TRIED} nodes were tried in other orders of operands")
            return
        bound = self._attributes(call, node)
        if bound is None:
            return
        inner = self.match
        before = {name: inner.attributes[name] for name in bound if name in inner.attributes}
        inner.attributes.update(bound)
        inner.nodes.append(node)
        for inputs in self._orders(call, node):
            yield from self._inputs(call, node, inputs, 0)
        inner.nodes.pop()
        for name in bound:
            del inner.attributes[name]
        inner.attributes.update(before)

    def _orders(self, call: Call, node: NodeRecord) -> list[list[int]]:
        inputs = list(node.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        if len(inputs) == 2 and len(call.inputs) == 2 and find_traits(node.domain, node.op_type).commutative:
            return [inputs, inputs[::-1]]
        return [inputs]

    def _attributes(self, call: Call, node: NodeRecord) -> dict[str, Any] | None:
        """What the call's attributes are bound to; None where one is another one than asked for."""
        bound: dict[str, Any] = {}
        if not call.attributes:
            return bound
        held = {attribute.name: attribute for attribute in node.proto.attribute}
        for name, expected in call.attributes:
            value = decode(held[name]) if name in held else self._default(node, name)
            value = list(value) if isinstance(value, tuple) or (value is not None and _is_list(value)) else value
            if isinstance(expected, Name):
                known = self.match.attributes.get(expected.name, value)
                if known != value:
                    shown = f"{name}={value!r}, not {known!r} as before"
                    self._fail("{} has " + _plain(shown), self._label(node))
                    return None
                bound[expected.name] = value
            elif not _is_same(value, expected.value):
                shown = "no " + name if value is None else f"{name}={value!r}"
                self._fail("{} has " + _plain(f"{shown}, not {expected}"), self._label(node))
                return None
        return bound

    def _default(self, node: NodeRecord, name: str) -> Any:
        schema = self._graph.schema(node)
        return schema.defaults.get(name) if schema is not None else None

    # -- inputs -----------------------------------------------------------------------------------------------------

    def _inputs(self, call: Call, node: NodeRecord, inputs: list[int], slot: int) -> Iterator[None]:
        """Match what a node reads from a slot on."""
        arguments = call.inputs
        if slot == len(arguments):
            if slot < len(inputs):
                surplus = f" has {len(inputs)} inputs, the pattern {slot}"
                self._fail("{}" + surplus, self._label(node))
            else:
                yield from self._named(call, node)
            return
        first, values = arguments[slot], self._graph.values
        if isinstance(first, Rest):
            rest = [values[vid] if vid else None for vid in inputs[slot:]]
            self.match.values[first.name] = rest
            yield from self._named(call, node)
            self.match.values.pop(first.name, None)
            return
        vid = inputs[slot] if slot < len(inputs) else 0
        for _ in self._input(first, values[vid] if vid else None, node):
            yield from self._inputs(call, node, inputs, slot + 1)

    def _named(self, call: Call, node: NodeRecord) -> Iterator[None]:
        if not call.name:
            yield
            return
        vid = node.outputs[call.output] if call.output < len(node.outputs) else 0
        if vid:
            yield from self._bind(call.name, self._graph.values[vid])

    def _input(self, argument: Argument, value: ValueRecord | None, node: NodeRecord) -> Iterator[None]:
        if isinstance(argument, Call):
            maker = self._rewriting.maker(value)
            if maker is None or value is None:
                source = "an absent input" if value is None else f"{_plain(value.name)}, which no node makes"
                self._fail("{} reads " + f"{source}, not {argument.op_type}", self._label(node), near=False)
            elif value.producer is not None and value.producer[1] != argument.output:
                difference = f" reads output {value.producer[1]} of {argument.op_type}, not {argument.output}"
                self._fail("{}" + difference, self._label(node))
            else:
                yield from self.node(argument, maker)
        elif isinstance(argument, Number):
            if self._is_number(argument, value, node):
                yield
        elif isinstance(argument, Output):
            if self._is_output(argument, value, node):
                yield
        elif isinstance(argument, Name):
            if value is None:
                yield from self._absent(argument, node)
            elif self._suits(argument, value):
                before = dict(self.match.dims)
                if argument.dims is None or self._has_shape(argument, value):
                    yield from self._bind(argument.name, value)
                self.match.dims = before

    def _is_output(self, output: Output, value: ValueRecord | None, node: NodeRecord) -> bool:
        """Whether a value is made by the node of the pattern that makes another one with a name."""
        known = self.match.values.get(output.name)
        maker = known.producer[0] if isinstance(known, ValueRecord) and known.producer is not None else 0
        if value is not None and maker and value.producer == (maker, output.output):
            return True
        name = "an absent input" if value is None else _plain(value.name)
        return self._fail("{} reads " + f"{name}, not output {output.output} of what makes {output.name}",
                          self._label(node))  # fmt: skip

    def _absent(self, argument: Name, node: NodeRecord) -> Iterator[None]:
        if not argument.optional:
            self._fail(f"{argument.name} of {{}} is absent", self._label(node))
            return
        yield from self._bind(argument.name, None)

    def _bind(self, name: str, value: ValueRecord | None) -> Iterator[None]:
        values = self.match.values
        if name == "_":
            yield
        elif name not in values:
            values[name] = value
            yield
            del values[name]
        elif values[name] is value:
            yield
        else:
            names = [bound.name if bound is not None else "nothing" for bound in (values[name], value)]
            self._fail(_plain(f"{name} is {names[0]} and {names[1]} at once"))

    # -- what is asked of values ------------------------------------------------------------------------------------

    def _suits(self, argument: Name, value: ValueRecord) -> bool:
        if argument.constant and self._rewriting.stored(value) is None:
            return self._fail(f"{argument.name} is not constant: {_plain(value.name)} {{}}", self._origin(value))
        if argument.once and (len(value.uses) > 1 or value.formal_outputs):
            return self._fail(f"{argument.name} is read elsewhere too: {_plain(value.name)}")
        if argument.types:
            elem_type = self._rewriting.elem_type(value.id)
            if not any(elem_type in element_types(word) for word in argument.types):
                type_name = dtypes.name(elem_type) if elem_type else "of unknown type"
                return self._fail(f"{argument.name} is {type_name}, not {' or '.join(argument.types)}")
        return True

    def _origin(self, value: ValueRecord) -> Callable[[], str]:
        maker = self._rewriting.maker(value)
        if maker is None:
            return lambda: "is an input"
        return lambda: f"comes from {self._graph.label(maker)}"

    def _has_shape(self, argument: Name, value: ValueRecord) -> bool:
        shape, dims = self._rewriting.shape(value.id), argument.dims or ()
        if shape is None:
            return self._fail(f"the rank of {argument.name} is not known")
        shown = f"[{', '.join(map(str, shape))}]"
        expected = f"[{', '.join(map(str, dims))}]"
        rest = dims[1:] if dims and dims[0] == "..." else dims
        if len(shape) < len(rest) or (rest is dims and len(shape) != len(dims)):
            return self._fail(_plain(f"{argument.name} has rank {len(shape)}, {shown}, not {expected}"))
        for dim, size in zip(rest, shape[len(shape) - len(rest) :], strict=True):
            if dim == "?":
                continue
            known = self.match.dims.setdefault(dim, size) if isinstance(dim, str) else dim
            if known != size:
                return self._fail(_plain(f"{argument.name} is {shown}, not {expected} where {dim} is {known}"))
        return True

    def _is_number(self, number: Number, value: ValueRecord | None, node: NodeRecord) -> bool:
        array = self._known(value)
        if array is None:
            source = "an absent input" if value is None else f"{_plain(value.name)}, which is not known"
            return self._fail("{} reads " + f"{source}, not {number}", self._label(node))
        if value is not None and self._equals(array, number.value, self._rewriting.elem_type(value.id)):
            return True
        shown = array.reshape(-1)[:4].tolist()
        return self._fail("{} reads " + _plain(f"{shown[0] if array.size == 1 else shown}, not {number}"),
                          self._label(node))  # fmt: skip

    def _known(self, value: ValueRecord | None) -> Array | None:
        if value is None:
            return None
        fact = self._rewriting.fact(value.id)
        known = fact.value if isinstance(fact, TensorFact) else None
        return self._rewriting.constant(value) if known is None else known

    @staticmethod
    def _equals(array: Array, expected: Any, elem_type: int) -> bool:
        if array.dtype == object or not array.size:
            return False
        target = np.asarray(expected, np.float64)
        if target.ndim and array.shape != target.shape:
            return False
        wide = array.astype(np.float64)
        if dtypes.is_float(elem_type):
            same = np.abs(wide - target) <= _EPSILONS.get(elem_type, 2e-6) * np.abs(target)
            return bool(np.all(same & (np.signbit(wide) == np.signbit(target))))
        return bool(np.all(wide == target))

    # -- the whole --------------------------------------------------------------------------------------------------

    def is_closed(self) -> bool:
        """Whether nothing outside of the match reads what is inside, nor is anything bound that goes away."""
        matched, values = self.match, self._graph.values
        inside = {node.id for node in matched.nodes}
        named = {call.name for call in matched.pattern.calls() if call.name}
        calls = zip(matched.nodes[1:], matched.pattern.calls()[1:], strict=True)
        gone = {vid for node, call in calls if not call.stays for vid in node.outputs if vid}
        for vid in gone:
            value = values[vid]
            reader = next((node for node, _ in value.uses if node not in inside), None)
            maker = self._graph.nodes[value.producers[0][0]]
            if value.formal_outputs:
                return self._fail_last("{} is read by an output of the graph too", self._label(maker))
            if reader is not None:
                readers = self._label(self._graph.nodes[reader])
                return self._fail_last("{} is read by {} too", self._label(maker), readers)
        for name, bound in matched.values.items():
            bound_values = [bound] if isinstance(bound, ValueRecord) else bound or []
            if name not in named and any(value is not None and value.id in gone for value in bound_values):
                return self._fail_last(f"{name} is made inside of the pattern")
        return True

    def _fail_last(self, words: str, *parts: Callable[[], str]) -> bool:
        self.failure = Failure((CONDITION[0] - 1, 0), words, parts)
        return False


def _is_list(value: Any) -> bool:
    return not isinstance(value, str | bytes | int | float) and hasattr(value, "__len__") and hasattr(value, "__iter__")


def _is_same(value: Any, expected: Any) -> bool:
    if isinstance(value, float) and isinstance(expected, int | float):
        return abs(value - expected) <= 1e-6 * abs(expected)
    return bool(value == expected)


def _plain(text: str) -> str:
    """Text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")
