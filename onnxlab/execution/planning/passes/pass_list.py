"""The passes of this folder: a class derived from `NodePass` in a file of its own is one."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import Any

from onnxlab.execution.planning import passes
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.shapes import Fact

_FIRST_ID = -1 << 40  # above the ids of added nodes; nodes from functions have ids below 0 too, but above this one


@dataclass(frozen=True, slots=True)
class NodeList:
    """The nodes of a run that keeps nothing, with calls and decided branches inlined.

    Attributes:
        nodes: in topological order.
        seen: names that are fed or asked for: their values have to stay the same.
        constant: gives an initializer's array by its name, None for other names.
        fact: gives what is known of a value by its name.
        opset: version of ai.onnx of the nodes.
        scope: the compiler's own knowledge of the graph, body or function that the nodes are in.
    """

    nodes: tuple[NodeView, ...]
    seen: Collection[str]
    constant: Callable[[str], Any]
    fact: Callable[[str], Fact]
    opset: int
    scope: Any


class NodePass(ABC):
    """A replacement of nodes of a run; the model is never changed.

    Attributes:
        order: passes with lower numbers come first.
    """

    order: int = 0

    @abstractmethod
    def run(self, draft: NodeList) -> NodeList:
        """The nodes with which a run makes the same values, and the facts of these; `draft` where no node changes."""


class Additions:
    """Values and nodes that a pass adds.

    Attributes:
        ids: those that no node has, one after the other.
        arrays, facts: of the added constants and values, and facts of others that changed.
    """

    def __init__(self, draft: NodeList) -> None:
        self._draft = draft
        self._taken = {*draft.scope.ids}.union(*([*draft.scope.reads(node), *node.outputs] for node in draft.nodes))
        self.ids = count(min(_FIRST_ID, *(node.id for node in draft.nodes)) - 1, -1)
        self.arrays: dict[str, Any] = {}
        self.facts: dict[str, Fact] = {}

    def name(self, stem: str) -> str:
        """A name that no value has: the stem, with a number where it is taken."""
        numbered = (f"{stem} {number}" for number in count(1))
        name = next(name for name in chain([stem], numbered) if name not in self._taken)
        self._taken.add(name)
        return name

    def constant(self, name: str) -> Any:
        """The array of an initializer, an added one too; None for any other name."""
        return self.arrays[name] if name in self.arrays else self._draft.constant(name)

    def fact(self, name: str) -> Fact:
        """The fact of a value of the model, or of an added one."""
        return self.facts.get(name) or self._draft.fact(name)


@cache
def listed() -> tuple[NodePass, ...]:
    """The passes, in their order."""
    for module in pkgutil.iter_modules(passes.__path__):
        importlib.import_module(f"{passes.__name__}.{module.name}")
    instances = [subclass() for subclass in NodePass.__subclasses__()]
    return tuple(sorted(instances, key=lambda item: (item.order, type(item).__name__)))
