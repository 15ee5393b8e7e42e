"""Constants in the layouts of kernels, shared by the regions of a provider: an edit repacks only what it changed."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, proxy, ref

import numpy as np

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.numba.plan.checkpoints import Checkpoints
from onnxlab.execution.numba.plan.plan import Plan
from onnxlab.execution.numba.plan.views import Array, View, constant_view
from onnxlab.graph.edit.snapshot import NodeView

Key = tuple[object, ...]
_RECENT = 32  # regions whose constants are kept when no other region needs them: those of the program before an edit
_BOUND = 16  # plans whose weights may be exchanged, per provider
_PLANS = 16  # plans whose records of lowering are kept: one for inputs of certain names and shapes


class Packed:
    """The packed constants of one region; constants that other regions have packed are reused.

    Attributes:
        shared: the constants that the provider's regions share.
        shares: whether other regions had packed constants before, which are mostly those that this one needs.
    """

    def __init__(self, shared: SharedConstants) -> None:
        self.shared: SharedConstants = proxy(shared)  # which refers to the newest Packed
        self.shares = bool(shared.views)
        self._own: dict[Key, View] = {}
        self._sources: dict[int, Array] = {}
        self._noted: tuple[dict[Key, View], dict[int, Array]] = {}, {}

    def note(self, views: dict[Key, View], sources: dict[int, Array]) -> None:
        """Take over the packed constants of a step's record, and note further ones of the step in it."""
        self._own.update(views)
        self._sources.update(sources)
        self._noted = views, sources

    def key_of(self, array: Array, persistent: bool) -> Key:
        """The key of an array: its identity, if it lasts as initializers do, else its content."""
        if persistent:
            self._sources[id(array)] = self._noted[1][id(array)] = array  # held, so that no other array gets its id
            return "array", id(array)
        return "content", array.shape, hashlib.blake2b(array.tobytes(), digest_size=16).digest()

    def get(self, key: Key) -> View | None:
        """The packed weights of a key, None where they were not packed yet."""
        view = self._own.get(key) or self.shared.views.get(key)
        if view is not None:
            self._own[key] = self._noted[0][key] = view
        return view

    def put(self, key: Key, view: View, recipe: Late | None = None) -> View:
        """Remember a view; and the `recipe` by which it can be made again of other constants, if there is one."""
        self._own[key] = self._noted[0][key] = self.shared.views[key] = view
        if recipe is not None and recipe.sources:
            self.shared.ways[view] = recipe.turned({})
        return view

    def made(self, key: Key, recipe: Array | Late) -> View:
        """The packed weights of a key; they are made, where they were not packed yet."""
        recipe = late(recipe)
        return self.get(key) or self.put(key, constant_view(np.asarray(recipe)), recipe)

    def remember(
        self, key: object, plan: Plan, nodes: tuple[NodeView, ...], constants: Mapping[str, Array],
        looked: frozenset[str],
    ) -> None:  # fmt: skip
        """Remember a plan that depends on `key`, nodes and constants alone; it replaces the plan before an edit.

        Args:
            key: has the ids of nodes, so that plans of earlier versions of these nodes are dropped.
            looked: names of constants whose elements may be part of the plan.
        """
        self.shared.bound.keep(key, (plan.exchanged(()), nodes, constants, looked, self, ref(plan)))

    def plan(self, key: object, nodes: tuple[NodeView, ...], constants: Mapping[str, Array]) -> Plan | None:
        """The remembered plan for `key` and these nodes, with these constants; None where no plan can be reused.

        An edit of what is only packed packs it anew and lowers nothing: the addresses of changed constants are
        exchanged where their elements were only read to pack them.
        """
        plan, its_nodes, before, looked, packed, used = self.shared.bound.get(
            key, (None, (), {}, frozenset(), self, lambda: None)
        )
        if plan is None or its_nodes != nodes or before.keys() != constants.keys():
            return None
        old = {name: array for name, array in before.items() if array is not constants[name]}
        pairs = [(array, constants[name]) for name, array in old.items()]
        if not looked.isdisjoint(old) or any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in pairs):
            return None
        views = self._renewed(packed, constants, old)
        renewed: Plan = plan.exchanged((then.buffer.array, now.buffer.array) for then, now in views)
        renewed.before = used()
        self.remember(key, renewed, nodes, constants, looked)
        return renewed

    def _renewed(
        self, before: Packed, arrays: Mapping[str, Array], old: Mapping[str, Array]
    ) -> list[tuple[View, View]]:
        """Take over the packed constants of another region, of which some constants have changed.

        Args:
            arrays: the constants, by name.
            old: {name: earlier array} of the changed constants, whose elements were read only to pack them.

        Returns:
            [(earlier view, new view)] of the constants that were packed again.
        """
        again: dict[Any, Any] = {id(array): id(arrays[name]) for name, array in old.items()}
        sources = before._sources | {id(array): arrays[name] for name, array in old.items()}
        self._sources.update({again.get(ident, ident): array for ident, array in sources.items()})
        self.shared.forget(before)
        pairs, changed = [], again.keys()
        self._own.update(before._own)
        for key in [key for key in before._own if not changed.isdisjoint(key)]:  # keys hold ids
            view, way = before._own[key], self.shared.ways.get(before._own[key])
            if way is not None and not way.sources.isdisjoint(again):
                del self._own[key]
                turned = tuple(again.get(part, part) if key[at - 1] == "array" else part for at, part in enumerate(key))
                renewed = self.get(turned) or self.put(turned, constant_view(way.of(sources)), way.turned(again))
                pairs.append((view, renewed))
        return pairs


