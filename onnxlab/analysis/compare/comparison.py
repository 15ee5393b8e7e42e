"""The values of two sides, pair by pair in the order in which they are made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from onnxlab.analysis.compare.error import Error
from onnxlab.argument_types import tolerance_of
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import suggestion

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """One pair of values.

    Attributes:
        a, b: names of both values.
        node: label of the node of the first model that makes it.
        b_node: label of the node of the second model, "" where the values were recorded.
        error: error of the second value against the first, errors of earlier nodes included.
        noise: relative difference up to which both agree: that which roundings explain (the measured one, or the
            least of the type), or a tolerance that was asked for.
        local: error of the second model's node on the first model's inputs, None where it was not requested.
    """

    a: str
    b: str
    node: str
    b_node: str
    error: Error
    noise: float
    local: Error | None = None

    @property
    def diverges(self) -> bool:
        """Whether roundings do not explain the difference."""
        return self.error.relative > self.noise

    @property
    def is_guilty(self) -> bool:
        """Whether its own node differs by more than roundings explain."""
        return self.local is not None and self.local.relative > self.noise


@dataclass(frozen=True, slots=True)
class Comparison(metaclass=ShortHelp):
    """The result of comparing values. True where something diverges.

    Attributes:
        entries: every pair, in the order in which the first model makes them.
        unpaired: names of the first model's values that the other side does not have.
        runs: how often each side was run.
        tolerance: relative difference up to which values agree; None: that which roundings explain.
    """

    entries: tuple[ComparedValue, ...]
    unpaired: tuple[str, ...] = ()
    runs: tuple[int, int] = (0, 0)
    tolerance: float | None = None

    def within(self, tolerance: float | None) -> Self:
        """Judge all pairs by a tolerance, relative to the largest magnitude of each value, in place of roundings."""
        if tolerance is None:
            return self
        most = tolerance_of(tolerance)
        entries = tuple(replace(entry, noise=most) for entry in self.entries)
        return replace(self, entries=entries, tolerance=most)

    def __bool__(self) -> bool:
        return any(entry.diverges for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[ComparedValue]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> ComparedValue:
        """The pair of a value of the first model, by its name."""
        for entry in self.entries:
            if entry.a == name:
                return entry
        raise KeyError(f"{name!r} was not compared.{suggestion(name, [entry.a for entry in self.entries])}")

    @property
    def first(self) -> ComparedValue | None:
        """The first pair that diverges, None where all agree.

        Examples:
            >>> onnxlab.compare(model, model).first is None
            True
        """
        return next((entry for entry in self.entries if entry.diverges), None)

    @property
    def guilty(self) -> list[ComparedValue]:
        """The pairs whose own node differs, the furthest off first; empty where local errors were not asked for.

        Examples:
            >>> other = onnxlab.load()
            >>> other.nodes["/stem/relu/Relu"].op_type = "Abs"
            >>> onnxlab.compare(model, other, local=True).guilty[0].node
            '/stem/relu/Relu'
        """
        entries = [entry for entry in self.entries if entry.is_guilty]
        return sorted(entries, key=lambda entry: -(entry.local.relative if entry.local else 0.0))

    def worst(self, count: int = 10) -> list[ComparedValue]:
        """Choose the pairs that are furthest apart.

        Args:
            count: how many.

        Returns:
            list[Entry]: the furthest first.

        Examples:
            >>> onnxlab.compare(model, model).worst(1)[0].error.equal
            True
        """
        return sorted(self.entries, key=lambda entry: -entry.error.relative)[:count]

    def __str__(self) -> str:
        """A sentence, and a table of the guilty or else of the worst pairs."""
        lines = [self._headline()]
        off = [entry for entry in self.worst(_SHOWN - 1) if entry.diverges]
        shown = self.guilty[:_SHOWN] or ([self.first, *off] if self.first else self.worst(3))
        if shown:
            lines.append(f"{'value':40} {'max/peak':>9} {'local':>9} {'SQNR dB':>8} {'cosine':>9} {'NaN':>5} first bad")
        for entry in dict.fromkeys(candidate for candidate in shown if candidate is not None):
            local = "" if entry.local is None else f"{entry.local.relative:.2e}"
            error = entry.error
            lines.append(
                f"{entry.a[-40:]:40} {error.relative:9.2e} {local:>9} {error.sqnr:8.1f} {error.cosine:9.6f} "
                f"{error.nan[1]:5} {list(error.first) if error.first else ''} {error.problem}".rstrip()
            )
        return printable_lines(lines)

    def _headline(self) -> str:
        first = self.first
        if first is None:
            unmade = sum(1 for entry in self.entries if entry.error.problem)
            left = f"; {unmade:,} that neither side can make" if unmade else ""
            bound = "their noise" if self.tolerance is None else f"{self.tolerance:g} of their peaks"
            return f"{len(self.entries) - unmade:,} values agree within {bound}{left}"
        guilty = f"; {self.guilty[0].node} is off by itself" if self.guilty else ""
        return f"{len(self.entries):,} values compared; they diverge first at {first.a}, made by {first.node}{guilty}"

    def as_dict(self) -> dict[str, Any]:
        """Give the comparison as JSON holds it; infinities and NaN are words.

        Returns:
            dict[str, Any]: all pairs.

        Examples:
            >>> onnxlab.compare(model, model).as_dict()["diverges"]
            False
        """
        return {
            "schema": "onnxlab/comparison/1",
            "diverges": bool(self),
            "first": self.first.a if self.first else None,
            "guilty": [entry.a for entry in self.guilty],
            "tolerance": self.tolerance,
            "runs": list(self.runs),
            "unpaired": list(self.unpaired),
            "values": [_entry(entry) for entry in self.entries],
        }

    def to_json(self) -> str:
        """Write the comparison as JSON.

        Returns:
            str: what `as_dict` gives.

        Examples:
            >>> onnxlab.compare(model, model).to_json()[:34]
            '{"schema": "onnxlab/comparison/1",'
        """
        return json.dumps(self.as_dict(), allow_nan=False)


def _entry(entry: ComparedValue) -> dict[str, Any]:
    row = {"a": entry.a, "b": entry.b, "node": entry.node, "noise": _number(entry.noise)}
    return {**row, "diverges": entry.diverges, **_error(entry.error)} | (
        {"local": _error(entry.local)} if entry.local is not None else {}
    )


def _error(error: Error) -> dict[str, Any]:
    numbers = {name: _number(getattr(error, name)) for name in ("peak", "largest", "relative", "sqnr", "cosine")}
    return {
        **numbers,
        "first": list(error.first),
        "nan": list(error.nan),
        "inf": list(error.inf),
        "problem": error.problem,
    }


def _number(number: float) -> float | str:
    return number if math.isfinite(number) else "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"


def with_local(entries: tuple[ComparedValue, ...], local: Mapping[str, Error | None]) -> tuple[ComparedValue, ...]:
    """The pairs with the errors of their own nodes, by name of the first model."""
    return tuple(replace(entry, local=local.get(entry.a)) for entry in entries)
