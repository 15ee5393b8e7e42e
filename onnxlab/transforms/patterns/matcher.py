"""Where a pattern matches, or why it does not: the deepest point that it got to, in words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.ops import find_traits
from onnxlab.shapes import TensorFact
from onnxlab.transforms.patterns.pattern import Argument, Call, Name, Number, Output, Rest, element_types
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
                found = decode(attribute)
                return list(found) if isinstance(found, tuple) else found
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
            wanted = " or ".join(call.op_types)
            self._fail("{} is " + f"{op_type}, not {wanted}", self._label(node), near=op_type != "Constant")
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
        for name, wanted in call.attributes:
            found = decode(held[name]) if name in held else self._default(node, name)
            found = list(found) if isinstance(found, tuple) or (found is not None and _is_list(found)) else found
            if isinstance(wanted, Name):
                known = self.match.attributes.get(wanted.name, found)
                if known != found:
                    said = f"{name}={found!r}, not {known!r} as before"
                    self._fail("{} has " + _plain(said), self._label(node))
                    return None
                bound[wanted.name] = found
            elif not _is_same(found, wanted.value):
                said = "no " + name if found is None else f"{name}={found!r}"
                self._fail("{} has " + _plain(f"{said}, not {wanted}"), self._label(node))
                return None
        return bound

    def _default(self, node: NodeRecord, name: str) -> Any:
        schema = self._graph.schema(node)
        return schema.defaults.get(name) if schema is not None else None

    # -- inputs -----------------------------------------------------------------------------------------------------

    def _inputs(self, call: Call, node: NodeRecord, inputs: list[int], slot: int) -> Iterator[None]:
        """Match what a node reads from a slot on."""
        wanted = call.inputs
        if slot == len(wanted):
            if slot < len(inputs):
                said = f" has {len(inputs)} inputs, the pattern {slot}"
                self._fail("{}" + said, self._label(node))
            else:
                yield from self._named(call, node)
            return
        first, values = wanted[slot], self._graph.values
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
        made = node.outputs[call.output] if call.output < len(node.outputs) else 0
        if made:
            yield from self._bind(call.name, self._graph.values[made])

    def _input(self, wanted: Argument, value: ValueRecord | None, node: NodeRecord) -> Iterator[None]:
        if isinstance(wanted, Call):
            maker = self._rewriting.maker(value)
            if maker is None or value is None:
                what = "an absent input" if value is None else f"{_plain(value.name)}, which no node makes"
                self._fail("{} reads " + f"{what}, not {wanted.op_type}", self._label(node), near=False)
            elif value.producer is not None and value.producer[1] != wanted.output:
                said = f" reads output {value.producer[1]} of {wanted.op_type}, not {wanted.output}"
                self._fail("{}" + said, self._label(node))
            else:
                yield from self.node(wanted, maker)
        elif isinstance(wanted, Number):
            if self._is_number(wanted, value, node):
                yield
        elif isinstance(wanted, Output):
            if self._is_output(wanted, value, node):
                yield
        elif isinstance(wanted, Name):
            if value is None:
                yield from self._absent(wanted, node)
            elif self._suits(wanted, value):
                before = dict(self.match.dims)
                if wanted.dims is None or self._has_shape(wanted, value):
                    yield from self._bind(wanted.name, value)
                self.match.dims = before

    def _is_output(self, wanted: Output, value: ValueRecord | None, node: NodeRecord) -> bool:
        """Whether a value is made by the node of the pattern that makes another one with a name."""
        known = self.match.values.get(wanted.name)
        maker = known.producer[0] if isinstance(known, ValueRecord) and known.producer is not None else 0
        if value is not None and maker and value.producer == (maker, wanted.output):
            return True
        name = "an absent input" if value is None else _plain(value.name)
        return self._fail("{} reads " + f"{name}, not output {wanted.output} of what makes {wanted.name}",
                          self._label(node))  # fmt: skip

    def _absent(self, wanted: Name, node: NodeRecord) -> Iterator[None]:
        if not wanted.optional:
            self._fail(f"{wanted.name} of {{}} is absent", self._label(node))
            return
        yield from self._bind(wanted.name, None)

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
            names = [each.name if each is not None else "nothing" for each in (values[name], value)]
            self._fail(_plain(f"{name} is {names[0]} and {names[1]} at once"))

    # -- what is asked of values ------------------------------------------------------------------------------------

    def _suits(self, wanted: Name, value: ValueRecord) -> bool:
        if wanted.constant and self._rewriting.stored(value) is None:
            return self._fail(f"{wanted.name} is not constant: {_plain(value.name)} {{}}", self._origin(value))
        if wanted.once and (len(value.uses) > 1 or value.formal_outputs):
            return self._fail(f"{wanted.name} is read elsewhere too: {_plain(value.name)}")
        if wanted.types:
            found = self._rewriting.elem_type(value.id)
            if not any(found in element_types(word) for word in wanted.types):
                type_name = dtypes.name(found) if found else "of unknown type"
                return self._fail(f"{wanted.name} is {type_name}, not {' or '.join(wanted.types)}")
        return True

    def _origin(self, value: ValueRecord) -> Callable[[], str]:
        maker = self._rewriting.maker(value)
        if maker is None:
            return lambda: "is an input"
        return lambda: f"comes from {self._graph.label(maker)}"

    def _has_shape(self, wanted: Name, value: ValueRecord) -> bool:
        shape, dims = self._rewriting.shape(value.id), wanted.dims or ()
        if shape is None:
            return self._fail(f"the rank of {wanted.name} is not known")
        said = f"[{', '.join(map(str, shape))}]"
        asked = f"[{', '.join(map(str, dims))}]"
        rest = dims[1:] if dims and dims[0] == "..." else dims
        if len(shape) < len(rest) or (rest is dims and len(shape) != len(dims)):
            return self._fail(_plain(f"{wanted.name} has rank {len(shape)}, {said}, not {asked}"))
        for dim, found in zip(rest, shape[len(shape) - len(rest) :], strict=True):
            if dim == "?":
                continue
            known = self.match.dims.setdefault(dim, found) if isinstance(dim, str) else dim
            if known != found:
                return self._fail(_plain(f"{wanted.name} is {said}, not {asked} where {dim} is {known}"))
        return True

    def _is_number(self, wanted: Number, value: ValueRecord | None, node: NodeRecord) -> bool:
        array = self._known(value)
        if array is None:
            what = "an absent input" if value is None else f"{_plain(value.name)}, which is not known"
            return self._fail("{} reads " + f"{what}, not {wanted}", self._label(node))
        if value is not None and self._equals(array, wanted.value, self._rewriting.elem_type(value.id)):
            return True
        shown = array.reshape(-1)[:4].tolist()
        return self._fail("{} reads " + _plain(f"{shown[0] if array.size == 1 else shown}, not {wanted}"),
                          self._label(node))  # fmt: skip

    def _known(self, value: ValueRecord | None) -> Array | None:
        if value is None:
            return None
        fact = self._rewriting.fact(value.id)
        known = fact.value if isinstance(fact, TensorFact) else None
        return self._rewriting.constant(value) if known is None else known

    @staticmethod
    def _equals(array: Array, wanted: Any, elem_type: int) -> bool:
        if array.dtype == object or not array.size:
            return False
        target = np.asarray(wanted, np.float64)
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
        found, values = self.match, self._graph.values
        inside = {node.id for node in found.nodes}
        named = {call.name for call in found.pattern.calls() if call.name}
        calls = zip(found.nodes[1:], found.pattern.calls()[1:], strict=True)
        gone = {vid for node, call in calls if not call.stays for vid in node.outputs if vid}
        for vid in gone:
            value = values[vid]
            reader = next((each for each, _ in value.uses if each not in inside), None)
            maker = self._graph.nodes[value.producers[0][0]]
            if value.formal_outputs:
                return self._fail_last("{} is read by an output of the graph too", self._label(maker))
            if reader is not None:
                readers = self._label(self._graph.nodes[reader])
                return self._fail_last("{} is read by {} too", self._label(maker), readers)
        for name, bound in found.values.items():
            each = [bound] if isinstance(bound, ValueRecord) else bound or []
            if name not in named and any(value is not None and value.id in gone for value in each):
                return self._fail_last(f"{name} is made inside of the pattern")
        return True

    def _fail_last(self, words: str, *parts: Callable[[], str]) -> bool:
        self.failure = Failure((CONDITION[0] - 1, 0), words, parts)
        return False


def _is_list(found: Any) -> bool:
    return not isinstance(found, str | bytes | int | float) and hasattr(found, "__len__") and hasattr(found, "__iter__")


def _is_same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, int | float):
        return abs(found - wanted) <= 1e-6 * abs(wanted)
    return bool(found == wanted)


def _plain(text: str) -> str:
    """Text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")
