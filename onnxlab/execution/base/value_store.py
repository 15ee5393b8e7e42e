"""Values that stay: the arrays of the last run, and which of them an edit or other inputs made stale.

No state is changed in place: a run works on the state it began with and merges the values it made, unless the model or
the state changed meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from types import MappingProxyType
from typing import Any, TypeVar

from onnxlab.execution.base.array_memory import at_most, freeze, same, total
from onnxlab.execution.base.dependents import Dependents
from onnxlab.execution.base.last_run import LastRun
from onnxlab.forking import fork_safe
from onnxlab.garbage_collection import about_to_hold
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import available_memory

K = TypeVar("K")

SHARE_OF_MEMORY = 0.4
"""Default share of the available memory that kept values may take."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """The stored values, by id. Immutable: a run may read it while another merges.

    Attributes:
        arrays: read-only arrays, lists and dicts.
        fed: values of the last run that were fed, and those of runs before it that were fed nothing else; edits may
            have removed some.
        stale: values whose node was changed, or that depend on such values.
        held: upper bound of the bytes of `arrays`; the exact count takes longer than many edits.
        has_run: whether the values are those of a run.
        lost: why the inputs of the last run are not there, "" where they are, or nothing was run.
        exact: whether no value was made by other kernels than NumPy's, node by node.
    """

    arrays: Mapping[int, Any] = field(default_factory=dict)
    fed: frozenset[int] = frozenset()
    stale: frozenset[int] = frozenset()
    held: int = 0
    has_run: bool = False
    lost: str = ""
    exact: bool = True

    def of_inputs(self) -> StoreState:
        """The state without what any kernels made."""
        arrays = {value: array for value, array in self.arrays.items() if value in self.fed}
        return replace(self, arrays=arrays, held=total(arrays.values()), exact=True)

    def fresh(self, value: int) -> bool:
        """Whether the value's array is there and up to date."""
        return value in self.arrays and value not in self.stale

    def after(
        self, fed: Mapping[int, Any], values: Mapping[int, Any], stale: frozenset[int], budget: int
    ) -> StoreState:
        """The state after a run that keeps all values, with what other runs left as far as there is room.

        Args:
            fed, values: what the run was fed and what it made, None where there was no room; inputs stay in any case.
            stale: the values that were stale when the run began.
        """
        new = {value: array for value, array in values.items() if array is not None}
        freeze((*fed.values(), *new.values()))
        arrays = {value: array for value, array in self.arrays.items() if value not in values} | {**fed, **new}
        held = self.held + at_most(fed.values()) + at_most(new.values())
        if held > budget and (held := total(arrays.values())) > budget:
            arrays = {**dict(_last_of(new, budget - total(fed.values()))), **fed}
            held = total(arrays.values())
        return replace(
            self, arrays=arrays,
            fed=self.fed.union(fed) if all(map(is_, map(self.arrays.get, fed), fed.values())) else frozenset(fed),
            stale=stale - (values.keys() | fed.keys()), held=held, has_run=True, lost="" if fed else self.lost,
        )  # fmt: skip


@dataclass(slots=True)
class Marks:
    """Touched values and nodes of commits and pins, before stale values are computed from them.

    Attributes:
        edited: nodes of the main graph; -1 for all.
        changed: values with another initializer or maker.
        pinned: values that were pinned or unpinned.
    """

    edited: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    pinned: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.edited or self.changed or self.pinned)


