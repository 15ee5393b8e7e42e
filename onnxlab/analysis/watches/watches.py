"""Watches of a model: expressions on its values, checked against the last run and against what inference knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onnxlab.analysis.statistics import Statistics, statistics
from onnxlab.analysis.watches.expression import Expression, WatchError
from onnxlab.execution.base.value_store import ValueStore
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.printable import printable_lines
from onnxlab.shapes import Fact

State = Literal["holds", "fails", "unknown"]
_OF_FACTS = frozenset(("shape", "rank", "dtype"))


@dataclass(frozen=True, slots=True)
class Checked:
    """A watch and what came of it.

    Attributes:
        value: name of the value.
        text: the expression.
        state: "unknown" where no run made the value since it changed.
        why: what was found where it fails or is unknown.
    """

    value: str
    text: str
    state: State
    why: str = ""

    def __str__(self) -> str:
        return f"{self.state:7} {self.value}: {self.text}{f' ({self.why})' if self.why else ''}"


class _Unknown(Exception):
    """A measure that nothing tells yet."""


class Watches:
    """The watches of one model, in the order in which they were added."""

    def __init__(self, graph: ModelGraph, fact: Callable[[int], Fact], store: ValueStore) -> None:
        self._graph, self._fact, self._store = graph, fact, store
        self._all: list[tuple[int, Expression]] = []
        self._known: dict[int, tuple[Any, Statistics]] = {}  # by value, of which array

    def add(self, value: int, text: str) -> None:
        """Watch a value.

        Raises:
            WatchError: the expression cannot be read.
        """
        self._all.append((value, Expression(text)))

    def clear(self) -> None:
        """Forget all watches."""
        self._all.clear()
        self._known.clear()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Checked]:
        return iter(self.check())

    def __bool__(self) -> bool:
        return True

    def check(self) -> list[Checked]:
        """All watches as of now: nothing is run, and what did not change is not measured again."""
        with self._graph.lock:
            return [self._checked(value, expression) for value, expression in self._all]

    @property
    def failing(self) -> list[Checked]:
        """Those that do not hold."""
        return [checked for checked in self.check() if checked.state == "fails"]

    def to_pytest(self, model: str, inputs: str = "") -> str:
        """Write the watches as a test file that needs pytest and onnxlab alone.

        Args:
            model: path of the model, from the test file's folder.
            inputs: path of an .npz of its inputs; "" makes them up, the same each time.
        """
        watches = [(self._graph.values[value].name, expression.text) for value, expression in self._all
                   if value in self._graph.values]  # fmt: skip
        return _TESTS.format(model=model, inputs=inputs, watches="".join(f"    {pair!a},\n" for pair in watches))

    def __str__(self) -> str:
        return printable_lines(map(str, self.check())) if self._all else "no watches"

    def _checked(self, value: int, expression: Expression) -> Checked:
        record = self._graph.values.get(value)
        if record is None:
            return Checked("?", expression.text, "unknown", "the value is gone")
        numbers: dict[str, Any] = {}

        def measure(name: str) -> Any:
            numbers[name] = self._measure(value, name)
            return numbers[name]

        try:
            holds = expression(measure)
        except _Unknown as missing:
            return Checked(record.name, expression.text, "unknown", str(missing))
        except WatchError as error:
            return Checked(record.name, expression.text, "fails", str(error))
        measurements = ", ".join(f"{name} = {_text(number)}" for name, number in numbers.items())
        return Checked(record.name, expression.text, "holds" if holds else "fails", "" if holds else measurements)

    def _measure(self, value: int, name: str) -> Any:
        array = self._store.get(value) if self._store.fresh(value) else None
        if array is None:
            if name not in _OF_FACTS:
                raise _Unknown("not run since it changed")
            return self._of_fact(value, name)
        known = self._known.get(value)
        if known is None or known[0] is not array:
            known = self._known[value] = (array, statistics(array))
        return measured(known[1], array, name)

    def _of_fact(self, value: int, name: str) -> Any:
        fact: Any = self._fact(value)
        if name == "dtype":
            if fact.dtype is None:
                raise _Unknown("its type is not known")
            return str(fact).partition("[")[0]
        if fact.shape is None:
            raise _Unknown("its shape is not known")
        if name == "rank":
            return len(fact.shape)
        return tuple(dim if isinstance(dim, int) else None for dim in fact.shape)


def measured(summary: Statistics, array: Any, name: str) -> Any:
    """One measure of an array by its statistics."""
    if name == "abs_max":
        return max(abs(summary.minimum or 0), abs(summary.maximum or 0))
    if name in ("min", "max"):
        return summary.minimum if name == "min" else summary.maximum
    if name == "shape":
        return tuple(summary.shape)
    if name == "rank":
        return np.ndim(array)
    return getattr(summary, name)


def _text(number: Any) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


_TESTS = '''"""Watches of a model, each a test."""

from pathlib import Path

import numpy as np
import onnxlab
import pytest

FOLDER = Path(__file__).parent
MODEL, INPUTS = {model!a}, {inputs!a}
WATCHES = [
{watches}]


@pytest.fixture(scope="module")
def model():
    loaded = onnxlab.load(FOLDER / MODEL)
    given = dict(np.load(FOLDER / INPUTS)) if INPUTS else None
    loaded.run(loaded.sample_inputs(given))
    return loaded


@pytest.mark.parametrize(("value", "text"), WATCHES)
def test_watch(model, value, text):
    model.watches.clear()
    model.watch(value, text)
    assert [str(each) for each in model.watches if each.state != "holds"] == []
'''
