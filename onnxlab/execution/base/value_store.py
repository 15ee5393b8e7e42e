"""Values that stay: the arrays of the last run, and which of them an edit or other inputs made stale.

Every value has a stamp that changes when its content does. Beside each value made by a node stand the stamps of what
the node read, so that a node whose inputs came out equal is not run again. Nothing here is changed in place: a run
works on the state it began with and merges what it made, unless the model or the state moved on meanwhile.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxlab.execution.base.dependents import Dependents
from onnxlab.forking import fork_safe
from onnxlab.garbage_collection import about_to_hold
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import available_memory
from onnxlab.ops.onnx.control.sequence import root

SHARE_OF_MEMORY = 0.4
"""Part of the available memory that kept values may take when nothing else is said."""

new_stamp = itertools.count(1).__next__
"""A number that no value's content had yet."""


@dataclass(frozen=True, slots=True)
class State:
    """The stored values, by id. Immutable: a run may read it while another merges.

    Attributes:
        arrays: read-only arrays, lists and dicts; an evicted value has none, but still its stamp.
        stamps: content of each value, initializers that changed included.
        sources: of a value made by a node: stamps of what the node read, as a tuple, or of its only input.
        seconds: time that making each value took.
        dirty: values whose node was changed itself.
        stale: values that depend on something dirty or changed; `dirty` is part of it.
        generation: counts changes of state.
        held: no less than the bytes of `arrays`; counting them takes longer than many an edit.
        fingerprints: first element of what nodes made, with which the stamp came: to look into an array that was made
            in the last run takes longer, since it is no longer in the cache.
    """

    arrays: Mapping[int, Any] = field(default_factory=dict)
    stamps: Mapping[int, int] = field(default_factory=dict)
    sources: Mapping[int, Any] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)
    dirty: frozenset[int] = frozenset()
    stale: frozenset[int] = frozenset()
    generation: int = 0
    held: int = 0
    fingerprints: Mapping[int, Any] = field(default_factory=dict)

    def fresh(self, value: int) -> bool:
        """Whether the value's array is there and up to date."""
        return value in self.arrays and value not in self.stale


