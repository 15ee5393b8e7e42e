"""The budget of one inference: processor time, and parts of expressions and elements that are kept.

A file of a few bytes can ask for more than any machine has: bodies walked three times at each of thirty levels, tensors
of 512 symbolic elements made anew by every node. When the budget is spent, a diagnostic says where, and the rest of
the facts are unknown.
"""

from __future__ import annotations

import time
from typing import Final

from onnxlab.infer.rules.operators import Outcome, Problem
from onnxlab.shapes import UNKNOWN, Dim, Expr, TensorFact
from onnxlab.threads import thread_time

SECONDS: Final = 20.0
SECONDS_PER_NODE: Final = 0.001
PARTS: Final = 2_000_000
PARTS_PER_NODE: Final = 64

MAX_DEPTH: Final = 60
"""The most functions and subgraphs nested in each other that are followed. A level takes ten of Python's frames."""


class Budget:
    """Counts what an inference of a graph with so many nodes takes, by outcomes that no memo had.

    The clock starts at the first outcome that no memo has: most edits need none.
    """

    __slots__ = ("_not_before", "_parts", "_seconds", "_told", "_until")

    def __init__(self, nodes: int) -> None:
        self.renew(nodes)

    def renew(self, nodes: int, seconds: float | None = None) -> None:
        """Begin again, for another inference; it may take `seconds`, by default as many as the nodes allow."""
        self._seconds = SECONDS + SECONDS_PER_NODE * nodes if seconds is None else seconds
        self._parts = PARTS + PARTS_PER_NODE * nodes
        self._until = self._not_before = 0.0
        self._told = False

    def is_spent(self) -> bool:
        """Whether nothing more is to be inferred."""
        if not self._until:
            self._until, self._not_before = thread_time() + self._seconds, time.monotonic() + self._seconds
            return self._parts < 0 or self._seconds < 0
        # a thread has no more of the processor's time than has passed, which takes less to ask for
        return self._parts < 0 or (time.monotonic() >= self._not_before and thread_time() > self._until)

    def count(self, outcome: Outcome) -> None:
        """Count what an outcome keeps in memory."""
        for fact in outcome.facts:
            if type(fact) is TensorFact and fact.shape is not None:
                self._parts -= _parts(fact.shape)
                if fact.known is not None:
                    self._parts -= len(fact.known.items) if fact.known.complete else _parts(fact.known.items)

    def nothing(self, outputs: int) -> Outcome:
        """The outcome of a node that is not inferred any more; the first one carries a diagnostic."""
        problems: tuple[Problem, ...] = ()
        if not self._told:
            self._told = True
            resource = "processor time" if self._parts >= 0 else "memory"
            message = f"inference ended here: it took more {resource} than its budget; what follows is unknown"
            problems = (Problem("warning", "inference-budget", message),)
        return Outcome((UNKNOWN,) * outputs, False, problems)


def _parts(items: tuple[object, ...] | tuple[Dim, ...]) -> int:
    return sum([item.size if type(item) is Expr else 1 for item in items])