class Late:
    """An array that is made only when its elements are needed: not where the packed constants exist already.

    Args:
        make: makes the array from those of `parts`.
        name: name of the constant, where the array is one itself.

    Attributes:
        sources: ids of the constants that the array is made from.
    """

    def __init__(
        self, make: Callable[..., Array], shape: tuple[int, ...] = (), parts: Sequence[Late] = (), name: str = "",
        source: int = 0,
    ) -> None:  # fmt: skip
        self._make = make
        self._made: Array | None = None
        self._parts = parts
        self._name = name
        self.shape = shape
        self._source = source or (id(make()) if name else 0)
        self.sources: frozenset[int] = frozenset((self._source,) if name else ()).union(*(p.sources for p in parts))

    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        if self._made is None:
            self._made = self._make(*map(np.asarray, self._parts))
        return self._made

    def then(self, make: Callable[[Array], Array], shape: tuple[int, ...] = ()) -> Late:
        """Derive a late array from this one; it is made once."""
        return Late(make, shape, (self,))

    def of(self, arrays: Mapping[int, Array]) -> Array:
        """The same derivation from other constants, given by the ids of the sources."""
        return arrays[self._source] if self._name else self._make(*(part.of(arrays) for part in self._parts))

    def turned(self, again: Mapping[int, int]) -> Late:
        """The derivation with the ids of other sources, without any array."""
        parts = [part.turned(again) for part in self._parts]
        make, source = _lost if self._name else self._make, again.get(self._source, self._source)
        return Late(make, self.shape, parts, self._name, source)


def _lost() -> Array:
    raise LookupError("only how it is made was kept")


def late(array: Array | Late) -> Late:
    """An array as a `Late` without the name of a constant."""
    return array if isinstance(array, Late) else Late(lambda: array, array.shape)


class SharedConstants:
    """The packed constants of a provider's regions, for as long as one of them is in use or recent."""

    def __init__(self) -> None:
        self.views: WeakValueDictionary[Key, View] = WeakValueDictionary()
        self.ways: WeakKeyDictionary[View, Late] = WeakKeyDictionary()
        self.bound: Lru[Any, Any] = Lru("plans whose weights may be exchanged", _BOUND)
        self.records: Lru[Any, Mapping[object, Any]] = Lru("records of lowering", _PLANS)
        self.pasts = Checkpoints()
        self._recent: deque[Packed] = deque(maxlen=_RECENT)

    def region(self) -> Packed:
        """For a new region."""
        packed = Packed(self)
        self._recent.append(packed)
        return packed

    def forget(self, packed: Packed) -> None:
        """Drop what a region has packed, since another region holds all of it that is still of use."""
        if packed in self._recent:
            self._recent.remove(packed)
