"""The interface of a matcher to nodes and values, so that one serves live graphs and parts that are compiled."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]


class AnyNode(Protocol):
    """A node, as far as its operator goes."""

    @property
    def id(self) -> int:
        """Tells it from all others."""

    @property
    def op_type(self) -> str:
        """The operator's name."""

    @property
    def domain(self) -> str:
        """The operator's domain, "" for ai.onnx."""


N = TypeVar("N", bound=AnyNode)
V = TypeVar("V")


class Producer(NamedTuple, Generic[N]):
    """The maker of a value.

    Attributes:
        node: the node that computes the value.
        slot: the output slot of the node.
        passed: nodes between the node and the value that pass their input on unchanged; they belong to a match.
    """

    node: N
    slot: int
    passed: Sequence[N] = ()


class Wiring(ABC, Generic[N, V]):
    """Nodes, and the values that they read and make.

    Attributes:
        numbers_later: whether numbers of a pattern are listed in the match instead of being compared.
    """

    numbers_later = False

    @abstractmethod
    def label(self, node: N) -> str:
        """The name of a node in messages."""

    @abstractmethod
    def name(self, value: V) -> str:
        """The name of a value."""

    @abstractmethod
    def key(self, value: V) -> Hashable:
        """The identity of a value, equal for two names of one."""

    @abstractmethod
    def graph_of(self, node: N) -> int:
        """The graph in which a node stands: all nodes of a match stand in one."""

    @abstractmethod
    def inputs(self, node: N) -> list[V | None]:
        """The inputs of a node, by slot; None where one is absent, none at the end."""

    @abstractmethod
    def outputs(self, node: N) -> list[V | None]:
        """The outputs of a node, by slot."""

    @abstractmethod
    def source(self, value: V, op_types: Collection[str] = ()) -> Producer[N] | None:
        """The maker of a value, where a node of some operators is looked for; None where no node does."""

    @abstractmethod
    def attribute(self, node: N, name: str) -> Any:
        """An attribute of a node, its operator's default where it has none, or None."""

    @abstractmethod
    def is_returned(self, value: V) -> bool:
        """Whether a graph returns a value."""

    @abstractmethod
    def reader(self, value: V, inside: AbstractSet[int]) -> N | None:
        """A node that reads a value and whose id is not inside; None where there is none."""

    @abstractmethod
    def is_read_once(self, value: V) -> bool:
        """Whether one slot of one node reads a value, and nothing else does."""

    @abstractmethod
    def is_constant(self, value: V) -> bool:
        """Whether a value is a constant."""

    @abstractmethod
    def elements(self, value: V) -> Array | None:
        """The elements of a value that is known, None of any other."""

    @abstractmethod
    def elem_type(self, value: V) -> int:
        """The element type of a value, 0 where it is not known."""

    @abstractmethod
    def shape(self, value: V) -> tuple[Any, ...] | None:
        """The dims of a value, None where they are not known."""
