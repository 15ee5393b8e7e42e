"""Dimensions: integers, or canonical symbolic expressions over named symbols.

    Dim = int | Expr

An `Expr` is a polynomial with rational coefficients (integers, where it is a dimension) over atoms. An atom
is a symbol, or a call of floor, min, max or broadcast; ceil(a / b) is floor((a + b - 1) / b).
Both are interned weakly, so that equal expressions are the same object: `==`, `is` and `hash` cost a pointer.
What is no expression any more, such as `n - n`, is a plain int.

Expressions are bounded: one that would have more than MAX_SIZE parts becomes a symbol of its own, whose
definition is still there for `evaluate`. Division, min and max are in `arithmetic.py`, text in `notation.py`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Iterator
from fractions import Fraction
from math import ceil, prod
from typing import Any, TypeAlias, Union
from weakref import WeakValueDictionary
from zlib import crc32

Coefficient: TypeAlias = int | Fraction
Monomial: TypeAlias = tuple["Atom", ...]
Dim: TypeAlias = Union[int, "Expr"]
Number: TypeAlias = Union[int, Fraction, "Expr"]

MAX_SIZE = 64
PLACEHOLDER = "hole"
"""First item of the key of a symbol that stands for whatever is put there later."""

MAX_COEFFICIENT = 2**63

_serials = itertools.count(1)
_lock = threading.Lock()
_atoms: WeakValueDictionary[Hashable, Atom] = WeakValueDictionary()
_exprs: WeakValueDictionary[Hashable, Expr] = WeakValueDictionary()


class Atom:
    """A factor of a monomial: a symbol (`function` is ""), or a floor, min, max or broadcast of `arguments`.

    Attributes:
        key: what makes it the same symbol; `name` is for display only.
        minimum: a lower bound of its value, or None where nothing is known.
        definition: of a symbol that stands for an expression that grew too large, that expression.
        open: whether it is, or holds, a placeholder: a symbol whose key begins with PLACEHOLDER.
    """

    __slots__ = (
        "__weakref__",
        "arguments",
        "definition",
        "function",
        "key",
        "minimum",
        "name",
        "open",
        "serial",
        "size",
    )

    def __init__(self, key: Hashable, name: str, minimum: int | None) -> None:
        self.key = key
        self.name = name
        self.minimum = minimum
        self.function = ""
        self.arguments: tuple[Dim, ...] = ()
        self.definition: Expr | None = None
        self.serial = next(_serials)
        self.size = 1
        self.open = type(key) is tuple and key[:1] == (PLACEHOLDER,)

    def __reduce__(self) -> Any:
        if self.definition is not None:
            return _defined, (self.definition,)
        if self.function:
            return call, (self.function, self.arguments, self.minimum)
        return _atom, (self.key, self.name, self.minimum)


class Expr:
    """A symbolic integer (in known values of float tensors: a rational number); `symbol` makes the first one.

    Supports + - * // and unary -, with ints and each other; results are Dims. Comparison is identity.
    """

    __slots__ = ("__weakref__", "minimum", "open", "serial", "size", "terms")

    terms: dict[Monomial, Coefficient]
    open: bool
    minimum: int | None
    serial: int
    size: int

    def __init__(self, terms: dict[Monomial, Coefficient], size: int) -> None:
        self.terms = terms
        self.size = size
        self.minimum = _lower_bound(terms)
        self.open = any(atom.open for monomial in terms for atom in monomial)
        self.serial = next(_serials)

    def __add__(self, other: Number) -> Any:
        if not isinstance(other, (int, Fraction, Expr)):
            return NotImplemented
        terms = dict(self.terms)
        for monomial, coefficient in terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return make(terms)

    __radd__ = __add__

    def __mul__(self, other: Number) -> Any:
        if not isinstance(other, (int, Fraction, Expr)):
            return NotImplemented
        return make(multiply(self.terms, terms_of(other)))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return make({monomial: -coefficient for monomial, coefficient in self.terms.items()})

    def __sub__(self, other: Number) -> Any:
        return self + -other if isinstance(other, (int, Fraction, Expr)) else NotImplemented

    def __rsub__(self, other: Number) -> Any:
        return -self + other if isinstance(other, (int, Fraction, Expr)) else NotImplemented

    def __floordiv__(self, other: Dim) -> Any:
        from onnxlab.shapes.arithmetic import floor_div

        return floor_div(self, other) if isinstance(other, (int, Expr)) else NotImplemented

    def __rfloordiv__(self, other: int) -> Any:
        from onnxlab.shapes.arithmetic import floor_div

        return floor_div(other, self)

    def __str__(self) -> str:
        from onnxlab.shapes.notation import text

        return text(self)

    def __repr__(self) -> str:
        return f"<Expr {self}>"

    def __reduce__(self) -> Any:
        return make, (self.terms,)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols in it."""
        return frozenset(atom.name for atom in symbol_atoms(self))


