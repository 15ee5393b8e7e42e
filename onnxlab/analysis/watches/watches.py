"""Watches of a model: expressions on its values, checked against the last run and against what inference knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onnxlab.analysis.compare.error import error
from onnxlab.analysis.compare.sides import made_values
from onnxlab.analysis.statistics import Statistics, statistics
from onnxlab.analysis.watches.expression import Expression, WatchError
from onnxlab.analysis.watches.references import References
from onnxlab.errors import LoadError, NameLookupError
from onnxlab.execution.base.value_store import ValueStore
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.printable import printable_lines
from onnxlab.shapes import Fact

State = Literal["holds", "fails", "unknown"]
_OF_FACTS = frozenset(("shape", "rank", "dtype"))
_WORDS = {"close_to": "off by"}


METADATA = "onnxlab.watches"
"""Key of a model's metadata: a JSON list of [name, expression], where name is of a value or node, or "*"."""

EVERYTHING = "*"
"""Stands for every value of the main graph."""

_MOST = 1000
"""Watches that a model file may bring."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A watch and what came of it.

    Attributes:
        value: name of the value or node, "*" for the whole model.
        text: the expression.
        state: "unknown" where no run made the value since it changed.
        why: the reason where the watch fails or is unknown.
        values: ids of the values that fail, or of all values that are watched where none does.
    """

    value: str
    text: str
    state: State
    why: str = ""
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.state:7} {self.value}: {self.text}{f' ({self.why})' if self.why else ''}"


class _Unknown(Exception):
    """A measure that nothing tells yet."""


@dataclass(frozen=True, slots=True)
class _Watch:
    """One watch: of a value, of what a node makes, or with neither of every value."""

    expression: Expression
    value: int = 0
    node: int = 0


