"""Expressions of watches: `abs_max < 65504 and nan == 0`, `shape == (batch, 80, None)`.

Expressions have a parser of their own, never Python's, because a model file may bring one. The grammar has numbers,
texts, tuples, None, the measures of a value, `close_to("ref.npz", 1e-4)`, arithmetic, comparisons, `and`, `or` and
`not`, and nothing else.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onnxlab.argument_types import expect
from onnxlab.errors import OnnxlabError

MEASURES = (
    "abs_max", "min", "max", "mean", "std", "nan", "inf", "zeros", "count", "shape", "rank", "dtype",
)  # fmt: skip
"""What an expression may ask of a value; other names stand for sizes that are not known."""

CLOSE_TO = "close_to"
"""The only function: whether a value is as close to a recorded one, relative to the peak of the recorded one."""

LONGEST = 1000
_DEEPEST = 40

_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)"  # numbers, names
    r"|(\"[^\"]*\"|'[^']*')|(<=|>=|==|!=|[-+*/()<>,]))"  # texts, signs
)

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

Measure = Callable[..., Any]
"""measure(name), and measure("close_to", file, tolerance)."""
Part = Callable[[Measure], Any]


class WatchError(OnnxlabError, ValueError):
    """An expression that cannot be read or has no answer."""


@dataclass(frozen=True, slots=True)
class Size:
    """A size that is not known, by its name; equal to any, the same one each time."""

    name: str


class Expression:
    """A parsed expression.

    Attributes:
        text: as it was written.
        names: the measures that it asks for.
    """

    def __init__(self, text: str) -> None:
        """Parse a text.

        Raises:
            WatchError: the text is no expression; the message shows where.
        """
        self.text = expect(text, str, "an expression", "a text, as 'abs_max < 65504 and nan == 0'")
        self.names: set[str] = set()
        self._tokens = _tokens(text)
        self._at = self._depth = 0
        self._run = self._either()
        if self._at < len(self._tokens):
            raise self._wrong("the end, or an operator")

    def __call__(self, measure: Measure) -> bool:
        """Whether the expression holds.

        Raises:
            WatchError: the expression compares what has no order, or computes with what is no number.
        """
        try:
            return bool(self._run(measure))
        except (TypeError, ZeroDivisionError, OverflowError) as error:
            raise WatchError(f"{self.text!r} has no answer: {error}") from None

    def _wrong(self, expected: str) -> WatchError:
        token = self._tokens[self._at] if self._at < len(self._tokens) else "the end"
        return WatchError(f"{self.text!r}: expected {expected}, found {token}; measures are {', '.join(MEASURES)}")

    def _next(self, *symbols: str) -> str:
        """The next token where it is one of those wanted, else ""."""
        if self._at < len(self._tokens) and self._tokens[self._at] in symbols:
            self._at += 1
            return self._tokens[self._at - 1]
        return ""

    def _either(self) -> Part:
        parts = [self._both()]
        while self._next("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda measure: any(part(measure) for part in parts)

    def _both(self) -> Part:
        parts = [self._negated()]
        while self._next("and"):
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else lambda measure: all(part(measure) for part in parts)

    def _negated(self) -> Part:
        if self._next("not"):
            inner = self._deeper(self._negated)
            return lambda measure: not inner(measure)
        return self._comparison()

    def _comparison(self) -> Part:
        left = self._sum()
        sign = self._next("<=", ">=", "==", "!=", "<", ">")
        if not sign:
            return left
        right = self._sum()
        if sign in ("==", "!="):
            return lambda measure: equal(left(measure), right(measure)) == (sign == "==")
        return lambda measure: _COMPARISONS[sign](left(measure), right(measure))

    def _sum(self) -> Part:
        result = self._product()
        while sign := self._next("+", "-"):
            result = _combined(operator.add if sign == "+" else operator.sub, result, self._product())
        return result

    def _product(self) -> Part:
        result = self._signed()
        while sign := self._next("*", "/"):
            result = _combined(operator.mul if sign == "*" else operator.truediv, result, self._signed())
        return result

    def _signed(self) -> Part:
        if self._next("-"):
            inner = self._deeper(self._signed)
            return lambda measure: -_number(inner(measure))
        return self._atom()

    def _atom(self) -> Part:
        if self._next("("):
            return self._deeper(self._group)
        if self._at >= len(self._tokens):
            raise self._wrong("a number, a measure or a size")
        token = self._tokens[self._at]
        if token[0].isdigit() or token[0] == ".":
            self._at += 1
            number = float(token) if not token.isdigit() else int(token)
            return lambda _: number
        if token[0] in "\"'":
            self._at += 1
            return lambda _: token[1:-1]
        if token == CLOSE_TO:
            self._at += 1
            return self._close_to()
        if token in MEASURES:
            self._at += 1
            self.names.add(token)
            return lambda measure: measure(token)
        if token.isidentifier() and token not in ("and", "or", "not"):
            self._at += 1
            size = None if token == "None" else Size(token)
            return lambda _: size
        raise self._wrong("a number, a measure or a size")

    def _close_to(self) -> Part:
        """`close_to("ref.npz", 1e-4)`: a file beside the model, and how far off the value may be."""
        if not self._next("("):
            raise self._wrong("'('")
        recorded = self._deeper(self._sum)
        if not self._next(","):
            raise self._wrong("',' and a tolerance")
        most = self._deeper(self._sum)
        if not self._next(")"):
            raise self._wrong("')'")
        self.names.add(CLOSE_TO)

        def close(measure: Measure) -> bool:
            file, tolerance = recorded(measure), most(measure)
            if not isinstance(file, str):
                raise TypeError(f"{file!r} is no file name")
            return bool(measure(CLOSE_TO, file, _number(tolerance)))

        return close

    def _group(self) -> Part:
        parts, is_tuple = [], False
        while not self._next(")"):
            parts.append(self._either())
            if self._next(","):
                is_tuple = True
            elif self._next(")"):
                break
            else:
                raise self._wrong("',' or ')'")
        if len(parts) == 1 and not is_tuple:
            return parts[0]
        return lambda measure: tuple(part(measure) for part in parts)

    def _deeper(self, rule: Callable[[], Part]) -> Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise WatchError(f"the expression is nested more than {_DEEPEST} deep")
        try:
            return rule()
        finally:
            self._depth -= 1


def _tokens(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise WatchError(f"an expression has at most {LONGEST} characters, this one has {len(text)}")
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise WatchError(f"{text!r}: {text[at:].strip()[0]!r} at {at} has no meaning in an expression")
        tokens.append(next(group for group in match.groups() if group))
        at = match.end()
    return tokens


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _combined(combine: Callable[[Any, Any], Any], left: Part, right: Part) -> Part:
    return lambda measure: combine(_number(left(measure)), _number(right(measure)))


def equal(value: Any, other: Any) -> bool:
    """Whether two sides are equal: in tuples None is anything, and a name any size, the same each time."""
    if isinstance(value, tuple) and isinstance(other, tuple):
        sizes: dict[str, Any] = {}
        return len(value) == len(other) and all(_fits(dim, its, sizes) for dim, its in zip(value, other, strict=True))
    if isinstance(value, Size) or isinstance(other, Size):
        named = value if isinstance(value, Size) else other
        text = other if named is value else value
        return isinstance(text, str) and text == named.name  # dtype == float32
    if isinstance(value, float) and isinstance(other, float) and math.isnan(value) and math.isnan(other):
        return True
    return bool(value == other)


def _fits(dim: Any, other: Any, sizes: dict[str, Any]) -> bool:
    if dim is None or other is None:
        return True
    for size, number in ((dim, other), (other, dim)):
        if isinstance(size, Size):
            return bool(sizes.setdefault(size.name, number) == number)
    return bool(dim == other)
