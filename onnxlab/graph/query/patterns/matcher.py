"""The match of a pattern, or the reason against it: the deepest point that was reached, in words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.query.patterns.syntax_tree import (
    Argument,
    Name,
    NodeOutput,
    NodePattern,
    Number,
    Rest,
    element_types,
)
from onnxlab.graph.query.patterns.wiring import Array, N, V, Wiring
from onnxlab.ops import find_traits

_EPSILONS = {dtypes.FLOAT16: 2e-3, dtypes.BFLOAT16: 1e-2}

MOST_TRIED = 20_000
"""Most nodes tried for one match: the orders of commuting operands to try can be exponentially many."""

CONDITION = (1 << 20, 0)
"""The depth of a failed condition, where the whole pattern matched."""


@dataclass(slots=True)
class PatternMatch(Generic[N, V]):
    """A place that a pattern matches.

    Attributes:
        root: the node that the pattern's outermost call stands for.
        pattern: the alternative that matched.
        nodes: all nodes of the pattern, outermost first, parallel to `pattern.calls()`.
        passed: nodes between these that pass their input on unchanged.
        values: bound values by name; None for absent ones, a list for `*name`.
        attributes: bound attributes by name.
        dims: bound sizes by the name that a shape gives them.
        numbers: (value, required number), where numbers are compared later.
    """

    root: N
    pattern: NodePattern
    nodes: list[N] = field(default_factory=list)
    passed: list[N] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    dims: dict[str, Any] = field(default_factory=dict)
    numbers: list[tuple[V, Any]] = field(default_factory=list)

    def node(self, op_type: str) -> N:
        """The first node of an operator."""
        return next(node for node in self.nodes if node.op_type == op_type)


class Mismatch:
    """A failed match: the point that was reached, and what failed there.

    Attributes:
        depth: (number of matched nodes, twice the number of other bound values, plus one for a near miss); CONDITION,
            which is greater, for a condition of the rule.
    """

    __slots__ = ("_label", "_nodes", "_words", "depth")

    def __init__(
        self, depth: tuple[int, int], words: str, label: Callable[[Any], str] = str, nodes: Sequence[Any] = ()
    ) -> None:
        self.depth = depth
        self._words = words
        self._label = label
        self._nodes = nodes

    @property
    def why(self) -> str:
        """The failure in words; names of nodes are looked up when asked."""
        return self._words.format(*map(self._label, self._nodes))


def find(wiring: Wiring[N, V], candidate: PatternMatch[N, V]) -> Mismatch | None:
    """Fill in a match of a pattern at its root; a failure where there is none.

    Args:
        wiring: access to nodes and values.
        candidate: a match with only root and pattern set.
    """
    attempt = _Attempt(wiring, candidate)
    for _ in attempt.node(candidate.pattern, candidate.root):
        if attempt.is_closed():
            return None
    return attempt.failure


class _Attempt(Generic[N, V]):
    """One attempt: generators that bind, yield where all fits, and take back what they bound."""

    def __init__(self, wiring: Wiring[N, V], candidate: PatternMatch[N, V]) -> None:
        self.match = candidate
        self.failure = Mismatch((-1, 0), "it was not tried")
        self._wiring = wiring
        self._left = MOST_TRIED

    def _fail(self, words: str, *nodes: N, near: bool = True) -> bool:
        """Keep a failure where none got further; one that is not `near` gives way to one that is."""
        depth = len(self.match.nodes), 2 * len(self.match.values) + near
        if depth > self.failure.depth:
            self.failure = Mismatch(depth, words, self._wiring.label, nodes)
        return False

    # -- nodes ------------------------------------------------------------------------------------------------------

    def node(self, call: NodePattern, node: N) -> Iterator[None]:
        """Match a call at a node, in every way."""
        op_type, inner = node.op_type, self.match
        if op_type not in call.op_types or node.domain != call.domain:
            expected = " or ".join(call.op_types)
            self._fail(f"{{}} is {op_type}, not {expected}", node, near=op_type != "Constant")
            return
        if node in inner.nodes:
            return
        self._left -= 1
        if self._left < 0:
            self._fail_last(f"it was given up after {MOST_TRIED} nodes were tried in other orders of operands")
            return
        bound = self._attributes(call, node) if call.attributes else {}
        if bound is None:
            return
        before = {name: inner.attributes[name] for name in bound if name in inner.attributes}
        inner.attributes.update(bound)
        inner.nodes.append(node)
        for inputs in self._orders(call, node):
            yield from self._inputs(call, node, inputs, 0)
        inner.nodes.pop()
        for name in bound:
            del inner.attributes[name]
        inner.attributes.update(before)

    def _orders(self, call: NodePattern, node: N) -> list[list[V | None]]:
        inputs = self._wiring.inputs(node)
        if len(inputs) == 2 and len(call.inputs) == 2 and find_traits(node.domain, node.op_type).commutative:
            return [inputs, inputs[::-1]]
        return [inputs]

    def _attributes(self, call: NodePattern, node: N) -> dict[str, Any] | None:
        """The values to which the call's attributes are bound; None where one differs."""
        bound: dict[str, Any] = {}
        for name, expected in call.attributes:
            value = self._wiring.attribute(node, name)
            value = list(value) if _is_list(value) else value
            if isinstance(expected, Name):
                known = self.match.attributes.get(expected.name, value)
                if known != value:
                    shown = f"{name}={value!r}, not {known!r} as before"
                    self._fail("{} has " + _plain(shown), node)
                    return None
                bound[expected.name] = value
            elif not _is_same(value, expected.value):
                shown = "no " + name if value is None else f"{name}={value!r}"
                self._fail("{} has " + _plain(f"{shown}, not {expected}"), node)
                return None
        return bound

    # -- inputs -----------------------------------------------------------------------------------------------------

    def _inputs(self, call: NodePattern, node: N, inputs: list[V | None], slot: int) -> Iterator[None]:
        """Match what a node reads from a slot on."""
        arguments = call.inputs
        if slot == len(arguments):
            if slot < len(inputs):
                self._fail(f"{{}} has {len(inputs)} inputs, the pattern {slot}", node)
            else:
                yield from self._named(call, node)
            return
        first = arguments[slot]
        if isinstance(first, Rest):
            self.match.values[first.name] = inputs[slot:]
            yield from self._named(call, node)
            self.match.values.pop(first.name, None)
            return
        for _ in self._input(first, inputs[slot] if slot < len(inputs) else None, node):
            yield from self._inputs(call, node, inputs, slot + 1)

    def _named(self, call: NodePattern, node: N) -> Iterator[None]:
        if not call.name:
            yield
            return
        outputs = self._wiring.outputs(node)
        value = outputs[call.output] if call.output < len(outputs) else None
        if value is not None:
            yield from self._bind(call.name, value)

    def _input(self, argument: Argument, value: V | None, node: N) -> Iterator[None]:
        if isinstance(argument, NodePattern):
            yield from self._made(argument, value, node)
        elif isinstance(argument, Number):
            if self._wiring.numbers_later and value is not None:
                self.match.numbers.append((value, argument.value))
                yield
                self.match.numbers.pop()
            elif self._is_number(argument, value, node):
                yield
        elif isinstance(argument, NodeOutput):
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

    def _made(self, call: NodePattern, value: V | None, node: N) -> Iterator[None]:
        """Match a call at the node that makes a value."""
        source = None if value is None else self._wiring.source(value, call.op_types)
        if source is None:
            origin = "an absent input" if value is None else f"{self._plain_name(value)}, which no node makes"
            self._fail(f"{{}} reads {origin}, not {call.op_type}", node, near=False)
        elif source.slot != call.output:
            self._fail(f"{{}} reads output {source.slot} of {call.op_type}, not {call.output}", node)
        elif self._wiring.graph_of(source.node) != self._wiring.graph_of(self.match.root):
            self._fail("{} is in another graph", source.node)
        elif source.passed:
            before = len(self.match.passed)
            self.match.passed.extend(source.passed)
            yield from self.node(call, source.node)
            del self.match.passed[before:]
        else:
            yield from self.node(call, source.node)

    def _is_output(self, output: NodeOutput, value: V | None, node: N) -> bool:
        """Whether a value is made by the node of the pattern that makes another one with a name."""
        named = self.match.values.get(output.name)
        if named is not None and value is not None:
            known, source = self._wiring.source(named), self._wiring.source(value)
            if known and source and known.node is source.node and source.slot == output.output:
                return True
        name = "an absent input" if value is None else self._plain_name(value)
        return self._fail(f"{{}} reads {name}, not output {output.output} of what makes {output.name}", node)

    def _absent(self, argument: Name, node: N) -> Iterator[None]:
        if not argument.optional:
            self._fail(f"{argument.name} of {{}} is absent", node)
            return
        yield from self._bind(argument.name, None)

    def _bind(self, name: str, value: V | None) -> Iterator[None]:
        values = self.match.values
        if name == "_":
            yield
        elif name not in values:
            values[name] = value
            yield
            del values[name]
        elif values[name] is value or self._is_same_value(values[name], value):
            yield
        else:
            names = [self._wiring.name(bound) if bound is not None else "nothing" for bound in (values[name], value)]
            self._fail(_plain(f"{name} is {names[0]} and {names[1]} at once"))

    def _is_same_value(self, known: V | None, value: V | None) -> bool:
        return known is not None and value is not None and self._wiring.key(known) == self._wiring.key(value)

    def _plain_name(self, value: V) -> str:
        return _plain(self._wiring.name(value))

    # -- what is asked of values ------------------------------------------------------------------------------------

    def _suits(self, argument: Name, value: V) -> bool:
        if argument.constant and not self._wiring.is_constant(value):
            words, source = f"{argument.name} is not constant: {self._plain_name(value)}", self._wiring.source(value)
            if source is None:
                return self._fail(f"{words} is an input")
            return self._fail(f"{words} comes from {{}}", source.node)
        if argument.once and not self._wiring.is_read_once(value):
            return self._fail(f"{argument.name} is read elsewhere too: {self._plain_name(value)}")
        if argument.types:
            elem_type = self._wiring.elem_type(value)
            if not any(elem_type in element_types(word) for word in argument.types):
                type_name = dtypes.name(elem_type) if elem_type else "of unknown type"
                return self._fail(f"{argument.name} is {type_name}, not {' or '.join(argument.types)}")
        return True

    def _has_shape(self, argument: Name, value: V) -> bool:
        shape, dims = self._wiring.shape(value), argument.dims or ()
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

    def _is_number(self, number: Number, value: V | None, node: N) -> bool:
        array = None if value is None else self._wiring.elements(value)
        if value is None or array is None:
            source = "an absent input" if value is None else f"{self._plain_name(value)}, which is not known"
            return self._fail(f"{{}} reads {source}, not {number}", node)
        if _equals(array, number.value, self._wiring.elem_type(value)):
            return True
        shown = array.reshape(-1)[:4].tolist()
        return self._fail("{} reads " + _plain(f"{shown[0] if array.size == 1 else shown}, not {number}"), node)

    # -- the whole --------------------------------------------------------------------------------------------------

    def is_closed(self) -> bool:
        """Whether nothing outside of the match reads what is inside, nor is anything bound that goes away."""
        matched, wiring = self.match, self._wiring
        inside = {node.id for node in matched.nodes}
        inside.update(node.id for node in matched.passed)
        calls = zip(matched.nodes[1:], matched.pattern.calls()[1:], strict=True)
        removed = [*(node for node, call in calls if not call.stays), *matched.passed]
        gone = set()
        for node in removed:
            for value in wiring.outputs(node):
                if value is None:
                    continue
                gone.add(wiring.key(value))
                if wiring.is_returned(value):
                    return self._fail_last("{} is read by an output of the graph too", node)
                reader = wiring.reader(value, inside)
                if reader is not None:
                    return self._fail_last("{} is read by {} too", node, reader)
        named = {call.name for call in matched.pattern.calls() if call.name}
        for name, bound in matched.values.items():
            values = bound if isinstance(bound, list) else [bound]
            if name not in named and any(value is not None and wiring.key(value) in gone for value in values):
                return self._fail_last(f"{name} is made inside of the pattern")
        return True

    def _fail_last(self, words: str, *nodes: N) -> bool:
        self.failure = Mismatch((CONDITION[0] - 1, 0), words, self._wiring.label, nodes)
        return False


def _is_list(value: Any) -> bool:
    return not isinstance(value, str | bytes | int | float) and hasattr(value, "__len__") and hasattr(value, "__iter__")


def _is_same(value: Any, expected: Any) -> bool:
    if isinstance(value, float) and isinstance(expected, int | float):
        return abs(value - expected) <= 1e-6 * abs(expected)
    return bool(value == expected)


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


def _plain(text: str) -> str:
    """Text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")