def symbol(name: str, *, key: Hashable = None, minimum: int | None = 0) -> Expr:
    """The symbol called `name`. Without a key it is the model-wide `dim_param` of that name.

    Args:
        key: identity of the symbol where names prove nothing (unknown dims); it takes the newest name.
        minimum: lower bound of its values; dims are at least 0. None where even that is unknown.
    """
    atom = _atom(name if key is None else key, name, minimum)
    atom.name = name
    expr = make({(atom,): 1})
    assert isinstance(expr, Expr)
    return expr


def _atom(key: Hashable, name: str, minimum: int | None) -> Atom:
    found = _atoms.get(key)
    if found is None:
        with _lock:
            found = _atoms.get(key)
            if found is None:
                found = _atoms[key] = Atom(key, name, minimum)
    return found


def call(function: str, arguments: tuple[Dim, ...], minimum: int | None) -> Atom:
    """The interned call; its arguments are canonical already."""
    key = (function, *arguments)
    found = _atoms.get(key)
    if found is None:
        with _lock:
            found = _atoms.get(key)
            if found is None:
                found = Atom(key, "", minimum)
                found.function = function
                found.arguments = arguments
                found.open = any(isinstance(argument, Expr) and argument.open for argument in arguments)
                found.size = 1 + sum(size(argument) for argument in arguments)
                _atoms[key] = found
    return found


def _defined(expr: Expr) -> Atom:
    """The symbol that stands for an expression that grew too large."""
    found = _atoms.get(expr)
    if found is None:
        with _lock:
            found = _atoms.get(expr)
            if found is None:
                found = Atom(expr, f"expr_{crc32(str(expr).encode()):08x}", expr.minimum)
                found.definition = expr
                found.open = expr.open
                _atoms[expr] = found
    return found


def size(dim: Dim) -> int:
    """Number of parts of a dim, its measure of growth."""
    return dim.size if isinstance(dim, Expr) else 1


def symbol_atoms(*dims: Dim) -> Iterator[Atom]:
    """Every symbol in `dims`, those inside calls and definitions included; one may come more than once."""
    pending: list[Dim] = list(dims)
    seen: set[Expr] = set()
    while pending:
        dim = pending.pop()
        if not isinstance(dim, Expr) or dim in seen:
            continue
        seen.add(dim)
        for atom in itertools.chain.from_iterable(dim.terms):
            if atom.function:
                pending.extend(atom.arguments)
            elif atom.definition is not None:
                pending.append(atom.definition)
            else:
                yield atom


def terms_of(number: Number) -> dict[Monomial, Coefficient]:
    if isinstance(number, Expr):
        return number.terms
    return {(): number} if number else {}


def _serial(atom: Atom) -> int:
    return atom.serial


def multiply(left: dict[Monomial, Coefficient], right: dict[Monomial, Coefficient]) -> dict[Monomial, Coefficient]:
    terms: dict[Monomial, Coefficient] = {}
    for (a, m), (b, n) in itertools.product(left.items(), right.items()):
        monomial = tuple(sorted(a + b, key=_serial)) if a and b else a or b
        terms[monomial] = terms.get(monomial, 0) + m * n
    return terms


def make(terms: dict[Monomial, Coefficient]) -> Any:
    """The interned Expr of these terms; a number where no atom is left; a symbol where it grew too large."""
    clean = {monomial: _integral(c) for monomial, c in terms.items() if c}
    if not clean:
        return 0
    if len(clean) == 1 and () in clean:
        return clean[()]
    key = frozenset(clean.items())
    found = _exprs.get(key)
    if found is not None:
        return found
    parts = sum(sum(atom.size for atom in monomial) or 1 for monomial in clean)
    too_large = parts > MAX_SIZE or any(abs(float(c)) > MAX_COEFFICIENT for c in clean.values())
    with _lock:
        found = _exprs.get(key)
        if found is None:
            found = _exprs[key] = Expr(clean, parts)
    return make({(_defined(found),): 1}) if too_large else found


def _integral(c: Coefficient) -> Coefficient:
    return c.numerator if isinstance(c, Fraction) and c.denominator == 1 else c


def _lower_bound(terms: dict[Monomial, Coefficient]) -> int | None:
    total: Coefficient = 0
    for monomial, coefficient in terms.items():
        if not monomial:
            total += coefficient
            continue
        minima = [atom.minimum for atom in monomial if atom.minimum is not None and atom.minimum >= 0]
        if len(minima) == len(monomial) and coefficient > 0:
            total += coefficient * prod(minima)
        elif len(monomial) == 1 and coefficient > 0 and monomial[0].minimum is not None:
            total += coefficient * monomial[0].minimum
        elif coefficient < 0 and len(monomial) == 1 and (bound := _upper_bound(monomial[0])) is not None:
            total += coefficient * bound
        else:
            return None
    return ceil(total)


def _upper_bound(atom: Atom) -> int | None:
    """The largest constant under a min; nothing else has a bound from above."""
    if atom.function == "min":
        return min((a for a in atom.arguments if isinstance(a, int)), default=None)
    return None
