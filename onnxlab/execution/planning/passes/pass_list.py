"""The passes of this folder: a class derived from `NodePass` in a file of its own is one."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnxlab.execution.planning import passes
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.shapes import Fact


@dataclass(frozen=True, slots=True)
class NodeList:
    """The nodes of a run that keeps nothing, with calls and decided branches inlined.

    Attributes:
        nodes: in topological order.
        seen: names that are fed or asked for: their values have to stay the same.
        constant: gives an initializer's array by its name, None for other names.
        fact: gives what is known of a value by its name.
        reads: gives the names that a node reads, in its bodies too.
        opset: version of ai.onnx of the nodes.
        block: gives the channels of a block of images in blocks; 0 where that is not known.
    """

    nodes: tuple[NodeView, ...]
    seen: Collection[str]
    constant: Callable[[str], Any]
    fact: Callable[[str], Fact]
    reads: Callable[[NodeView], Iterable[str]]
    opset: int
    block: Callable[[], int]


class NodePass(ABC):
    """A replacement of nodes of a run; the model is never changed.

    Attributes:
        order: passes with lower numbers come first.
    """

    order: int = 0

    @abstractmethod
    def run(self, draft: NodeList) -> NodeList:
        """The nodes with which a run makes the same values, and the facts of these; `draft` where no node changes."""


@cache
def listed() -> tuple[NodePass, ...]:
    """The passes, in their order."""
    for module in pkgutil.iter_modules(passes.__path__):
        importlib.import_module(f"{passes.__name__}.{module.name}")
    instances = [subclass() for subclass in NodePass.__subclasses__()]
    return tuple(sorted(instances, key=lambda item: (item.order, type(item).__name__)))
