"""Arrays made up from facts, for running a part of a model without its inputs.

The same seed gives the same arrays. Symbolic dims get small sizes, the same wherever a symbol occurs; integers that
are used as indices stay in range, and those used as shapes, axes or sizes get values that mostly work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import LimitError
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.limits import Limits
from onnxlab.ops import find_traits
from onnxlab.ops.base.traits import SizeRole
from onnxlab.shapes import (
    Dim,
    Expr,
    Fact,
    MapFact,
    OptionalFact,
    SequenceFact,
    evaluate,
    text,
)

_CHUNK = 1 << 20
"""Numbers that are drawn at once."""

Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]

_WORDS: Final = ("monday", "onnx graph", "cat dog", "tuesday", "a", "b")
_IMAGE: Final = 64  # pixels of a free spatial axis: five halvings leave two
_BATCH: Final = 2
_LENGTH: Final = 8
_DRAWN: Final = 8  # bytes of an element while it is drawn
_PAST: Final = 4  # past tokens in a cache; a mask over `total` covers past and new tokens


def make_up(
    nodes: Sequence[NodeView],
    fact: Callable[[str], Fact],
    names: Sequence[str],
    arrays: dict[str, Any],
    seed: int,
    chosen: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> None:
    """Add made-up arrays for `names`, of sizes that agree with the arrays that are given.

    Args:
        nodes: of the scope; they say what the values are used for.
        fact: what is known of a name.
        chosen: sizes of symbols that no given array determines.
        limits: memory that the arrays may take; default: 80 % of the free memory.

    Raises:
        LimitError: the arrays would take more.
    """
    if not names:
        return
    limits = Limits.usual() if limits is None else limits
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        observe(fact(name), array, sizes)
    sizes = {**(chosen or {}), **sizes}
    uses, rng = Uses(nodes, fact), np.random.default_rng(seed)
    for name in names:
        arrays[name] = synthesize(fact(name), rng, sizes, uses.draw(name), limits, name)


def synthesize(
    fact: Fact, rng: np.random.Generator, sizes: dict[str, int], draw: Draw | None = None,
    limits: Limits | None = None, name: str = "",
) -> Any:  # fmt: skip
    """Make up a value of which `fact` is true.

    Args:
        rng: where randomness comes from.
        sizes: {symbol: size}; new symbols are added.
        draw: what to fill a tensor with; default: normal floats, integers in [0, 10), random booleans, words.
        limits: asked before an array is made; default: 80 % of the free memory.
        name: of the value, for the message.

    Raises:
        LimitError: an array takes more memory than there is.
    """
    within = (limits, name)
    if isinstance(fact, SequenceFact):
        count = 1 if isinstance(fact.elem, (SequenceFact, OptionalFact)) else 2  # nested: only the innermost has two
        return [synthesize(fact.elem, rng, sizes, draw, *within) for _ in range(count)]
    if isinstance(fact, OptionalFact):
        return synthesize(fact.elem, rng, sizes, draw, *within)
    if isinstance(fact, MapFact):
        keys: Iterable[Any] = _WORDS[:3] if fact.key_type == dtypes.STRING else range(3)
        return {key: synthesize(fact.elem, rng, sizes, None, *within) for key in keys}
    if fact.value is not None:
        return fact.value
    shape = tuple(_size(dim, axis, fact.rank or 0, sizes) for axis, dim in enumerate(fact.shape or ()))
    dtype = fact.dtype or np.dtype(np.float32)
    if 0 in shape and prod(filter(None, shape)) * max(8, dtype.itemsize) > sys.maxsize:
        raise LimitError(f"a made-up array for {name!r} has no elements, but no array has the shape {list(shape)}")
    limits = limits or Limits.usual()
    limits.reserve(prod(shape) * dtype.itemsize, f"a made-up array for {name!r}")
    at_once = prod(shape) if dtype.hasobject else min(prod(shape), _CHUNK)
    limits.reserve(drawn := at_once * _DRAWN, f"making up an array for {name!r}")
    try:
        return (draw or ordinary)(rng, shape, dtype)
    except MemoryError as error:  # a process may have less memory than the machine
        raise LimitError(f"there is no memory for a made-up array for {name!r}: {error}") from error
    finally:
        limits.release(drawn)


def _size(dim: Dim, axis: int, rank: int, sizes: dict[str, int]) -> int:
    """A size for a dim; symbols that are new get one by where they stand."""
    if not isinstance(dim, Expr):
        return dim
    default = _BATCH if axis == 0 else _IMAGE if rank == 4 and axis > 1 else _LENGTH
    for name in sorted(dim.symbols):
        if name not in sizes:
            sizes[name] = _conventional(name, sizes) or default
    size = evaluate(dim, sizes)
    return max(size, 0) if size is not None else default


def free_sizes(facts: Iterable[Fact], chosen: Mapping[str, int], batch: int = _BATCH) -> dict[str, int]:
    """Sizes for the symbols of inputs: those chosen, else the sizes that made-up inputs have.

    Args:
        facts: of the inputs, in their order.
        chosen: sizes by symbol.
        batch: size of a symbol that first occurs as axis 0.
    """
    sizes = dict(chosen)
    for fact in facts:
        for axis, dim in enumerate(fact.shape or ()):
            if isinstance(dim, Expr) and axis == 0 and fact.rank != 1:
                for name in dim.symbols:
                    sizes.setdefault(name, _conventional(name, sizes) or batch)
            _size(dim, axis, fact.rank or 0, sizes)
    return sizes


def _conventional(name: str, sizes: Mapping[str, int]) -> int:
    """Sizes by the conventions of exported language models, "past" and "total" (past and new tokens); 0 for others."""
    name = name.lower()
    if "total" in name:
        known = [(word, size) for symbol, size in sizes.items() for word in ("past", "seq") if word in symbol.lower()]
        return {"past": _PAST, "seq": _LENGTH, **dict(known)}["past"] + {"seq": _LENGTH, **dict(known)}["seq"]
    return _PAST if "past" in name else 0


def observe(fact: Fact, value: Any, sizes: dict[str, int]) -> None:
    """Learn the sizes of symbols from a value that is given."""
    if isinstance(value, np.ndarray) and fact.shape is not None and len(fact.shape) == value.ndim:
        for dim, size in zip(fact.shape, value.shape, strict=True):
            if isinstance(dim, Expr) and len(names := dim.symbols) == 1 and text(dim) in names:
                sizes.setdefault(text(dim), size)


def ordinary(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Normal floats, integers in [0, 10) (less for 2 to 4 bits), random booleans, words."""
    elem_type = dtypes.from_numpy(dtype)
    if elem_type == dtypes.STRING:
        return np.asarray(rng.choice(_WORDS, shape)).astype(object)
    if dtype.kind == "b" or dtypes.is_integer(elem_type):
        return below(2 if dtype.kind == "b" else min(10, 1 << max(1, dtypes.bits(elem_type) - 1)))(rng, shape, dtype)
    return _filled(shape, dtype, rng.standard_normal)


