"""The table of rules: which nodes a region takes, and what makes records of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.plan.elementwise_chains import SMALL_FLOATS
from onnxlab.execution.numba.rules.attribute_checks import unfit
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.shapes import Fact, TensorFact

Lower: TypeAlias = Callable[[Binder, NodeView], None]


class StaticFacts(Protocol):
    """Facts of a scope's values that are known before anything runs."""

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """Array of an initializer."""

    def known(self, name: str) -> bool:
        """Whether a value is a constant, or follows from shapes, and so is there when a plan is made."""

    def fact(self, name: str) -> Fact:
        """The inferred fact of a value."""

    def read(self, name: str) -> bool:
        """Whether a node reads the value."""


Accept: TypeAlias = Callable[[NodeView, StaticFacts], str]
"""Why a node is not taken, "" where it is."""


@dataclass(frozen=True, slots=True)
class LoweringRule:
    """One operator.

    Attributes:
        lower: emits the node's records; raises UnbindableError where the shapes or values of a call do not suit.
        accept: judges a node by its attributes and facts.
        since: the oldest supported version of the operator.
        weight: gain over NumPy: 0 where nothing is computed, 1 for a pass over memory, more for products.
        reads: numbers of the inputs whose integers may be known at run time only.
    """

    lower: Lower
    accept: Accept
    since: int
    weight: int
    reads: tuple[int, ...] = ()


FLOATS = (np.dtype(np.float32), *SMALL_FLOATS)
RULES: dict[tuple[str, str], LoweringRule] = {}


def floats(node: NodeView, view: StaticFacts) -> str:
    """Takes float32, and float16 and bfloat16 by widening, of known rank."""
    return _check(node, view, lambda dtype: dtype in FLOATS)


def numbers(node: NodeView, view: StaticFacts) -> str:
    """Takes any fixed-size elements, of known rank: for what only moves them."""
    return _check(node, view, moves)


def moves(dtype: np.dtype[np.generic]) -> bool:
    """Whether elements of this dtype can be moved."""
    return dtype in FLOATS or (dtype.kind in "fiub" and dtype.itemsize in (1, 2, 4, 8))


def bools(node: NodeView, view: StaticFacts) -> str:
    """Takes float32 and bool."""
    return _check(node, view, lambda dtype: dtype in (*FLOATS, np.bool_))


def _check(node: NodeView, view: StaticFacts, fits: Callable[[np.dtype[np.generic]], bool]) -> str:
    return reason_at(node, view, fits, *range(1 if node.op_type in _FIRST_ONLY else len(node.inputs)))


_FIRST_ONLY = frozenset((
    "Reshape", "Slice", "Squeeze", "Unsqueeze", "Expand", "Split", "Gather", "Pad", "Tile", "ReduceMean", "ReduceSum",
    "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp", "Dropout", "Clip",
))  # fmt: skip
"""Operators whose other inputs are integers to be known while binding."""


def reason_at(node: NodeView, view: StaticFacts, fits: Callable[[np.dtype[np.generic]], bool], *slots: int) -> str:
    """The reason why a node is not taken, "" where the inputs `slots` have fitting dtypes and known ranks."""
    for slot in slots:
        name = node.inputs[slot] if len(node.inputs) > slot else ""
        if name and (reason := dtype_reason(name, view, fits)):
            return reason
    return ""


def floats_at(node: NodeView, view: StaticFacts, *slots: int) -> str:
    """The reason why a node is not taken, "" where the inputs `slots` are floats of known rank."""
    return reason_at(node, view, lambda dtype: dtype in FLOATS, *slots)


def dtype_reason(name: str, view: StaticFacts, fits: Callable[[np.dtype[np.generic]], bool]) -> str:
    """The reason why a value's element type is not supported, "" where it is or is not known yet."""
    constant = view.constant(name)
    if view.known(name) and constant is None:
        return ""
    if constant is not None:
        return "" if fits(constant.dtype) else f"{name!r} is {constant.dtype}"
    fact: Fact = view.fact(name)
    if not isinstance(fact, TensorFact) or fact.shape is None or fact.dtype is None:
        return f"the type or rank of {name!r} is not known"
    return "" if fits(fact.dtype) else f"{name!r} is {fact.dtype}"


def _fitting(accept: Accept) -> Accept:
    return lambda node, view: unfit(node) or accept(node, view)


def rule(
    *op_types: str, accept: Accept = floats, since: int = 1, weight: int = 1, domain: str = "",
    reads: tuple[int, ...] = (),
) -> Callable[[Lower], Lower]:  # fmt: skip
    """Decorator: enter a function as the rule of these operators."""

    def enter(lower: Lower) -> Lower:
        for op_type in op_types:
            RULES[domain, op_type] = LoweringRule(lower, _fitting(accept), since, weight, reads)
        return lower

    return enter


def find(node: NodeView) -> LoweringRule | None:
    """The rule of a node's operator in its version, which is 0 for operators without a schema."""
    entry = RULES.get((node.domain, node.op_type))
    return entry if entry is not None and (node.domain or node.since_version >= entry.since) else None