class Watches:
    """The watches of one model, in the order in which they were added; those that its file brings come first.

    Args:
        tell: computes those of some values that the last run did not keep.
    """

    def __init__(
        self, graph: ModelGraph, fact: Callable[[int], Fact], store: ValueStore, tell: Callable[[Iterable[int]], None]
    ) -> None:
        self._graph, self._fact, self._store, self._tell = graph, fact, store, tell
        self._all: list[_Watch] = []
        self._known: dict[int, tuple[Any, Statistics]] = {}  # by value id: the measured array and its statistics
        self._references = References(graph)
        self.refused: list[str] = []
        if any(entry.key == METADATA for entry in graph.header.metadata_props):
            self._take(next(entry.value for entry in graph.header.metadata_props if entry.key == METADATA))

    def add(self, name: str | int, text: str) -> Checked:
        """Watch a value or what a node makes, by name, a value by its id, or "*": every value.

        Raises:
            NameLookupError: there is nothing of this name.
            WatchError: the expression cannot be read.
        """
        self._all.append(self._watch(name, Expression(text)))
        return self._checked(self._all[-1])

    def remove(self, place: int) -> None:
        """Forget a watch by its place; one that is not there is forgotten already."""
        if 0 <= place < len(self._all):
            del self._all[place]

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

    def compute(self) -> None:
        """Compute the watched values that the last run did not keep; the graph's lock must not be held."""
        graph = self._graph
        with graph.lock:
            values: dict[int, None] = {}
            for watch in self._all:
                node = graph.nodes.get(watch.node)
                outputs = (watch.value,) if watch.value else made_values(graph) if not watch.node else ()
                values.update(dict.fromkeys(node.outputs if node is not None else outputs))
        self._tell(value for value in values if value)

    def check(self, *, compute: bool = True) -> list[Checked]:
        """All watches as of now: what did not change is not measured again.

        A watch of a value that an edit changed is unknown until the next run.

        Args:
            compute: first compute the watched values that the last run did not keep.
        """
        if compute:
            self.compute()
        with self._graph.lock:
            return [self._checked(watch) for watch in self._all]

    @property
    def failing(self) -> list[Checked]:
        """The checks that do not hold."""
        return [checked for checked in self.check() if checked.state == "fails"]

    def to_json(self) -> str:
        """Write the watches as a model file may bring them: `model.metadata["onnxlab.watches"]`."""
        return json.dumps([[name, watch.expression.text] for watch in self._all if (name := self._name(watch))])

    def _watch(self, name: str | int, expression: Expression) -> _Watch:
        if isinstance(name, int):
            return _Watch(expression, value=name)
        if name == EVERYTHING:
            return _Watch(expression)
        try:
            return _Watch(expression, value=self._graph.resolve_value(name))
        except NameLookupError as error:
            try:
                return _Watch(expression, node=self._graph.resolve_node(name))
            except NameLookupError:
                raise error from None

    def _take(self, text: str) -> None:
        """Enter the watches that the file brings; what cannot be read is listed in `refused`."""
        try:
            listed = json.loads(text)
            pairs = [(str(name), str(expression)) for name, expression in listed[:_MOST]]
        except (ValueError, TypeError, RecursionError):
            self.refused.append(f"the metadata {METADATA} is no JSON list of [name, expression]")
            return
        for name, expression in pairs:
            try:
                self._all.append(self._watch(name, Expression(expression)))
            except (NameLookupError, WatchError) as error:
                self.refused.append(str(error))

    def _name(self, watch: _Watch) -> str:
        """The name of what is watched, "" where it is gone."""
        graph = self._graph
        if watch.node:
            return graph.label(graph.nodes[watch.node]) if watch.node in graph.nodes else ""
        if watch.value:
            return graph.values[watch.value].name if watch.value in graph.values else ""
        return EVERYTHING

    def to_pytest(self, model: str, inputs: str = "") -> str:
        """Write the watches as a test file that needs pytest and onnxlab alone.

        Args:
            model: path of the model, from the test file's folder.
            inputs: path of an .npz of its inputs; "" makes them up, the same each time.
        """
        watches = [(name, watch.expression.text) for watch in self._all if (name := self._name(watch))]
        return _TESTS.format(model=model, inputs=inputs, watches="".join(f"    {pair!a},\n" for pair in watches))

    def __str__(self) -> str:
        return printable_lines(map(str, self.check())) if self._all else "no watches"

    def _checked(self, watch: _Watch) -> Checked:
        name, text = self._name(watch), watch.expression.text
        if not name:
            return Checked("?", text, "unknown", "it is gone")
        if watch.value:
            state, why = self._value_checked(watch.value, watch.expression)
            return Checked(name, text, state, why, (watch.value,))
        outputs = self._graph.nodes[watch.node].outputs if watch.node else made_values(self._graph)
        values = [value for value in outputs if value]
        checked = {value: self._value_checked(value, watch.expression) for value in values}
        failing = tuple(value for value, (state, _) in checked.items() if state == "fails")
        if failing:
            more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
            why = f"{self._graph.values[failing[0]].name}: {checked[failing[0]][1]}{more}"
            return Checked(name, text, "fails", why, failing)
        unknown = [why for state, why in checked.values() if state == "unknown"]
        if len(unknown) == len(values):
            return Checked(name, text, "unknown", unknown[0] if unknown else "it makes nothing", tuple(values))
        return Checked(name, text, "holds", "", tuple(values))

    def _value_checked(self, value: int, expression: Expression) -> tuple[State, str]:
        numbers: dict[str, Any] = {}

        def measure(name: str, *arguments: Any) -> Any:
            numbers[name] = self._close(value, *arguments) if arguments else self._measure(value, name)
            return numbers[name] <= arguments[1] if arguments else numbers[name]

        try:
            holds = expression(measure)
        except _Unknown as missing:
            return "unknown", str(missing)
        except (WatchError, LoadError) as problem:
            return "fails", str(problem)
        if holds:
            return "holds", ""
        return "fails", ", ".join(f"{_WORDS.get(name, name)} = {_text(number)}" for name, number in numbers.items())

    def _close(self, value: int, file: str, tolerance: float) -> float:
        """The distance of a value from its record in a file, relative to the peak of the record."""
        array = self._store.get(value) if self._store.fresh(value) else None
        if array is None:
            raise _Unknown("not run since it changed")
        reference = self._references.of(file, self._graph.values[value].name)
        return error(reference, array).relative

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
