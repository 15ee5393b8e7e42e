"""Facts: what is known about a value without running the model.

A fact is immutable and interned: equal facts are the same object, so that comparing them, and stopping
inference where nothing changed, costs a pointer. `str(fact)` is "float32[batch,seq,768]", "int64[?]" where
the rank is unknown, "?" where the type is; `fact.label()` is short, for edges of drawings: "batch×seq×768".
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np

from onnxlab import dtypes
from onnxlab.shapes.expressions import Dim, Expr, symbol
from onnxlab.shapes.interning import Interned
from onnxlab.shapes.notation import shown
from onnxlab.shapes.values import KnownValue

Shape: TypeAlias = tuple[Dim, ...]

MAX_RANK = 64
"""Largest rank of a NumPy array; inference does not track the dims of larger ranks."""

_interned = Interned()


class Fact:
    """Base of all facts. On its own (`UNKNOWN`) it says that not even the kind of value is known."""

    __slots__ = ("__weakref__",)

    def __new__(cls) -> Fact:
        """Return the one object for these fields."""
        return cast("Fact", cls._intern((cls,)))

    @classmethod
    def _intern(cls, key: tuple[Any, ...], **fields: Any) -> Any:
        ref = _interned.get(key)
        fact = ref and ref()
        if fact is None:
            fresh = object.__new__(cls)
            for name, value in fields.items():
                object.__setattr__(fresh, name, value)
            fact = _interned.keep(key, fresh)
        return fact

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"facts are immutable: cannot set {name!r}; make a new one")

    def __reduce__(self) -> Any:
        names = [name for name in type(self).__slots__ if not name.startswith("_")]
        return type(self), tuple(getattr(self, name) for name in names)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __str__(self) -> str:
        return "?"

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """NumPy dtype of the elements; None where the type is unknown, or no tensor."""
        return None

    @property
    def shape(self) -> Shape | None:
        """Dims, each an int or an Expr whose str() is for people; None for an unknown rank, or no tensor."""
        return None

    @property
    def bare(self) -> Fact:
        """The same without known elements."""
        return self

    @property
    def rank(self) -> int | None:
        """Number of dims, None where unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def value(self) -> np.ndarray[Any, Any] | None:
        """The tensor itself where inference knows every element, else None."""
        return None

    def label(self) -> str:
        """The short form for an edge: dims only, "scalar" for rank 0, "" where nothing is known."""
        return ""

    def nbytes(self) -> Dim | None:
        """Bytes of the tensor in memory, None where they are unknown, or for no dense tensor."""
        return None


class TensorFact(Fact):
    """A dense tensor.

    Attributes:
        elem_type: int of TensorProto.DataType, 0 where unknown.
        shape: tuple of Dims, or None where the rank is unknown.
        known: elements that are known, or None.
    """

    __slots__ = ("elem_type", "shape", "known", "_bare")  # noqa: RUF023 - in the order of the parameters

    elem_type: int
    shape: Shape | None
    known: KnownValue | None
    _bare: TensorFact | None

    def __new__(cls, elem_type: int, shape: Shape | None = None, known: KnownValue | None = None) -> TensorFact:
        """Return the one object for these fields."""
        key = (elem_type, shape, known)
        ref = _interned.get(key)
        fact: TensorFact = (ref and ref()) or _interned.keep(key, _tensor(elem_type, shape, known))
        return fact

    @property
    def bare(self) -> TensorFact:
        """The same without the elements."""
        if self.known is None:
            return self
        if self._bare is None:
            _set_bare(self, TensorFact(self.elem_type, self.shape))
        return self._bare or self

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The NumPy dtype of the elements, None where there is none."""
        try:
            return dtypes.to_numpy(self.elem_type)
        except ValueError:  # undefined, or a type newer than this version of onnxlab
            return None

    @property
    def value(self) -> np.ndarray[Any, Any] | None:
        """The elements, where all are known."""
        array = None if self.known is None else self.known.array()
        return None if array is None else array.astype(self.dtype)

    def __str__(self) -> str:
        return (dtypes.name(self.elem_type) if self.elem_type else "?") + _brackets(self.shape)

    def label(self) -> str:
        """The shape as edges show it."""
        if self.shape is None:
            return ""
        return "×".join(map(_edge_dim, self.shape)) if self.shape else "scalar"

    def nbytes(self) -> Dim | None:
        """Bytes of the tensor in memory; symbolic where a dim is; None where the shape or type is unknown."""
        dtype = self.dtype
        if self.shape is None or dtype is None:
            return None
        total: Dim = dtype.itemsize
        for dim in self.shape:
            total = total * dim
        return total


# slot descriptors, because __setattr__ refuses and inference makes many facts
_set_elem_type = TensorFact.__dict__["elem_type"].__set__
_set_shape = TensorFact.__dict__["shape"].__set__
_set_known = TensorFact.__dict__["known"].__set__
_set_bare = TensorFact.__dict__["_bare"].__set__


def _tensor(elem_type: int, shape: Shape | None, known: KnownValue | None) -> TensorFact:
    fact = object.__new__(TensorFact)
    _set_elem_type(fact, elem_type)
    _set_shape(fact, shape)
    _set_known(fact, known)
    _set_bare(fact, None)
    return fact


class SparseTensorFact(Fact):
    """A sparse tensor: the element type and the dims of the dense tensor that it stands for."""

    __slots__ = ("elem_type", "shape")

    elem_type: int
    shape: Shape | None

    def __new__(cls, elem_type: int, shape: Shape | None = None) -> SparseTensorFact:
        """Return the one object for these fields."""
        key = (cls, elem_type, shape)
        return cast("SparseTensorFact", cls._intern(key, elem_type=elem_type, shape=shape))

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The NumPy dtype of the elements, None where there is none."""
        return TensorFact(self.elem_type).dtype

    def __str__(self) -> str:
        return f"sparse {TensorFact(self.elem_type, self.shape)}"

    def label(self) -> str:
        """The shape as edges show it."""
        return TensorFact(self.elem_type, self.shape).label()


