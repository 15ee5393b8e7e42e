"""Syntax trees of patterns: the nodes, values, numbers and literals that the text of a pattern stands for."""

from dataclasses import dataclass, field
from typing import Any

from onnxlab import dtypes

Dims = tuple[Any, ...]
"""Dims of a required shape: ints, names, "?" for any dim, "..." first for any number of dims."""


@dataclass(frozen=True, slots=True)
class Name:
    """Any value, bound to a name.

    Attributes:
        constant: whether the value must be a constant.
        optional: whether the value may be absent.
        once: whether the value must have a single reader.
        types: names of allowed element types; empty for any.
        dims: the required shape, None for any.
    """

    name: str
    constant: bool = False
    optional: bool = False
    once: bool = False
    types: tuple[str, ...] = ()
    dims: Dims | None = None

    def __str__(self) -> str:
        conditions = ["const"] * self.constant + ["once"] * self.once + ["|".join(self.types)] * bool(self.types)
        if self.dims is not None:
            conditions.append(f"[{', '.join(map(str, self.dims))}]")
        return f"{self.name}{':' * bool(conditions)}{' '.join(conditions)}{'?' * self.optional}"


@dataclass(frozen=True, slots=True)
class Rest:
    """All inputs that follow, bound to a name as a list."""

    name: str

    def __str__(self) -> str:
        return f"*{self.name}"


@dataclass(frozen=True, slots=True)
class Number:
    """A value whose elements are known: all of them a number, or a list."""

    value: Any

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class NodeOutput:
    """An output of a node of the pattern, by the name of another value that it makes.

    Attributes:
        name: name of the other value.
        output: number of this output.
    """

    name: str
    output: int

    def __str__(self) -> str:
        return f"{self.name}.{self.output}"


@dataclass(frozen=True, slots=True)
class Literal:
    """An attribute that must have a value; None where it must be absent."""

    value: Any

    def __str__(self) -> str:
        return "none" if self.value is None else repr(self.value)


@dataclass(frozen=True, slots=True)
class NodePattern:
    """A node of an operator.

    Attributes:
        op_types: allowed operators of the node.
        domain: domain of the operators.
        inputs: arguments by input slot.
        attributes: (name of an attribute, the name to which it is bound, or its required value).
        name: name of the node's value, "" for none.
        stays: whether the node is left in place, so that nodes outside of the match may read it.
        output: number of the output that the call stands for.
    """

    op_types: tuple[str, ...]
    domain: str
    inputs: "tuple[Argument, ...]"
    attributes: tuple[tuple[str, Name | Literal], ...] = ()
    name: str = ""
    stays: bool = False
    output: int = 0
    makers: tuple[frozenset[str], ...] = field(init=False, compare=False, repr=False)
    _calls: "tuple[NodePattern, ...]" = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        calls = [call for call in self.inputs if isinstance(call, NodePattern)]
        object.__setattr__(self, "makers", tuple(frozenset(call.op_types) for call in calls))
        inside = tuple(call for part in self.inputs if isinstance(part, NodePattern) for call in part.calls())
        object.__setattr__(self, "_calls", (self, *inside))

    @property
    def op_type(self) -> str:
        """The operator, the first of several."""
        return self.op_types[0]

    def calls(self) -> "tuple[NodePattern, ...]":
        """This call and all inside of it, outermost first."""
        return self._calls

    def may_read(self, makers: frozenset[str]) -> bool:
        """Whether a node may match whose inputs are made by nodes of some operators."""
        return not any(map(makers.isdisjoint, self.makers))

    def depth(self) -> int:
        """Calls inside of calls, the outermost counted."""
        return 1 + max((part.depth() for part in self.inputs if isinstance(part, NodePattern)), default=0)

    def __str__(self) -> str:
        parts = [*map(str, self.inputs), *(f"{name}={value}" for name, value in self.attributes)]
        domain = f"{self.domain}::" if self.domain else ""
        named = f"{self.name} := " if self.name else ""
        output = f".{self.output}" if self.output else ""
        return f"{named}{'~' * self.stays}{domain}{'|'.join(self.op_types)}({', '.join(parts)}){output}"


Argument = NodePattern | Name | Rest | Number | NodeOutput

KINDS = {
    "float": frozenset((dtypes.FLOAT, dtypes.FLOAT16, dtypes.DOUBLE, dtypes.BFLOAT16)),
    "int": frozenset(number for number in dtypes.ELEM_TYPES if dtypes.is_integer(number)),
}
"""Words for several element types."""


def element_types(word: str) -> frozenset[int]:
    """The element types that a word of a pattern means.

    Raises:
        ValueError: the word names no element type.
    """
    return KINDS[word] if word in KINDS else frozenset((dtypes.parse(word),))
