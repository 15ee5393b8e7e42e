"""Shape rules that fit on a line: the inputs' dims by letters, the outputs' dims by what they are.

    law("MatMulNBitsMlp", "..., ? -> 0: ..., @N | 0")

The inputs stand before the arrow, the outputs after it, both separated by "|". In an input, a letter is a dim, "?" a
dim that does not matter, "..." any number of dims; "=L" is the one element of a scalar, "=Y, X" the elements of a
vector; an empty input is not read.

An output is "type: dims", or the number of an input whose type and shape the output has. A type is the number of an
input, a name or an attribute; of several, as in "@to/float32", the first one that is known counts. Dims are letters,
numbers, "?", "@attribute" or expressions of these. The attribute of "@?attribute" may be absent, or below 0.

What is unknown of the inputs is unknown in the outputs; there, the same letter is the same unknown dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import Attributes, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, elem_type, is_size, items, same
from onnxlab.shapes import UNKNOWN, Dim, Expr, Fact, Shape, TensorFact, parse, substitute

MICROSOFT = "com.microsoft"
_REST = "..."
_NEEDED, _MAYBE = "needed.", "maybe."
"""Replacements of "@" and "@?", with which no name may begin."""


@dataclass(slots=True)
class _Bindings:
    """Bindings of a law's letters and attributes for one node; `rest` is bound to "..."."""

    context: InferContext
    attributes: Attributes
    dims: dict[str, Dim] = field(default_factory=dict)
    rest: Shape | None = None

    def bind(self, letter: str, dim: Dim) -> None:
        if letter != "?":
            self.dims[letter] = same(self.dims[letter], dim) if letter in self.dims else dim

    def value(self, name: str) -> Dim | None:
        """The dim that a letter or an attribute stands for. Raises KeyError for an attribute that is missing."""
        if name.startswith(_NEEDED):
            value = self.attributes[name.removeprefix(_NEEDED)]
        elif name.startswith(_MAYBE):
            value = self.attributes.get(name.removeprefix(_MAYBE))
        else:
            return self.dims.get(name)
        return value if isinstance(value, int) and value >= 0 else None

    def dim(self, term: str, slot: int, axis: int) -> Dim:
        if term.isdigit():
            return int(term)
        unknown = self.context.symbol(slot, axis)
        if term == "?":
            return unknown
        written = parse(term)
        assert isinstance(written, Expr)
        values = {name: self.value(name) for name in written.symbols}
        known = {name: value for name, value in values.items() if value is not None}
        if len(known) == len(values):
            return substitute(written, known)
        if len(term) == 1:
            self.dims[term] = unknown
        return unknown


@dataclass(frozen=True, slots=True)
class Law:
    """A law's text, taken apart.

    Attributes:
        inputs: for each input, its terms.
        outputs: for each output, the sources of its type, and its terms; None for the dims of that input.
    """

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[tuple[str, ...], tuple[str, ...] | None], ...]

    def __call__(self, ctx: InferContext, attributes: Attributes, *facts: MaybeFact) -> tuple[Fact, ...]:
        """Facts of the outputs."""
        bindings = _Bindings(ctx, attributes)
        for terms, fact in zip(self.inputs, facts, strict=False):
            if fact is not None:
                _read(bindings, terms, fact)
        return tuple([_made(bindings, slot, *output, facts) for slot, output in enumerate(self.outputs)])


def _read(bindings: _Bindings, terms: Sequence[str], fact: Fact) -> None:
    """Bind the letters of an input; where its rank is not that of the terms, they stay unknown."""
    if terms and terms[0].startswith("="):
        for letter, element in zip((terms[0][1:], *terms[1:]), items(fact) or (), strict=False):
            if element is not None and is_size(element):
                bindings.bind(letter, element)
        return
    shape, before = fact.shape, terms.index(_REST) if _REST in terms else len(terms)
    after = len(terms) - before - 1
    if shape is None or (len(shape) < len(terms) - 1 if after >= 0 else len(shape) != len(terms)):
        return
    for letter, dim in zip(terms[:before], shape, strict=False):
        bindings.bind(letter, dim)
    if after >= 0:
        end = len(shape) - after
        if bindings.rest is None:
            bindings.rest = shape[before:end]
        for letter, dim in zip(terms[before + 1 :], shape[end:], strict=True):
            bindings.bind(letter, dim)


def _made(
    bindings: _Bindings, slot: int, kinds: Sequence[str], terms: Sequence[str] | None, facts: Sequence[MaybeFact]
) -> Fact:
    if terms is None:
        fact = facts[int(kinds[0])] if int(kinds[0]) < len(facts) else None
        return UNKNOWN if fact is None else fact.bare
    elem = next(filter(None, (_kind(bindings, kind, facts) for kind in kinds)), 0)
    if _REST not in terms:
        return TensorFact(elem, tuple([bindings.dim(term, slot, axis) for axis, term in enumerate(terms)]))
    if bindings.rest is None:
        return TensorFact(elem)
    at, shape = terms.index(_REST), list(bindings.rest)
    first = [bindings.dim(term, slot, axis) for axis, term in enumerate(terms[:at])]
    count = len(first) + len(shape)
    last = [bindings.dim(term, slot, axis) for axis, term in enumerate(terms[at + 1 :], count)]
    return TensorFact(elem, (*first, *shape, *last))


def _kind(bindings: _Bindings, kind: str, facts: Sequence[MaybeFact]) -> int:
    """The element type that a word means, 0 where it is not known."""
    if kind.isdigit():
        return elem_type(facts[int(kind)]) if int(kind) < len(facts) else 0
    return int(bindings.attributes.get(kind[1:]) or 0) if kind.startswith("@") else dtypes.parse(kind)


def parsed(text: str) -> Law:
    """A law from its text."""
    inputs, outputs = text.split("->")
    return Law(
        tuple(tuple(_terms(term_texts)) for term_texts in inputs.split("|")),
        tuple(_output(output_text) for output_text in outputs.split("|")),
    )


def _output(text: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    kinds, colon, dims = text.strip().partition(":")
    return tuple(kinds.split("/")), tuple(_terms(dims)) if colon else None


def _terms(text: str) -> list[str]:
    written = text.replace("@?", _MAYBE).replace("@", _NEEDED)
    return [term.strip() for term in written.split(",") if term.strip()]


def law(op_types: str, text: str, domain: str = MICROSOFT) -> None:
    """Register a law as the shape rule of operators, named with spaces between, from version 1 on."""
    rule(op_types, domain=domain)(parsed(text))