class SequenceFact(Fact):
    """A sequence.

    Attributes:
        elem: the fact of every element (a dim is VARIES where elements may differ).
        length: number of elements, None where unknown. For a length of 0, `elem` says nothing.
    """

    __slots__ = ("elem", "length")

    elem: Fact
    length: Dim | None

    def __new__(cls, elem: Fact, length: Dim | None = None) -> SequenceFact:
        """Return the one object for these fields."""
        return cast("SequenceFact", cls._intern((cls, elem, length), elem=elem, length=length))

    def __str__(self) -> str:
        return f"seq({self.elem})"

    def label(self) -> str:
        """The shape as edges show it."""
        return f"seq {self.elem.label()}".rstrip()


class OptionalFact(Fact):
    """An optional; `elem` is what is true of its element where it has one."""

    __slots__ = ("elem",)

    elem: Fact

    def __new__(cls, elem: Fact) -> OptionalFact:
        """Return the one object for these fields."""
        return cast("OptionalFact", cls._intern((cls, elem), elem=elem))

    def __str__(self) -> str:
        return f"optional({self.elem})"

    def label(self) -> str:
        """The shape as edges show it."""
        return f"optional {self.elem.label()}".rstrip()


class MapFact(Fact):
    """A map (ai.onnx.ml): element type of its keys, fact of each value."""

    __slots__ = ("key_type", "elem")  # noqa: RUF023 - in the order of the constructor's parameters

    key_type: int
    elem: Fact

    def __new__(cls, key_type: int, elem: Fact) -> MapFact:
        """Return the one object for these fields."""
        return cast("MapFact", cls._intern((cls, key_type, elem), key_type=key_type, elem=elem))

    def __str__(self) -> str:
        return f"map({dtypes.name(self.key_type)},{self.elem})"

    def label(self) -> str:
        """The shape as edges show it."""
        return "map"


UNKNOWN: Fact = Fact()

VARIES: Expr = symbol("?", key=("varies",))
"""In the `elem` of a SequenceFact: a size that need not be the same for any two elements."""


def _brackets(shape: Shape | None) -> str:
    return "[?]" if shape is None else f"[{','.join(map(shown, shape))}]"


def _edge_dim(dim: Dim) -> str:
    """Sums and differences in parentheses, because × binds tighter."""
    written = shown(dim)
    return f"({written})" if isinstance(dim, Expr) and (" + " in written or " - " in written) else written


def tensor(elem_type: int, *dims: Dim) -> TensorFact:
    """A tensor fact written short, for rules and tests: `tensor(FLOAT, batch, 768)`."""
    return TensorFact(elem_type, dims)


def map_dims(fact: Fact, function: Callable[[Dim], Dim]) -> Fact:
    """The fact with `function` applied to every symbolic dim and known element, inside containers too."""
    match fact:
        case TensorFact():
            known = fact.known
            if known is not None and not known.complete:
                items = tuple(function(item) if isinstance(item, Expr) else item for item in known.items)
                known = KnownValue(known.kind, known.shape, items)
            return TensorFact(fact.elem_type, _mapped(fact.shape, function), known)
        case SparseTensorFact():
            return SparseTensorFact(fact.elem_type, _mapped(fact.shape, function))
        case SequenceFact():
            length = function(fact.length) if isinstance(fact.length, Expr) else fact.length
            return SequenceFact(map_dims(fact.elem, function), length)
        case OptionalFact():
            return OptionalFact(map_dims(fact.elem, function))
        case MapFact():
            return MapFact(fact.key_type, map_dims(fact.elem, function))
    return fact


def _mapped(shape: Shape | None, function: Callable[[Dim], Dim]) -> Shape | None:
    return shape and tuple(function(dim) if isinstance(dim, Expr) else dim for dim in shape)


def elements(fact: Fact) -> int | None:
    """Number of elements of a tensor all of whose dims are ints, else None."""
    shape = fact.shape
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    return prod(cast("tuple[int, ...]", shape))
