"""Constants in the layouts of kernels, shared by the regions of a provider: an edit repacks only what it changed."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from onnxlab.execution.compiled.views import Array, View

Key = tuple[object, ...]
_RECENT = 32
"""Regions whose constants are kept when nobody else needs them: those of the program before an edit."""


class Packed:
    """What one region has packed; asks the other regions before it packs anew.

    Attributes:
        shares: whether other regions had packed something before this one: mostly what this one needs.
    """

    def __init__(self, shared: SharedConstants) -> None:
        self._shared = shared
        self.shares = bool(shared.views)
        self._own: dict[Key, View] = {}
        self._sources: dict[int, Array] = {}

    def key_of(self, array: Array, lasting: bool) -> Key:
        """What tells this array from others: itself, if it lasts as initializers do, else its content."""
        if lasting:
            self._sources[id(array)] = array  # so that nothing else gets its id
            return "array", id(array)
        return "content", array.shape, hashlib.blake2b(array.tobytes(), digest_size=16).digest()

    def get(self, key: Key) -> View | None:
        found = self._own.get(key)
        if found is None:
            found = self._shared.views.get(key)
            if found is not None:
                self._own[key] = found
        return found

    def put(self, key: Key, view: View) -> View:
        self._own[key] = self._shared.views[key] = view
        return view


class Late:
    """An array that is made when somebody needs its elements: what is packed already needs them no more."""

    def __init__(self, make: Callable[[], Array], shape: tuple[int, ...] = ()) -> None:
        self._make = make
        self._made: Array | None = None
        self.shape = shape

    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, index: Any) -> Late:
        return Late(lambda: np.asarray(self)[index])


class SharedConstants:
    """What the regions of a provider have packed, for as long as one of them is in use or recent."""

    def __init__(self) -> None:
        self.views: WeakValueDictionary[Key, View] = WeakValueDictionary()
        self._recent: deque[Packed] = deque(maxlen=_RECENT)

    def region(self) -> Packed:
        """For a new region."""
        made = Packed(self)
        self._recent.append(made)
        return made
