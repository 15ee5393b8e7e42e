"""Patterns of nodes as text: `Add(MatMul(a, w:const), c:const)`.

    call      Operator(argument, …), domain::Operator(…)
    argument  a call; a name, which stands for any value, and for the same one wherever it is written; `name:const` for
              a constant; `name?` and `name:const?` for inputs that may be absent; `attribute=name` binds an attribute,
              `attribute=3`, `attribute=[1, 2]` and `attribute="text"` ask for it.

Operands of operators that commute match in either order. Nodes inside of a pattern must have no other reader.
"""

import ast
import re
from dataclasses import dataclass
from typing import Any, Final

from onnxlab.errors import TransformError

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_][\w.]*(?:::\w+)?)|(?P<mark>[(),=?:])"""
    r"""|(?P<literal>\[[^\]]*\]|"[^"]*"|-?[\d.]+(?:e-?\d+)?))"""
)


@dataclass(frozen=True, slots=True)
class Name:
    """Any value, bound to a name; `constant` where it must be one, `optional` where it may be absent."""

    name: str
    constant: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.name}{':const' if self.constant else ''}{'?' if self.optional else ''}"


@dataclass(frozen=True, slots=True)
class Literal:
    """An attribute that must have a value."""

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A node of an operator.

    Attributes:
        op_type, domain: the operator.
        inputs: what it reads, by slot.
        attributes: (name of an attribute, what it is bound to or must be).
    """

    op_type: str
    domain: str
    inputs: "tuple[Call | Name, ...]"
    attributes: tuple[tuple[str, Name | Literal], ...] = ()

    def __str__(self) -> str:
        parts = [*map(str, self.inputs), *(f"{name}={what}" for name, what in self.attributes)]
        domain = f"{self.domain}::" if self.domain else ""
        return f"{domain}{self.op_type}({', '.join(parts)})"


def parse(text: str) -> Call:
    """The pattern that a text means.

    Raises:
        TransformError: it is none; the message shows where.
    """
    parser = _Parser(text)
    call = parser.argument()
    if not isinstance(call, Call):
        parser.fail("a pattern begins with an operator, as in Add(a, b)", 0)
    parser.end()
    return call  # type: ignore[return-value]


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def fail(self, expected: str, at: int | None = None) -> None:
        """Raise TransformError with the place."""
        place = self._at if at is None else at
        raise TransformError(f"{self._text!r:.200} is no pattern at character {place + 1}: {expected}")

    def _next(self, *kinds: str) -> str | None:
        """The next token where it is of one of these kinds; the text goes on behind it."""
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup not in kinds:
            return None
        self._at = match.end()
        return match[match.lastgroup or 0]

    def _mark(self, mark: str) -> bool:
        at = self._at
        if self._next("mark") == mark:
            return True
        self._at = at
        return False

    def end(self) -> None:
        """Refuse anything that follows."""
        if self._text[self._at :].strip():
            self.fail("nothing may follow the pattern")

    def argument(self) -> Call | Name:
        """A call or a name."""
        name = self._next("name")
        if name is None:
            self.fail("an operator or a name was expected")
            raise AssertionError
        if self._mark("("):
            return self._call(name)
        constant = False
        if self._mark(":"):
            if self._next("name") != "const":
                self.fail("only const may follow a colon")
            constant = True
        return Name(name, constant, self._mark("?"))

    def _call(self, name: str) -> Call:
        domain, _, op_type = name.rpartition("::")
        inputs: list[Call | Name] = []
        attributes: list[tuple[str, Name | Literal]] = []
        if self._mark(")"):
            return Call(op_type, domain, ())
        while True:
            at = self._at
            key = self._next("name")
            if key is not None and self._mark("="):
                attributes.append((key, self._value()))
            else:
                self._at = at
                inputs.append(self.argument())
            if self._mark(")"):
                return Call(op_type, domain, tuple(inputs), tuple(attributes))
            if not self._mark(","):
                self.fail("a comma or a closing parenthesis was expected")

    def _value(self) -> Name | Literal:
        literal = self._next("literal")
        if literal is not None:
            try:
                return Literal(ast.literal_eval(literal))
            except (ValueError, SyntaxError):
                self.fail(f"{literal} is no number, list or text")
        name = self._next("name")
        if name is None:
            self.fail("a value or a name was expected behind =")
        return Name(name or "")
