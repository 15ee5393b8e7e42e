"""Dimensions as text and back.

    2*seq + 1      floor((h + 1)/2)      min(batch, 4)      ceil(seq/64)

`text` writes what `parse` reads. `shown`, which `str` calls, is for display: the same text, clipped where it is long.
`parse` also reads `//` and `ceil`, as exporters write a dim_param.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, reduce
from operator import attrgetter

from onnxlab.printable import printable
from onnxlab.shapes.arithmetic import broadcast, ceil_div, floor_div, maximum, minimum
from onnxlab.shapes.expressions import Atom, Coefficient, Dim, Expr, Monomial, all_atoms, provides, symbol

Name = Callable[[Atom], str]

MAX_SHOWN = 240
"""Most characters of an expression on display; a name inside the expression has a quarter of that."""

_MAX_BITS = 256

_MAX_READ = 2000
_MAX_NESTING = 40
"""Longer texts, and deeper parentheses, are read as a name, not as an expression."""


@provides
def shown(dim: Dim) -> str:
    """The dim for people, in drawings and messages: its text, of MAX_SHOWN characters at most."""
    if isinstance(dim, Expr):
        written = _sole_name(dim) or clipped(Notation(_short_name).dim(dim), MAX_SHOWN)
        return written if written.isascii() and written.isprintable() else printable(written)
    return str(dim) if dim.bit_length() <= _MAX_BITS else f"a number of {dim.bit_length():,} bits"


def _sole_name(dim: Expr) -> str:
    """The name of a dim that is one symbol, as most are; "" for others."""
    if len(dim.terms) == 1:
        ((monomial, coefficient),) = dim.terms.items()
        if coefficient == 1 and len(monomial) == 1 and not monomial[0].function:
            return _short_name(monomial[0])
    return ""


def clipped(written: str, limit: int) -> str:
    """A text of `limit` characters at most: what is longer ends with "…"."""
    return written if len(written) <= limit else written[: limit - 1] + "…"


def _short_name(atom: Atom) -> str:
    return clipped(atom.name, MAX_SHOWN // 4)


@provides
def text(dim: Dim, name: Name = attrgetter("name")) -> str:
    """The dim as people write it: terms by falling degree, then by name, the constant last.

    `name` returns the text of a symbol; by default, the symbol's own name.
    """
    return Notation(name).dim(dim) if isinstance(dim, Expr) else str(dim)


class Notation:
    """Dims as text, see `text`; each atom is written once, however often it is in them."""

    def __init__(self, name: Name) -> None:
        self._name = name
        self._written: dict[Atom, str] = {}

    def dim(self, dim: Dim) -> str:
        """A dim in writing."""
        if not isinstance(dim, Expr):
            return str(dim)
        for atom in sorted(all_atoms(dim, inside=False), key=attrgetter("serial")):  # inner atoms first
            if atom not in self._written:
                self._written[atom] = self._call(atom) if atom.function else self._name(atom)
        return self._sum(dim)

    def _sum(self, dim: Dim) -> str:
        """The same, its atoms being written."""
        if not isinstance(dim, Expr):
            return str(dim)
        texts = {monomial: self._monomial(monomial) for monomial in dim.terms}
        written = ""
        for monomial in sorted(dim.terms, key=lambda m: (-len(m), dim.terms[m] < 0, texts[m])):
            coefficient: Coefficient = dim.terms[monomial]
            sign = "-" if coefficient < 0 else "+" if written else ""
            amount: Coefficient = coefficient * -1 if coefficient < 0 else coefficient
            term = f"{amount}*{texts[monomial]}" if monomial and amount != 1 else texts[monomial] or str(amount)
            written += f" {sign} {term}" if written else sign + term
        return written

    def _monomial(self, monomial: Monomial) -> str:
        return "*".join(sorted([self._written[atom] for atom in monomial]))

    def _call(self, atom: Atom) -> str:
        if atom.function == "floor":
            above, below = map(self._sum, atom.arguments)
            return f"floor({_grouped(above)}/{_grouped(below)})"
        numbers = [str(dim) for dim in atom.arguments if isinstance(dim, int)]
        others = sorted(self._sum(dim) for dim in atom.arguments if not isinstance(dim, int))
        return f"{atom.function}({', '.join(others + numbers)})"


def _grouped(written: str) -> str:
    return f"({written})" if " " in written or "*" in written or "/" in written else written


_TOKEN = re.compile(r"\s*(//|[-+*/(),]|\d+(?![\w.])|[A-Za-z_][\w.\[\]]*)")


@lru_cache(4096)
def _tokens(source: str) -> tuple[str, ...] | None:
    """Tokens of an arithmetic expression, or None where the text is a name ("batch-size", "dim 1", "-1")."""
    tokens, position = [], 0
    while position < len(source.rstrip()):
        match = _TOKEN.match(source, position)
        if match is None:
            return None
        tokens.append(match[1])
        position = match.end()
    has_name = any(token[0].isalpha() or token[0] == "_" for token in tokens)
    hyphenated = re.search(r"[\w\])]-[\w(]", source) is not None
    return tuple(tokens) if len(tokens) > 1 and has_name and not hyphenated else None


def parse(source: str) -> Dim:
    """The dim that a dim_param means: an expression where the text is one, else the symbol of that name."""
    tokens = _tokens(source) if len(source) <= _MAX_READ else None
    if tokens is None or len(tokens) > 200:
        return symbol(source)
    reader = _Reader(tokens)
    try:
        dim = reader.sum()
    except (_NotArithmeticError, ZeroDivisionError):
        return symbol(source)
    return dim if reader.position == len(tokens) and isinstance(dim, Expr) else symbol(source)


class _NotArithmeticError(Exception):
    """The text is no expression after all; it is a name then."""


class _Reader:
    """Recursive descent over tokens: sum → term → factor."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self.tokens = tokens
        self.position = 0
        self.nesting = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if not token or (expected and token not in expected):
            raise _NotArithmeticError
        self.position += 1
        return token

    def sum(self) -> Dim:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise _NotArithmeticError
        negative = self.peek() == "-" and bool(self.take())
        total = -self.term() if negative else self.term()
        while self.peek() in ("+", "-") and self.peek():
            total = total + self.term() if self.take() == "+" else total - self.term()
        self.nesting -= 1
        return total

    def term(self) -> Dim:
        total = self.factor()
        while self.peek() in ("*", "//") and self.peek():
            total = total * self.factor() if self.take() == "*" else floor_div(total, self.factor())
        return total

    def factor(self) -> Dim:
        token = self.take()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token.isdigit():
            return int(token)
        if not (token[0].isalpha() or token[0] == "_"):
            raise _NotArithmeticError
        return self.call(token) if self.peek() == "(" else symbol(token)

    def call(self, function: str) -> Dim:
        self.take("(")
        arguments = [self.sum()]
        if self.peek() == "/" and function in ("floor", "ceil"):
            self.take()
            arguments.append(self.factor())
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum())
        self.take(")")
        known: dict[str, Callable[..., Dim]] = {
            "floor": floor_div,
            "ceil": ceil_div,
            "min": minimum,
            "max": maximum,
            "Min": minimum,
            "Max": maximum,
            "broadcast": lambda *dims: reduce(broadcast, dims),
        }
        if function not in known or (len(arguments) != 2 and function in ("floor", "ceil")):
            raise _NotArithmeticError
        return known[function](*arguments)
