"""Patterns of nodes as text, such as `Add(MatMul(a, w:const), c:const)`; a text that is none is refused with the place.

    Operator(argument, …)   a node; `domain::Operator(…)`; `A|B(…)` is of either operator
    name                    any value, the same one wherever the name comes again
    name:const              what a name is asked for: `const`, `once` (nothing else reads it), element types (`float32`,
                            `float16|float32`, `float` and `int` of any size, `bool`), a shape (`[n, ?, 4]`, `[..., n]`)
    name?                   an input that may be absent
    *name                   all inputs that follow
    0.5, [0, -1]            a value that is known to be this number everywhere, or this list
    attribute=3             an attribute that must have a value, by default too: 3, 0.5, "text", [1, 2], none
    attribute=name          an attribute that is bound
    [Operator](x, y)        the node, or x alone where it is missing
    ~Operator(…)            a node that stays, so that others may read it
    name := Operator(…)     a node whose value is called so where it comes again
    Operator(…).1           its second output
    name.1                  the second output of a node whose value is called so
    pattern or pattern      one of several ways of writing it

Operands of operators that commute match in either order. What is inside of a pattern must be read by nothing else.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NoReturn

from onnxlab.argument_types import expect
from onnxlab.errors import TransformError
from onnxlab.graph.query.patterns.syntax_tree import (
    Argument,
    Literal,
    Name,
    NodeOutput,
    NodePattern,
    Number,
    Rest,
    element_types,
)

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<literal>"[^"]*"|'[^']*'|-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"""
    r"""|(?P<name>[A-Za-z_][\w.\-]*::\w+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"""
    r"""|(?P<mark>:=|=>|\.\.\.|[(),=?:*\[\]~|.]))"""
)
_OPERATOR: Final = re.compile(r"(?:[A-Za-z_][\w.\-]*::\w+|[A-Za-z_]\w*)")
MOST_WAYS: Final = 256
"""Most alternatives of one text: every optional operator doubles their number."""

Attribute = tuple[str, Name | Literal]


def parse_rule(text: str) -> tuple[tuple[NodePattern, ...], NodePattern | Name]:
    """The patterns before a `=>`, and what takes their place behind it.

    Raises:
        TransformError: the text is no rule; the message shows the place of the error.
    """
    parser = _Parser(text)
    ways = parser.ways()
    parser.expect("=>", "=> and what takes the place of the pattern were expected")
    replacement = parser.argument()
    parser.end()
    if len(replacement) != 1 or not isinstance(replacement[0], NodePattern | Name):
        parser.fail("one operator or one name takes the place of a pattern", 0)
    return ways, replacement[0]


def is_operator(domain: str, op_type: str) -> bool:
    """Whether a pattern can be written of an operator."""
    return _OPERATOR.fullmatch(f"{domain}::{op_type}" if domain else op_type) is not None