def _filled(
    shape: tuple[int, ...], dtype: np.dtype[Any], numbers: Callable[[int], np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """An array of so many numbers in a row, drawn in chunks: each takes 8 bytes where an element may take one."""
    result: np.ndarray[Any, Any] = np.empty(shape, dtype)
    flat = result.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        chunk[:] = numbers(chunk.size).astype(dtype)
    return result


def below(bound: int) -> Draw:
    """Integers in [0, bound)."""
    return lambda rng, shape, dtype: _filled(shape, dtype, lambda count: rng.integers(0, max(1, bound), count))


def free_shape(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """[-1, 1, 1, …]: a shape that any tensor can be given."""
    array = np.ones(shape, dtype)
    array.reshape(-1)[:1] = -1 if dtype.kind == "i" else 1
    return array


_ROLES: Final[Mapping[SizeRole, Draw]] = {
    "one": lambda rng, shape, dtype: np.ones(shape, dtype),
    "zero": lambda rng, shape, dtype: np.zeros(shape, dtype),
    "few": below(8),
    "shape": free_shape,
}


class Uses:
    """The uses of a scope's values.

    Args:
        nodes: of the scope.
        fact: what is known of a name.
    """

    def __init__(self, nodes: Sequence[NodeView], fact: Callable[[str], Fact]) -> None:
        self._fact = fact
        self._readers: dict[str, list[tuple[NodeView, int]]] = {}
        for node in nodes:
            for slot, name in enumerate(node.inputs):
                if name:
                    self._readers.setdefault(name, []).append((node, slot))

    def draw(self, name: str) -> Draw | None:
        """A way to fill a value, by its name and its uses; None for nothing special."""
        dtype = self._fact(name).dtype
        if "mask" in name.lower() and (dtype is None or dtype.kind in "iubf"):
            return _ROLES["one"]
        if dtype is None or dtype.kind not in "iu":
            return None
        roles = [*self._roles(name)]
        bounds = [bound for role, bound in roles if role is None]
        return next((role for role, _ in roles if role is not None), below(min(bounds)) if bounds else None)

    def _roles(self, name: str) -> Iterable[tuple[Draw | None, int]]:
        """(filling, 0) for sizes and the like, (None, bound) for indices, of all that the value flows into."""
        seen, waiting = {name}, [name]
        while waiting:
            for node, slot in self._readers.get(waiting.pop(), ()):
                row = find_traits(node.domain, node.op_type)
                role = row.sizes.get(slot)
                if role is not None:
                    yield _ROLES[role], 0
                elif row.forwards and slot == 0:
                    fresh = [output for output in node.outputs if output and output not in seen]
                    seen.update(fresh)
                    waiting += fresh
                elif (bound := self._bound(node, slot)) is not None:
                    yield None, bound

    def _bound(self, node: NodeView, slot: int) -> int | None:
        """Size of the axis that an input indexes, None where it is no index or the size is unknown."""
        indexes, shape = find_traits(node.domain, node.op_type).indexes, self._fact(node.inputs[0]).shape
        if slot != 1 or not indexes or not shape:
            return None
        axis = 0 if indexes == "axes" else node.attributes.get("axis", 0)
        known = isinstance(axis, int) and -len(shape) <= axis < len(shape)
        dims = shape if indexes == "axes" else shape[axis : axis + 1 or None] if known else ()
        return min((dim for dim in dims if isinstance(dim, int)), default=None)
