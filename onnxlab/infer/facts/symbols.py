"""Symbols for what inference cannot know: stable identities, readable names.

An unknown dim is identified by the graph, the call (of a model-local function) that it is in, the node, the output
slot and the axis; an unknown element of a small integer tensor likewise. The same place gives the same symbol
every time, so that facts are equal after undo and from scratch. Names are for display: the value's name, then the
axis after a dot ("indices.0") or the element in brackets ("sizes[1]").
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, cast
from weakref import WeakKeyDictionary

from onnxlab import dtypes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos.value_info import display_name, unnamed_dim
from onnxlab.infer.facts.policy import Policy
from onnxlab.shapes import UNKNOWN, Dim, Expr, Fact, KnownValue, TensorFact, map_dims, replace_symbols, symbol
from onnxlab.shapes.expressions import Atom, symbol_atoms

MAX_NAMED = 8
"""Integer tensors up to this many elements get a symbol for each element that is not known."""

NAMED_TYPES = (dtypes.INT64, dtypes.INT32)

_tokens: WeakKeyDictionary[ModelGraph, int] = WeakKeyDictionary()
_numbers = itertools.count(1)


def token_of(graph: ModelGraph) -> int:
    """A number that tells one graph's unknown dims from another's in the same process."""
    token = _tokens.get(graph)
    return token if token is not None else _tokens.setdefault(graph, next(_numbers))


def declared_token(graph: ModelGraph, policy: Policy) -> int:
    """The token of dims that a model declares without a size.

    The token is 0 under the policy `as_onnx`: facts end as text there and never meet those of another graph, and equal
    symbols for equal inputs let the outcomes of earlier inferences be reused (`operator_cache.py`).
    """
    return 0 if policy.as_onnx else token_of(graph)


def unknown_dim(
    token: int,
    call: Hashable,
    place: int,
    slot: Hashable,
    axis: Hashable,
    name: str,
    minimum: int | None = 0,
) -> Dim:
    """The symbol of an unknown dim; `place` is the id of the node, or of the value where no node makes it."""
    key = ("unknown", token, call, place, slot, axis)
    while isinstance(axis, tuple):  # inside a function, a tuple: (node, slot, axis or ("element", index))
        axis = axis[-1]
    return symbol(unnamed_dim(name, axis), key=key, minimum=minimum)


def settle(fact: Fact, token: int, call: Hashable, place: int, slot: int, names: Sequence[str]) -> Fact:
    """The fact with its holes replaced by symbols of this place, and its unknown small integers named.

    Args:
        names: names of all outputs of the node: a hole of one slot may stand in the fact of another.
    """
    filled = _filled(fact, token, call, place, names, inside=False)
    if isinstance(filled, TensorFact) and wants_names(filled):
        return named_elements(filled, token, call, place, slot, names[slot])
    return filled


def settle_inside(fact: Fact, token: int, call: Hashable, place: int, names: Sequence[str]) -> Fact:
    """The fact of a value that goes into a body: its holes become symbols other than those of the node's outputs."""
    return _filled(fact, token, call, place, names, inside=True)


def _filled(fact: Fact, token: int, call: Hashable, place: int, names: Sequence[str], inside: bool) -> Fact:
    def fill(atom: Atom) -> Dim | None:
        key = atom.key
        if type(key) is tuple and key[0] == "hole":
            _, origin, axis, minimum = key
            name = names[origin] if origin < len(names) else names[0] if names else "?"
            slot = ("body", origin) if inside else origin
            return unknown_dim(token, call, place, slot, axis, name, minimum)
        return None

    return map_dims(fact, lambda dim: replace_symbols(dim, fill) if isinstance(dim, Expr) and dim.open else dim)


def wants_names(fact: TensorFact) -> bool:
    """Whether elements of a small integer tensor are neither known nor named."""
    if fact.elem_type not in NAMED_TYPES:
        return False
    if fact.known is not None:
        return None in fact.known.items
    shape = fact.shape
    if shape is None or len(shape) > 1 or not all(isinstance(dim, int) for dim in shape):
        return False
    return 0 < prod(cast("tuple[int, ...]", shape)) <= MAX_NAMED


def named_elements(fact: TensorFact, token: int, call: Hashable, place: int, slot: Hashable, name: str) -> TensorFact:
    """The fact with a symbol for each element that is not known."""
    shape = cast("tuple[int, ...]", fact.shape)
    items: list[Any] = list(fact.known.items) if fact.known is not None else [None] * prod(shape)
    shown = display_name(name)
    for index, item in enumerate(items):
        if item is None:
            label = f"{shown}[{index}]" if shape else shown
            key = ("unknown", token, call, place, slot, ("element", index))
            items[index] = symbol(label, key=key, minimum=None)
    return TensorFact(fact.elem_type, shape, KnownValue("i", shape, tuple(items)))


def has_holes(fact: Fact) -> bool:
    """Whether `settle` would change the fact."""
    if type(fact) is not TensorFact:
        return fact is not UNKNOWN and _container_has_holes(fact)
    for dim in fact.shape or ():
        if type(dim) is Expr and dim.open:
            return True
    known = fact.known
    if known is not None:
        if known.complete:
            return False
        named = fact.elem_type in NAMED_TYPES
        return any(item.open if type(item) is Expr else named and item is None for item in known.items)
    return fact.elem_type in NAMED_TYPES and wants_names(fact)


def _container_has_holes(fact: Fact) -> bool:
    any_open = False

    def look(dim: Dim) -> Dim:
        nonlocal any_open
        any_open = any_open or (isinstance(dim, Expr) and dim.open)
        return dim

    map_dims(fact, look)
    return any_open


def is_open(dim: Dim) -> bool:
    """Whether a dim depends on a size that nothing is known of, so that its name means nothing elsewhere."""
    return isinstance(dim, Expr) and any(
        isinstance(atom.key, tuple) and atom.key[0] in ("unknown", "hole") for atom in symbol_atoms(dim)
    )


def is_symbolic(fact: Fact) -> bool:
    """Whether any dim is an expression."""
    return fact.shape is not None and any(isinstance(dim, Expr) for dim in fact.shape)
