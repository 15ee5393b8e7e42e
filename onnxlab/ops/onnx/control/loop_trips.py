"""Trip counts of Loops: by the count alone, or by a counter that the condition is about.

Exporters write while loops with a condition that compares a counter with a bound in every iteration; the trip count is
then the largest possible one, or absent. The counter is a carried integer that grows by the same number in each
iteration. One inference of the body, with the counter as an expression of the iterations left, tells whether the
condition holds in all iterations but the last. Where the trip count does not tell the last one, a search finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.rule_helpers import MaybeFact, scalar
from onnxlab.shapes import UNKNOWN, Dim, Expr, Fact, TensorFact, from_items, maximum, replace_symbols
from onnxlab.shapes.expressions import symbol_atoms

Run = Callable[[Fact, Sequence[Fact]], list[Fact]]
"""The body's outputs, for facts of the iteration's number and of the carried values."""

Limits = tuple[MaybeFact, MaybeFact]

ITERATION = TensorFact(dtypes.INT64, ())

FARTHEST = 1 << 20
"""The most iterations among which the last one is searched for."""

_LEFT = -1
"""The axis in the key of the symbol for the number of iterations left."""


def trip_count(
    ctx: InferContext, run: Run, start: Sequence[Fact], state: Sequence[Fact], again: Fact, limits: Limits
) -> Dim | None:
    """Iterations of a Loop; None where data decides.

    Args:
        start: facts of the carried values before the first iteration.
        state: facts of the carried values that hold before every iteration.
        again: fact of the condition that the body makes for `state`; the last inference of the body is for `state`.
        limits: facts of the trip count and of the first condition, None where they are absent.
    """
    limit, condition = limits
    first = True if condition is None else scalar(condition)
    trips = scalar(limit)
    if first is False or (isinstance(trips, int) and trips <= 0):
        return 0
    if first is not True or (limit is not None and not isinstance(trips, (int, Expr))):
        return None
    goes_on = scalar(again)
    if goes_on is True:
        return None if limit is None else maximum(trips, 0)
    if goes_on is False:
        return 1 if limit is None or isinstance(trips, int) else None
    if ctx.depth:
        return None
    counted = _counted(_Counters(ctx, run, start, state), trips)
    run(ITERATION, state)
    return counted


def _counted(counters: _Counters, trips: Any) -> Dim | None:
    """Iterations by a proof over the counters, of which there may be none."""
    if trips == 1:
        return 1
    if not counters.steps:
        return None
    if trips is not None and counters.hold_until(trips):
        return maximum(trips, 0)
    last = None if isinstance(trips, Expr) else counters.end(FARTHEST if trips is None else min(trips, FARTHEST))
    return last if last is not None and counters.hold_until(last) else None


class _Counters:
    """The carried integers of a Loop that grow by the same number in each iteration.

    Attributes:
        steps: what an iteration adds to each counter, by slot.
    """

    def __init__(self, ctx: InferContext, run: Run, start: Sequence[Fact], state: Sequence[Fact]) -> None:
        self._run = run
        self._state = state
        self._left = ctx.symbol(0, _LEFT)
        self._begun = [scalar(fact) for fact in start]
        results = run(ITERATION, start)
        self.steps: dict[int, int] = {}
        for slot, before in enumerate(self._begun):
            after = scalar(results[slot + 1])
            if all(type(counter) is not bool and isinstance(counter, (int, Expr)) for counter in (before, after)):
                step = after - before
                if isinstance(step, int):
                    self.steps[slot] = step

    def hold_until(self, trips: Dim) -> bool:
        """Whether the condition holds after every iteration but the last of `trips`, by induction over its number."""
        return self._condition(trips - 2 - self._left) is True

    def end(self, most: int) -> int | None:
        """The number of iterations after which the condition seems to fail first, if it does within `most`."""
        holds, fails = 0, 1
        while (holding := self._condition(fails - 1)) is True and fails < most:
            holds, fails = fails, min(2 * fails, most)
        if holding is not False:
            return None
        while fails - holds > 1:
            middle = (holds + fails) // 2
            holds, fails = (middle, fails) if self._condition(middle - 1) is True else (holds, middle)
        return fails

    def _condition(self, number: Dim) -> Any:
        """The condition after an iteration; None where the body does not make the counters of the next one."""
        before = [
            _known(fact, self._at(slot, number)) if slot in self.steps else fact
            for slot, fact in enumerate(self._state)
        ]
        results = self._run(_known(ITERATION, number), before)
        for slot in self.steps:
            expected = self._at(slot, number + 1)
            if self._outside(scalar(results[slot + 1]), expected) != expected:
                return None
        return scalar(results[0])

    def _at(self, slot: int, number: Dim) -> Any:
        return self._begun[slot] + self.steps[slot] * number

    def _outside(self, value: Any, expected: Dim) -> Any:
        """`value` with the symbol that the body has for the iterations left replaced by the one here."""
        if not isinstance(value, Expr):
            return value
        known = set(symbol_atoms(expected))
        inner = [atom for atom in symbol_atoms(value) if atom not in known]
        if len(inner) != 1 or not isinstance(inner[0].key, tuple) or inner[0].key[-1] != _LEFT:
            return value
        return replace_symbols(value, {inner[0]: self._left}.get)


def _known(fact: Fact, value: Any) -> Fact:
    """An integer of which the value is known."""
    return TensorFact(fact.elem_type, (), from_items((), [value], "i")) if isinstance(fact, TensorFact) else UNKNOWN
