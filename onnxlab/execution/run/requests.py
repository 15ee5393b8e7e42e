"""Requests of runs: what is fed, asked for and kept, checked against the graph as it is now."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from onnxlab.errors import FeedError, NameLookupError
from onnxlab.execution.base import watching
from onnxlab.execution.base.array_memory import copied
from onnxlab.execution.base.value_store import StoreState, ValueStore
from onnxlab.execution.base.watching import Watched
from onnxlab.execution.planning.compiler import Compiler, FactOf
from onnxlab.execution.program import feeds as checks
from onnxlab.execution.program.run_errors import describe
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.ops import find_traits
from onnxlab.shapes import UNKNOWN, Fact, TensorFact, symbol

Keep: TypeAlias = 'bool | Literal["border", "exact"]'
"""What a run keeps: every value ("exact": and reuses none of other kernels), none, or those at the borders of parts."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of the main graph.

    Attributes:
        compiler, state: of the model and of the value store, at the same moment.
        unchecked, arrays: the feeds as they were given, and as checked arrays.
        asked, names: the outputs as they were asked for (None for the graph's), and the values that make them.
        inner: the outputs that are values inside bodies.
        keep: which values the run keeps.
        again: whether the feeds are the inputs of the last run.
        drawn: ids of values that a seed decides, which has been given: kept ones are of another seed.
        plain: whether a later run of the same key may skip the checks of a request.
    """

    compiler: Compiler
    state: StoreState
    unchecked: Mapping[str, Any]
    arrays: dict[str, Any]
    asked: Sequence[str] | None
    names: tuple[str, ...]
    inner: Sequence[Watched]
    keep: Keep
    again: bool
    drawn: frozenset[int]
    plain: bool

    @property
    def is_of_inputs(self) -> bool:
        """Whether only inputs are fed; otherwise the run is a what-if, which does not change the kept values."""
        main = self.compiler.snapshot.main
        return all(name in main.inputs and name not in main.initializers for name in self.unchecked)

    @property
    def is_kept(self) -> bool:
        """Whether the run keeps values: one that watches bodies keeps none, since each body has to run for that."""
        return bool(self.keep) and self.is_of_inputs and not self.inner

    @property
    def is_like_others(self) -> bool:
        """Whether a later run of the same key may do without the checks of this one: its feeds went in as they were.

        That of a what-if may not: it reads kept values, and is not noted as the last run.
        """
        return self.plain and self.is_of_inputs and not self.inner and len(self.unchecked) == len(self.arrays) and all(
            self.unchecked.get(name) is array for name, array in self.arrays.items()
        )  # fmt: skip

    def is_answered(self, arrays: Mapping[str, Any]) -> bool:
        """Whether all outputs are kept, of the same `arrays`, in a run after an edit, or of the last run's inputs."""
        ids, state = self.compiler.ids, self.state
        same = not self.drawn and all(state.arrays.get(ids[name]) is array for name, array in arrays.items())
        # an output that nothing makes has no id
        return same and bool(self.again or state.stale) and all(state.fresh(ids.get(name, 0)) for name in self.names)

    def picked(self, results: dict[str, Any]) -> dict[str, Any]:
        """The results that were asked for, in that order."""
        return results if self.asked is None else {name: results[name] for name in dict.fromkeys(self.asked)}


class Requests:
    """Feeds and names of outputs, for one graph and what is kept of its values.

    Args:
        fact: what inference knows of a value id; default: what the file declares.
    """

    def __init__(self, graph: ModelGraph, store: ValueStore, fact: FactOf | None) -> None:
        self._graph = graph
        self._store = store
        self._fact = fact or self.declared
        self._inputs: tuple[Any, dict[str, Fact]] = None, {}  # the graph's view, and the declared facts of its inputs

    def declared(self, value: int) -> Fact:
        """The type that the file declares for a value; UNKNOWN where it declares none."""
        record = self._graph.values.get(value)
        if record is None or record.info is None:
            return UNKNOWN
        return fact_of_type(record.info.type, lambda axis: symbol(f"{record.name}.{axis}"))

    def outputs(
        self, compiler: Compiler, outputs: Sequence[str] | None, inner: Sequence[Watched] = ()
    ) -> tuple[str, ...]:
        """Names of the values of the main graph to compute for these outputs; by default the graph's outputs.

        Raises:
            FeedError: an output of the graph has no name.
            NameLookupError: no value of the main graph has one of these names.
        """
        if outputs is None:
            names = dict.fromkeys(compiler.snapshot.main.outputs)
            if "" in names:
                raise FeedError("an output of the graph has no name; give it one, or name the outputs to run for")
            return tuple(names)
        ids = compiler.ids
        paths = {value.path for value in inner}
        names = dict.fromkeys(name for name in asked(outputs) if name not in paths)
        for name in names:
            if name not in ids:
                close = difflib.get_close_matches(name, list(ids), 3)
                meant = f"did you mean {' or '.join(map(repr, close))}?"
                hint = meant if close else _some(compiler.snapshot.main.outputs)
                raise NameLookupError(f"no value of the main graph is called {name!r}; {hint}")
        names.update(dict.fromkeys(name for value in inner for name in value.outputs))
        return tuple(names)

    def watched(self, compiler: Compiler, outputs: Sequence[str] | None) -> list[Watched]:
        """The outputs that are values inside bodies."""
        if outputs is None:
            return []
        ids, main = compiler.ids, self._graph
        inner = [name for name in asked(outputs) if name not in ids and "/" in name]
        return [watching.find(main, compiler.snapshot, name) for name in inner]

    def check_missing(self, compiler: Compiler, feeds: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        """Raise FeedError where the outputs need an input that is not fed."""
        ends = compiler.main.border(outputs, set(feeds).__contains__, missing=True)
        inputs = self.input_facts(compiler)
        checks.check_missing([name for name in ends if name in inputs], feeds, inputs)

    def input_facts(self, compiler: Compiler) -> dict[str, Fact]:
        """The declared facts of the graph's inputs; looked up once while no more than data and nodes change."""
        main = compiler.snapshot.main
        view, facts = self._inputs
        if view is not main:
            facts = {
                name: self.declared(value)
                for name, value in zip(main.inputs, main.input_ids, strict=True)
                if name not in main.initializers
            }
            self._inputs = main, facts
        return facts

    def named(self, compiler: Compiler, feeds: Any) -> Mapping[str, Any]:
        """Feeds by name: where the graph has one input, its array alone will do.

        Raises:
            FeedError: `feeds` is not a mapping, and the graph does not have exactly one input.
        """
        if isinstance(feeds, Mapping):
            return feeds
        inputs = self.input_facts(compiler)
        if len(inputs) != 1:
            takes = f"the inputs are {checks.listed(inputs)}" if inputs else "the model has no inputs"
            raise FeedError(f"feeds are given by name, as {{name: array}}; given {describe(feeds)}; {takes}")
        return dict.fromkeys(inputs, feeds)

    def checked(self, compiler: Compiler, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The feeds as arrays: inputs must be as declared, of other values only the dtype is checked.

        Pinned values are checked with them: what fit when it was pinned may not do so after an edit.
        """
        ids = compiler.ids
        inputs = self.input_facts(compiler)
        if not feeds.keys() <= ids.keys():
            checks.check_names(feeds, inputs, ids)
        facts = {name: inputs[name] if name in inputs else _dtype_only(self._fact(ids[name])) for name in feeds}
        return checks.convert(feeds, facts)

    def with_pins(self, compiler: Compiler, arrays: dict[str, Any]) -> dict[str, Any]:
        """The feeds and the pinned values that are not fed."""
        pins, names = self._store.pins, compiler.names if self._store.pins else {}
        return {names[value]: array for value, array in pins.items() if value in names} | arrays

    def pin(self, compiler: Compiler, name: str, value: Any) -> None:
        """Use this array for a value in every run that does not feed it. Raises as `checked`."""
        ((name, array),) = self.checked(compiler, {name: value}).items()
        self._store.pin(compiler.ids[name], copied(array))

    def unpin(self, name: str | None) -> None:
        """Let the graph make a pinned value again; without a name, all pinned values.

        Raises:
            NameLookupError: the value is not pinned.
        """
        values, store = self._graph.values, self._store
        names = {values[value].name: value for value in store.pins if value in values}
        if name is not None and name not in names:
            listed = ", ".join(map(repr, names)) or "none"
            raise NameLookupError(f"{name!r} is not pinned; pinned are: {listed}")
        for value in names.values() if name is None else (names[name],):
            store.unpin(value)

    def last_inputs(self, compiler: Compiler, state: StoreState) -> dict[str, Any]:
        """The graph's inputs that are kept, or pinned since."""
        main, pins = compiler.snapshot.main, self._store.pins
        return {
            name: pins[value] if value in pins else state.arrays[value]
            for name, value in zip(main.inputs, main.input_ids, strict=True)
            if value in state.arrays and name not in main.initializers
        }


def drawn(compiler: Compiler, seed: int | None, among: Container[int] | None = None) -> frozenset[int]:
    """Ids of the values that a seed decides, none without one: nodes make them which may draw random numbers.

    They do so themselves, in bodies, or in functions. By default, values `among` all are asked for.
    """
    nodes = () if seed is None else compiler.snapshot.main.nodes
    outputs = (node.outputs for node in nodes if node.attributes.bodies or _is_random(node))
    values = (compiler.ids[name] for names in outputs for name in names if name)
    return frozenset(value for value in values if among is None or value in among)


def _is_random(node: NodeView) -> bool:
    """Whether an operator is random, or may be: a function, or one that ONNX does not know."""
    return not node.since_version or find_traits(node.domain, node.op_type).random


def asked(outputs: Any) -> list[str]:
    """The names of outputs that a caller gave: one or several.

    Raises:
        NameLookupError: an item is not a name.
    """
    names = [outputs] if isinstance(outputs, str) or not isinstance(outputs, Iterable) else list(outputs)
    for name in names:
        if not isinstance(name, str):
            raise NameLookupError(f"outputs are asked for by name, as outputs=['y']; given {name!r:.100}")
    return names


def _some(outputs: Sequence[str]) -> str:
    shown = ", ".join([*map(repr, outputs[:_SHOWN]), *(["…"] if len(outputs) > _SHOWN else [])])
    return f"the graph's outputs are {shown or 'none'}"


_SHOWN = 8


def _dtype_only(fact: Fact) -> Fact:
    """The fact without its shape: a fed intermediate value may have any, and nodes that cannot take it raise errors."""
    return TensorFact(fact.elem_type) if isinstance(fact, TensorFact) else fact
