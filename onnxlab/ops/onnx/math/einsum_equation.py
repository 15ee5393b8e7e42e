"""The equation of an Einsum: the letters of each operand's axes and of the result's.

Source: https://onnx.ai/onnx/operators/onnx__Einsum.html
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Term:
    """The axes of one operand or of the result: letters before and after what an ellipsis stands for."""

    head: str
    dots: bool
    tail: str

    @property
    def letters(self) -> str:
        """The term's letters, the ellipsis left out."""
        return self.head + self.tail

    def __str__(self) -> str:
        return self.head + "..." * self.dots + self.tail

    def fits(self, rank: int) -> bool:
        """Whether an operand of that rank fits the term."""
        return len(self.letters) <= rank if self.dots else len(self.letters) == rank


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation taken apart: a term for each operand and one for the output."""

    operands: tuple[Term, ...]
    output: Term


@lru_cache(maxsize=1024)
def read(equation: str) -> Equation:
    """The equation with its output, which is implied where there is no arrow.

    The implied output has an ellipsis where an operand has one, then the letters that occur once, in the order of the
    alphabet.
    """
    left, arrow, right = "".join(equation.split()).partition("->")
    operands = tuple(map(_term, left.split(",")))
    if arrow:
        return Equation(operands, _term(right))
    letters = "".join(term.letters for term in operands)
    once = "".join(sorted(letter for letter in letters if letters.count(letter) == 1))
    dots = any(term.dots for term in operands)
    return Equation(operands, Term("", True, once) if dots else Term(once, False, ""))


def _term(text: str) -> Term:
    head, dots, tail = text.partition("...")
    return Term(head, bool(dots), tail)
