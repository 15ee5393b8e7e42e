"""Dimensions: integers, or canonical symbolic expressions over named symbols.

    Dim = int | Expr

An `Expr` is a polynomial with rational coefficients (integers, where it is a dimension) over atoms. An atom
is a symbol, or a call of floor, min, max or broadcast; ceil(a / b) is floor((a + b - 1) / b).
Both are interned weakly, so that equal expressions are the same object: `==`, `is` and `hash` cost a pointer.
A result without atoms, such as that of `n - n`, is a plain int.

Expressions are bounded. An expression of more than MAX_SIZE parts is replaced by a new symbol, whose definition
`evaluate` still uses; an expression of more than MAX_WEIGHT parts, counted with definitions written out, is replaced
by a symbol of unknown size (`is_grown`). Division, min and max are in `arithmetic.py`, text in `notation.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Hashable, Iterator
from fractions import Fraction
from math import ceil, prod
from typing import Any, TypeAlias, TypeVar, Union
from zlib import crc32

from onnxlab.shapes.interning import Interned

Coefficient: TypeAlias = int | Fraction
Monomial: TypeAlias = tuple["Atom", ...]
Dim: TypeAlias = Union[int, "Expr"]
Number: TypeAlias = Union[int, Fraction, "Expr"]

MAX_SIZE = 64
MAX_WEIGHT = 4096
"""Most parts of an expression, definitions written out: polynomials of polynomials double their degree per node."""

PLACEHOLDER = "hole"
"""First item of the key of a placeholder: a symbol that is to be replaced by a dim."""

_GROWN = "grown"

MAX_COEFFICIENT = 2**63

F = TypeVar("F", bound=Callable[..., Any])

_provided: dict[str, Callable[..., Any]] = {}  # division and text, which build on expressions: see `provides`


def provides(function: F) -> F:
    """Decorate a function of a module above, by its name, that operators of expressions call."""
    _provided[function.__name__] = function
    return function


_serials = itertools.count(1)
_atoms = Interned()
_exprs = Interned()


class Atom:
    """A factor of a monomial: a symbol (`function` is ""), or a floor, min, max or broadcast of `arguments`.

    Attributes:
        key: identity of the symbol; `name` is for display only.
        minimum: a lower bound of the atom's value, or None where nothing is known.
        definition: the expression that grew too large and that this symbol replaces; None for other atoms.
        open: whether the atom is or contains a placeholder: a symbol whose key begins with PLACEHOLDER.
        serial: larger than the serial of every atom in the arguments or the definition.
        size: number of the atom's parts.
        weight: number of the atom's parts with definitions written out.
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
        "weight",
    )

    def __init__(self, key: Hashable, name: str, minimum: int | None) -> None:
        self.key = key
        self.name = name
        self.minimum = minimum
        self.function = ""
        self.arguments: tuple[Dim, ...] = ()
        self.definition: Expr | None = None
        self.serial = next(_serials)
        self.size = self.weight = 1
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

    __slots__ = ("__weakref__", "minimum", "open", "serial", "size", "terms", "too_large", "weight")

    terms: dict[Monomial, Coefficient]
    open: bool
    minimum: int | None
    serial: int
    size: int
    weight: int
    too_large: bool

    def __init__(self, terms: dict[Monomial, Coefficient]) -> None:
        self.terms = terms
        self.minimum = _lower_bound(terms)
        self.open = self.too_large = False
        size = weight = 0
        for monomial, coefficient in terms.items():
            if not -MAX_COEFFICIENT <= coefficient <= MAX_COEFFICIENT:
                self.too_large = True
            if not monomial:  # a number is one part
                size += 1
                weight += 1
            for atom in monomial:
                size += atom.size
                weight += atom.weight
                if atom.open:
                    self.open = True
        self.size, self.weight = size, weight
        self.too_large = self.too_large or size > MAX_SIZE or weight > MAX_WEIGHT
        self.serial = next(_serials)

    def __add__(self, other: Number) -> Any:
        if type(other) is int and not other:
            return self
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
        return _provided["floor_div"](self, other) if isinstance(other, (int, Expr)) else NotImplemented

    def __rfloordiv__(self, other: int) -> Any:
        return _provided["floor_div"](other, self)

    def __str__(self) -> str:
        return str(_provided["shown"](self))

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
        key: identity of the symbol where equal names do not mean equal dims (unknown dims); the latest name is shown.
        minimum: lower bound of the symbol's values, 0 for dims; None where no bound is known.
    """
    atom = _atom(name if key is None else key, name, minimum)
    atom.name = name
    expr: Expr = make({(atom,): 1})
    return expr


def _atom(key: Hashable, name: str, minimum: int | None) -> Atom:
    ref = _atoms.get(key)
    atom: Atom = (ref and ref()) or _atoms.keep(key, Atom(key, name, minimum))
    return atom


def call(function: str, arguments: tuple[Dim, ...], minimum: int | None) -> Atom:
    """The interned call; its arguments are canonical already."""
    key = (function, *arguments)
    ref = _atoms.get(key)
    atom: Atom = (ref and ref()) or _atoms.keep(key, _call(function, arguments, minimum))
    return atom


def _call(function: str, arguments: tuple[Dim, ...], minimum: int | None) -> Atom:
    atom = Atom((function, *arguments), "", minimum)
    atom.function = function
    atom.arguments = arguments
    atom.open = any(isinstance(argument, Expr) and argument.open for argument in arguments)
    atom.size = 1 + sum(map(size, arguments))
    atom.weight = 1 + sum([argument.weight if isinstance(argument, Expr) else 1 for argument in arguments])
    return atom


def _defined(expr: Expr) -> Atom:
    """The symbol that stands for an expression that grew too large."""
    if expr.weight > MAX_WEIGHT:
        return _atom((PLACEHOLDER, 0, (expr, _GROWN), expr.minimum), _GROWN, expr.minimum)
    ref = _atoms.get(expr)
    atom: Atom | None = ref and ref()
    if atom is None:
        fresh = Atom(expr, f"expr_{_digest(expr):08x}", expr.minimum)
        fresh.definition = expr
        fresh.open = expr.open
        fresh.weight = expr.weight
        atom = _atoms.keep(expr, fresh)
    return atom


def _digest(expr: Expr) -> int:
    return crc32(_provided["text"](expr).encode("utf-8", "surrogatepass"))


def size(dim: Dim) -> int:
    """Number of parts of a dim, its measure of growth."""
    return dim.size if isinstance(dim, Expr) else 1


def all_atoms(*dims: Dim, inside: bool = True, without: Container[Atom] = ()) -> Iterator[Atom]:
    """Every atom in `dims`, those in calls and, if they are to be looked `inside`, in definitions; each one once.

    Args:
        without: atoms that are left out, together with the atoms inside them.
    """
    pending: list[Dim] = list(dims)
    seen: set[Atom] = set()
    while pending:
        dim = pending.pop()
        if not isinstance(dim, Expr):
            continue
        for atom in itertools.chain.from_iterable(dim.terms):
            if atom in seen or atom in without:
                continue
            seen.add(atom)
            yield atom
            pending.extend(atom.arguments)
            if inside and atom.definition is not None:
                pending.append(atom.definition)


def symbol_atoms(*dims: Dim) -> Iterator[Atom]:
    """Every symbol in `dims`, those inside calls and definitions included."""
    return (atom for atom in all_atoms(*dims) if not atom.function and atom.definition is None)


def is_grown(dim: object) -> bool:
    """Whether a dim, or an element, has a part that stands for an expression of too many parts."""
    return isinstance(dim, Expr) and dim.open and any(_is_grown(atom) for atom in symbol_atoms(dim))


def _is_grown(atom: Atom) -> bool:
    key = atom.key
    return type(key) is tuple and key[0] == PLACEHOLDER and type(key[2]) is tuple and key[2][-1] == _GROWN


def terms_of(number: Number) -> dict[Monomial, Coefficient]:
    """The terms of a number: {monomial: coefficient}."""
    if isinstance(number, Expr):
        return number.terms
    return {(): number} if number else {}


def serial(atom: Atom) -> int:
    """The order in which an atom was made."""
    return atom.serial


def multiply(left: dict[Monomial, Coefficient], right: dict[Monomial, Coefficient]) -> dict[Monomial, Coefficient]:
    """The product of two sums of terms."""
    terms: dict[Monomial, Coefficient] = {}
    for (a, m), (b, n) in itertools.product(left.items(), right.items()):
        monomial = tuple(sorted(a + b, key=serial)) if a and b else a or b
        terms[monomial] = terms.get(monomial, 0) + m * n
    return terms


def make(terms: dict[Monomial, Coefficient]) -> Any:
    """The interned Expr of these terms; a number where no atom is left; a symbol where it grew too large."""
    clean: dict[Monomial, Coefficient] = {m: c if type(c) is int else _integral(c) for m, c in terms.items() if c}
    if not clean:
        return 0
    if len(clean) == 1 and () in clean:
        return clean[()]
    key = frozenset(clean.items())
    ref = _exprs.get(key)
    expr: Expr = (ref and ref()) or _exprs.keep(key, Expr(clean))
    return make({(_defined(expr),): 1}) if expr.too_large else expr


def _integral(c: Coefficient) -> Coefficient:
    return c.numerator if isinstance(c, Fraction) and c.denominator == 1 else c


def _lower_bound(terms: dict[Monomial, Coefficient]) -> int | None:
    total: Coefficient = 0
    for monomial, coefficient in terms.items():
        bound = _lower_bound_of(monomial, coefficient)
        if bound is None:
            return None
        total += bound
    return total if type(total) is int else ceil(total)


def _lower_bound_of(monomial: Monomial, coefficient: Coefficient) -> Coefficient | None:
    """A bound of one term: of a product only where no factor can be negative."""
    if not monomial:
        return coefficient
    if len(monomial) == 1:
        bound = monomial[0].minimum if coefficient > 0 else _upper_bound(monomial[0])
        return None if bound is None else coefficient * bound
    minima = [atom.minimum for atom in monomial if atom.minimum is not None and atom.minimum >= 0]
    return coefficient * prod(minima) if coefficient > 0 and len(minima) == len(monomial) else None


def _upper_bound(atom: Atom) -> int | None:
    """The largest constant under a min; nothing else has a bound from above."""
    if atom.function == "min":
        return min((a for a in atom.arguments if isinstance(a, int)), default=None)
    return None