class ValueStore:
    """The values of one ModelGraph.

    Args:
        graph: the model.
        budget: bytes that may be kept; default 40 % of the memory available at the time.

    Attributes:
        dependents: what depends on which value.
    """

    def __init__(self, graph: ModelGraph, budget: int | None = None) -> None:
        self._graph = graph
        self._budget = budget
        self._lock = fork_safe(threading.RLock())
        self._state = StoreState()
        self._marks = Marks()  # of commits before the noted run: later ones merge it
        self._noted: LastRun | None = None
        self._recent: LastRun | None = None  # the run noted before it, while its program is the model's
        self._pins: dict[int, Any] = {}
        self.dependents = Dependents(graph)

    @property
    def budget(self) -> int:
        """Bytes that may be kept."""
        return int(SHARE_OF_MEMORY * available_memory()) if self._budget is None else self._budget

    @property
    def in_use(self) -> bool:
        """Whether values are kept that an edit could make stale."""
        return self._state.has_run or self._noted is not None

    @property
    def is_settled(self) -> bool:
        """Whether the last run has been merged into the state, so that `current` takes next to no time."""
        return self._noted is None

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, buffers shared by several values counted once."""
        return total(self.state.arrays.values())

    @property
    def state(self) -> StoreState:
        """The stored values and which of them are stale, without the latest commits; see `current`."""
        return self._state if self._noted is None else self.current()

    def get(self, value: int) -> Any:
        """The array that a value had when it was last run (stale or not), None where there is none."""
        return self.state.arrays.get(value)

    def fresh(self, value: int) -> bool:
        """Whether `get` gives what the model as it is now would make of the last inputs."""
        return self.current().fresh(value)

    def __iter__(self) -> Any:
        return iter(self.state.arrays)

    def __len__(self) -> int:
        return len(self.state.arrays)

    def __contains__(self, value: object) -> bool:
        return value in self.state.arrays

    # -- staleness --------------------------------------------------------------------------------------------------

    def follow(self, commit: GraphCommit) -> None:
        """Note what a commit touched; dependents are computed when a value is next asked for."""
        touched = commit.touched
        with self._lock:
            if not self.in_use:
                return
            self.dependents.follow(commit)
            marks = self._open_marks()
            if touched.opsets or touched.functions:
                marks.edited.add(-1)
            marks.edited.update(self._owner(node) for node in touched.nodes)
            for scope in map(self._graph.scopes.__getitem__, touched.scopes - {self._graph.main.id}):
                marks.edited.add(self._owner(scope.owner) if scope.owner else -1)
            marks.changed |= touched.values | touched.removed_values

    def _open_marks(self) -> Marks:
        """The marks to which a commit is added, after the run that was noted before it."""
        if self._noted is not None:
            self._work_out()
        self._recent = None
        return self._marks

    def _owner(self, node: int) -> int:
        """The node of the main graph that is a node or holds it; -1 (all) where that is in a function."""
        return self._graph.index.owner_in(self._graph.nodes[node], self._graph.main.id) or -1

    def current(self) -> StoreState:
        """The state after all commits so far, with the values stale that they made stale."""
        with self._graph.lock, self._lock:
            if self._marks or self._noted is not None:
                self._work_out()
            return self._state

    def _work_out(self) -> None:
        """Bring the state up to date: commits, then the run that was noted."""
        noted = self._noted
        state = self._after_edits(self._state, self._marks) if self._marks else self._state
        if noted is not None:
            state = self._after_run(state, noted)
        self._recent, self._noted, self._marks = noted, None, Marks()
        self._state = state

    def _after_run(self, state: StoreState, run: LastRun) -> StoreState:
        """The state after a run that kept its inputs and some values, without the values that other inputs made."""
        fed, values = run.inputs(), run.values()
        known = fed | values
        freeze(known.values())
        equal = {value for value, array in known.items() if value in state.arrays and same(state.arrays[value], array)}
        # random nodes make other values from the same inputs, too
        others = fed.keys() - equal | (values.keys() & state.arrays.keys() - equal)
        gone = self.dependents.of(others) if others and (state.arrays or state.stale) else frozenset()
        stale = state.stale | gone
        renewed = (run.computed() & stale) - known.keys() if stale else frozenset[int]()
        arrays = {value: array for value, array in state.arrays.items() if not (value in gone or value in renewed)}
        arrays.update(known)
        return replace(
            state, arrays=arrays, fed=state.fed.union(fed) if fed.keys() <= equal else frozenset(fed),
            stale=stale - (known.keys() | renewed), held=total(arrays.values()), has_run=True, exact=False,
            lost="" if fed else state.lost,
        )  # fmt: skip

    def _after_edits(self, state: StoreState, marks: Marks) -> StoreState:
        graph, arrays = self._graph, dict(state.arrays)
        nodes = graph.main.order() if -1 in marks.edited else [node for node in marks.edited if node in graph.nodes]
        edited = marks.pinned.union(value for node in nodes for value in graph.nodes[node].outputs if value)
        replaced = {value for value in marks.changed if self._is_replaced(value, state)}
        # an input of the last run stays: undo may bring it back
        for value in replaced.union(value for value in marks.changed - state.fed if value not in graph.values):
            arrays.pop(value, None)
        stale = state.stale.union(self.dependents.of(edited | replaced), edited)
        return replace(state, arrays=arrays, stale=stale)

    def _is_replaced(self, value: int, state: StoreState) -> bool:
        """Whether a touched value has content that no node of the graph makes: an initializer, or a new input."""
        record = self._graph.values.get(value)
        return (
            record is not None and record.producer is None
            and (value not in state.fed or record.initializer is not None)
        )  # fmt: skip

    def invalidate_all(self) -> None:
        """Mark every node as changed, because operators were registered or replaced."""
        with self._lock:
            if self.in_use:
                self._open_marks().edited.add(-1)

    # -- pins -------------------------------------------------------------------------------------------------------

    @property
    def pins(self) -> Mapping[int, Any]:
        """Arrays that replace these values in runs."""
        return self._pins

    def pin(self, value: int, array: Any) -> None:
        """Use `array` for a value in every run that does not feed it, until `unpin`."""
        with self._lock:
            self._pins = {**self._pins, value: array}
            self._note_pin(value)

    def unpin(self, value: int) -> None:
        """Let the graph make a value again."""
        with self._lock:
            self._pins = {other: array for other, array in self._pins.items() if other != value}
            self._note_pin(value)

    def _note_pin(self, value: int) -> None:
        """Mark the value as edited, since a pin was set or removed: its dependents are no longer fresh."""
        if self.in_use:
            self._open_marks().pinned.add(value)

    # -- runs -------------------------------------------------------------------------------------------------------

    def note(self, run: LastRun) -> None:
        """Note a run that ended, unless the model changed since it began; its values are merged when asked for."""
        with self._lock:
            if run.version != self._graph.version:
                return
            self._noted, self._recent = run, None

    def last_run(self) -> LastRun | None:
        """The run that was noted last, where nothing has been edited, pinned or run with all values kept since."""
        with self._graph.lock, self._lock:
            run = self._recent if self._noted is None else self._noted
            if run is None or run.version != self._graph.version:
                return None
            fed = {} if run is self._noted else run.inputs()
            return run if all(map(is_, map(self._state.arrays.get, fed), fed.values())) else None

    def let_go(self) -> None:
        """Drop values of runs with other inputs than the last run's, so that there is room for all values of that."""
        with self._graph.lock, self._lock:
            if self._noted is None:
                return
            fed, arrays = self._noted.inputs(), self._state.arrays
            if any(value in arrays and not same(arrays[value], array) for value, array in fed.items()):
                left = {value: array for value, array in arrays.items() if value in fed}
                self._state = replace(self._state, arrays=left, held=total(left.values()))

    def keep(self, run: LastRun, values: Mapping[str, Any], held: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Keep values that were computed from those of the last run: the last of them where the budget is small.

        Args:
            held: more values, which are read-only and which a program holds in any case.
        """
        known, ids = run.known, run.ids
        chosen = {name: array for name, array in values.items() if name not in known and name in ids}
        room, nbytes = self.budget - run.held, at_most(chosen.values())
        if nbytes > room and (nbytes := total(chosen.values())) > room:
            chosen = dict(_last_of(chosen, room))
        run.held += min(nbytes, room)
        with self._graph.lock, self._lock:
            if self.last_run() is not run:
                return
            run.known = {**held, **known, **chosen}
            if run is self._recent:
                self._add({ids[name]: array for name, array in (*held.items(), *chosen.items()) if name in ids})

    def _add(self, values: Mapping[int, Any]) -> None:
        """Add values of the last run to the state."""
        freeze(values.values())
        state = self._state
        held = state.held + at_most(values.values())
        if held <= self.budget:
            arrays = {**values, **state.arrays}
            self._state = replace(state, arrays=arrays, held=held, exact=False)

    def merge(self, version: int, began: StoreState, new: StoreState, is_drawn: bool = False) -> bool:
        """Take over the values of a run, unless the model or the state changed since it began; tells whether it did.

        Args:
            version: of the graph when the run began.
            is_drawn: whether the run drew other random numbers than the last one, whose values then no longer hold.
        """
        if not began.arrays:
            about_to_hold(new.held)
        with self._graph.lock, self._lock:
            is_same = self._noted is None and not self._marks and self._state is began
            if is_same and version == self._graph.version:
                self._state, self._recent = new, None if is_drawn else self._recent
            return self._state is new

    def clear(self) -> None:
        """Forget every value, after a run whose inputs are too large to be kept."""
        with self._lock:
            self._noted = self._recent = None
            self._state = StoreState(lost="the inputs of the last run took too much memory to be kept")
            self._marks = Marks()


def _last_of(values: Mapping[K, Any], room: int) -> Iterator[tuple[K, Any]]:
    """The values that fit into `room` bytes, beginning with the last."""
    for name in reversed([*values]):
        room -= at_most((values[name],))
        if room < 0:
            return
        yield name, values[name]