class ValueStore:
    """The values of one ModelGraph.

    Args:
        graph: the model.
        budget: bytes that may be kept; default 40 % of the memory available at the time.

    Attributes:
        state: the stored values and what is stale of them, but for the latest commits; see `settled`.
        dependents: what depends on which value.
    """

    def __init__(self, graph: ModelGraph, budget: int | None = None) -> None:
        self._graph = graph
        self._budget = budget
        self._lock = fork_safe(threading.RLock())
        self.state = State()
        self._seen = 0  # the model's version when nothing was kept: an edit then changes no values
        self._edited: set[int] = set()  # nodes of the main graph; -1 for "all"
        self._changed: set[int] = set()  # values with another initializer or maker
        self._pins: dict[int, Any] = {}
        self._pinned: set[int] = set()  # values that were pinned, or let go, since
        self.dependents = Dependents(graph)

    @property
    def budget(self) -> int:
        """Bytes that may be kept."""
        return int(SHARE_OF_MEMORY * available_memory()) if self._budget is None else self._budget

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, buffers shared by several values counted once."""
        return sum(buffers(self.state.arrays.values()).values())

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
        """Note what a commit touched; dependents are worked out at the next question."""
        touched = commit.touched
        with self._lock:
            if not self.state.stamps:  # nothing is kept that could be stale
                return
            self.dependents.follow(commit)
            if touched.opsets or touched.functions:
                self._edited.add(-1)
            for node in touched.nodes:
                record = self._graph.nodes[node]
                self._edited.add(self._graph.index.owner_in(record, self._graph.main.id) or -1)
            for scope in touched.scopes:
                self._edited.update(self._owner(scope))
            self._changed |= touched.values | touched.removed_values

    def _owner(self, scope: int) -> list[int]:
        """The node of the main graph that holds a scope; -1 (all) for a function; none for the main graph."""
        record = self._graph.scopes[scope]
        if not record.owner:
            return [] if record.id == self._graph.main.id else [-1]
        return [self._graph.index.owner_in(self._graph.nodes[record.owner], self._graph.main.id) or -1]

    def current(self) -> State:
        """The state with everything stale that the commits so far made so."""
        with self._graph.lock, self._lock:
            if not self.state.stamps and self._seen != self._graph.version:
                self._seen = self._graph.version
                self.state = replace(self.state, generation=self.state.generation + 1)
            if self._edited or self._changed or self._pinned:
                self.state = self._after_edits(self.state)
                self._forget_commits()
            return self.state

    def _forget_commits(self) -> None:
        self._edited.clear()
        self._changed.clear()
        self._pinned.clear()

    def _after_edits(self, state: State) -> State:
        graph = self._graph
        stamps, arrays = dict(state.stamps), dict(state.arrays)
        nodes = graph.main.order() if -1 in self._edited else [node for node in self._edited if node in graph.nodes]
        dirty = {value for node in nodes for value in graph.nodes[node].outputs if value}
        dirty |= self._pinned
        for value in dirty:
            if value not in state.sources:  # a Constant node's, a pin: its stamp is all that readers can compare
                stamps[value] = new_stamp()
        replaced = {value for value in self._changed if self._is_replaced(value, state)}
        for value in replaced:
            stamps[value] = new_stamp()
            arrays.pop(value, None)
        for value in self._changed:
            if value not in graph.values:
                arrays.pop(value, None)
        stale = self.dependents.of(dirty | replaced)
        if dirty:
            stale |= dirty
        return State(
            arrays,
            stamps,
            state.sources,
            state.seconds,
            state.dirty | dirty,
            state.stale | stale if state.stale else stale,
            state.generation + 1,
            state.held,
            state.fingerprints,
        )

    def _is_replaced(self, value: int, state: State) -> bool:
        """Whether a touched value has content that no node of the graph tells: an initializer, or a new input."""
        record = self._graph.values.get(value)
        if record is None or record.producer is not None:
            return False
        return record.initializer is not None or value in state.sources

    def invalidate_all(self) -> None:
        """Take every node for changed: what operators do is no longer what it was."""
        with self._lock:
            if self.state.stamps:
                self._edited.add(-1)

    # -- pins -------------------------------------------------------------------------------------------------------

    @property
    def pins(self) -> Mapping[int, Any]:
        """Arrays that stand in for what the graph would make of these values."""
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
        """A pin that comes or goes is an edit of the value: what depends on it is no longer fresh."""
        if self.state.stamps:
            self._pinned.add(value)

    # -- runs -------------------------------------------------------------------------------------------------------

    def merge(self, began: State, new: State) -> bool:
        """Take over what a run made, unless the model or the state moved on since it began; tells whether it did."""
        if not began.arrays:
            about_to_hold(new.held)
        with self._graph.lock, self._lock:
            if self._edited or self._changed or self._pinned or self.state.generation != began.generation:
                return False
            if not self.state.stamps and self._seen != self._graph.version:  # a run that began before an edit
                return False
            self.state = new
            return True

    def clear(self) -> None:
        """Forget every value."""
        with self._lock:
            self.state = State(generation=self.state.generation + 1)
            self._forget_commits()


_GLANCE = (0, 1, 3)
_FEW = 512  # elements that are looked at before all


def buffers(values: Iterable[Any]) -> dict[int, int]:
    """{id: bytes} of the memory behind values, each buffer once."""
    sizes: dict[int, int] = {}
    for value in values:
        if isinstance(value, np.ndarray):
            value = root(value)
            sizes[id(value)] = value.nbytes
        elif isinstance(value, (list, dict)):
            sizes.update(buffers(value if isinstance(value, list) else value.values()))
    return sizes


def differs(old: Any, new: Any) -> bool:
    """Whether two arrays show at a glance that they are not the same: most differ everywhere, so at the start."""
    if type(old) is not np.ndarray or type(new) is not np.ndarray or old.size < 256 or new.size < 256:
        return False
    for place in _GLANCE:
        a, b = old.item(place), new.item(place)
        if a != b and (a == a or b == b):  # there are two zeros and many NaN
            return True
    return False


def same(old: Any, new: Any) -> bool:
    """Whether two values are equal bit by bit (NaN to NaN); sequences item by item."""
    if old is new:
        return True
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if old.dtype != new.dtype or old.shape != new.shape:
            return False
        if old.dtype.char == "O":
            return bool((old == new).all())
        return _bits_equal(old, new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old == new
    return old is None and new is None


def _bits_equal(old: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> bool:
    """Compares integers of the elements' size: a NaN equals itself, and there is no float comparison to slow it."""
    if differs(old, new) or (old.ndim and differs(old[len(old) // 2 :], new[len(new) // 2 :])):
        return False
    if old.itemsize in (1, 2, 4, 8):
        words = np.dtype(f"u{old.itemsize}")
        a, b = old.view(words), new.view(words)
        if old.size > _FEW and (a.flat[:_FEW] != b.flat[:_FEW]).any():
            return False
    else:
        a, b = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (old, new))
    return bool((a == b).all())