def parse(text: str) -> tuple[NodePattern, ...]:
    """The patterns that a text means: several where it has optional operators or says `or`.

    Raises:
        TransformError: the text is no pattern; the message shows the place of the error.
    """
    parser = _Parser(text)
    ways = parser.ways()
    parser.end()
    return ways


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = expect(text, str, "a pattern", "a text, as 'Relu(Add(x, y))'")
        self._at = 0

    # -- tokens -----------------------------------------------------------------------------------------------------

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise TransformError with the place."""
        place = self._at if at is None else at
        while place < len(self._text) and self._text[place].isspace():
            place += 1
        raise TransformError(f"{self._text!r:.200} is no pattern at character {place + 1}: {expected}")

    def _next(self, kind: str) -> str | None:
        """The next token where it is of a kind; the text goes on behind it."""
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup != kind:
            return None
        self._at = match.end()
        return match[kind]

    def _mark(self, mark: str) -> bool:
        at = self._at
        if self._next("mark") == mark:
            return True
        self._at = at
        return False

    def _word(self, word: str) -> bool:
        at = self._at
        if self._next("name") == word:
            return True
        self._at = at
        return False

    def expect(self, mark: str, otherwise: str) -> None:
        """Go on behind a mark, or fail."""
        if not self._mark(mark):
            self.fail(otherwise)

    def end(self) -> None:
        """Refuse anything that follows."""
        if self._text[self._at :].strip():
            self.fail("nothing may follow the pattern")

    # -- pieces -----------------------------------------------------------------------------------------------------

    def ways(self) -> tuple[NodePattern, ...]:
        """Patterns, with `or` between them."""
        calls: list[NodePattern] = []
        while True:
            at = self._at
            for argument in self.argument():
                if not isinstance(argument, NodePattern):
                    self.fail("a pattern begins with an operator, as in Add(a, b)", at)
                calls.append(argument)
            if not self._word("or"):
                return tuple(calls)

    def argument(self) -> list[Argument]:
        """The choices for an input; several where operators in it are optional."""
        if self._mark("*"):
            return [Rest(self._name("a name was expected behind *"))]
        if self._mark("~"):
            return self._calls(self._name("an operator was expected behind ~"), stays=True)
        if self._mark("["):
            return self._in_brackets()
        literal = self._next("literal")
        if literal is not None:
            return [Number(ast.literal_eval(literal))]
        name = self._name("an operator, a name or a number was expected")
        if self._mark(":="):
            at = self._at
            arguments = self.argument()
            if not all(isinstance(argument, NodePattern) for argument in arguments):
                self.fail("an operator was expected behind :=", at)
            return [replace(argument, name=name) for argument in arguments if isinstance(argument, NodePattern)]
        if self._mark("(") or self._mark("|"):
            self._at -= 1
            return self._calls(name)
        if self._mark("."):
            return [NodeOutput(name, self._output())]
        return [self._value_name(name)]

    def _name(self, otherwise: str) -> str:
        name = self._next("name")
        if name is None:
            self.fail(otherwise)
        return name

    def _value_name(self, name: str) -> Name:
        argument = Name(name)
        if self._mark(":"):
            argument = self._asked(argument)
        return replace(argument, optional=self._mark("?"))

    def _asked(self, argument: Name) -> Name:
        """The name with the constraint behind its colon."""
        start = self._at
        while True:
            at = self._at
            if self._mark("["):
                argument = replace(argument, dims=tuple(self._dims()))
            elif (word := self._next("name")) is None:
                break
            elif word == "or":
                self._at = at
                break
            elif word == "const":
                argument = replace(argument, constant=True)
            elif word == "once":
                argument = replace(argument, once=True)
            else:
                argument = replace(argument, types=(*argument.types, self._type(word, at)))
                while self._mark("|"):
                    at = self._at
                    argument = replace(
                        argument, types=(*argument.types, self._type(self._name("a type was expected"), at))
                    )
        if self._at == start:
            self.fail("const, once, an element type or a shape may follow a colon")
        return argument

    def _type(self, word: str, at: int) -> str:
        try:
            element_types(word)
        except (ValueError, TypeError):
            self.fail(f"const, once, an element type or a shape may follow a colon, not {word}", at)
        return word

    def _dims(self) -> Iterable[Any]:
        while not self._mark("]"):
            if self._mark("?"):
                yield "?"
            elif self._mark("..."):
                yield "..."
            elif (literal := self._next("literal")) is not None and literal.lstrip("-").isdigit():
                yield int(literal)
            else:
                yield self._name("a size, a name, ? or ... was expected")
            if not self._mark(","):
                self.expect("]", "a comma or ] was expected")
                return

    def _in_brackets(self) -> list[Argument]:
        """A list of numbers, or an operator that may be missing."""
        start = self._at - 1
        name = self._next("name")
        if name is None:
            return [Number(self._numbers(start))]
        self.expect("]", "] was expected behind an operator that may be missing")
        at = self._at
        calls = self._calls(name)
        inner = [call.inputs[0] for call in calls if call.inputs]
        if not inner:
            self.fail("an operator that may be missing needs an input that stands for it", at)
        return [*calls, *dict.fromkeys(inner)]

    def _numbers(self, start: int) -> list[Any]:
        numbers = []
        while not self._mark("]"):
            literal = self._next("literal")
            if literal is None:
                self.fail("a number was expected")
            numbers.append(ast.literal_eval(literal))
            if not self._mark(","):
                self.expect("]", "a comma or ] was expected")
                break
        return numbers

    def _calls(self, name: str, stays: bool = False) -> list[Any]:
        """The nodes that a call stands for: one for each choice of what it reads."""
        domain, _, op_type = name.rpartition("::")
        op_types = [op_type]
        while self._mark("|"):
            op_types.append(self._name("an operator was expected behind |"))
        self.expect("(", "( was expected")
        inputs, attributes = self._arguments()
        output = self._output() if self._mark(".") else 0
        ways = list(product(*inputs))
        if len(ways) > MOST_WAYS:
            self.fail(f"it stands for {len(ways)} ways of writing, {MOST_WAYS} at most are tried")
        return [NodePattern(tuple(op_types), domain, way, tuple(attributes), "", stays, output) for way in ways]

    def _output(self) -> int:
        literal = self._next("literal") or "x"
        if not literal.isdigit():
            self.fail("the number of an output was expected behind .")
        return int(literal)

    def _arguments(self) -> tuple[Sequence[list[Argument]], list[Attribute]]:
        inputs: list[list[Argument]] = []
        attributes: list[Attribute] = []
        if self._mark(")"):
            return inputs, attributes
        while True:
            at = self._at
            key = self._next("name")
            if key is not None and self._mark("="):
                attributes.append((key, self._attribute()))
            else:
                self._at = at
                inputs.append(self.argument())
            if self._mark(")"):
                return inputs, attributes
            self.expect(",", "a comma or a closing parenthesis was expected")

    def _attribute(self) -> Name | Literal:
        literal = self._next("literal")
        if literal is not None:
            return Literal(ast.literal_eval(literal))
        if self._mark("["):
            return Literal(self._numbers(self._at - 1))
        name = self._name("a value or a name was expected behind =")
        return Literal(None) if name == "none" else Name(name)
