"""Borders between units of a model: pure functions of positions and operators.

A row of nodes is cut where a single value is live: at the residual stream, between two convolutions in a chain. Each
occurrence of a repeated sequence (attention, MLP, attention, MLP) becomes one unit.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

HORIZONS = (1 << 30, 400, 200, 100, 50, 25)
"""Candidates for the most places that a value may live and still prevent a cut; the largest that leaves no unit too
long is taken. Skip connections and masks live longer than the units that they pass."""
LEAST_LENGTH, SHARE = 60, 6
"""A unit is too long when it has more than LEAST_LENGTH places and more than 1 / SHARE of the row."""
BROADCAST = 3
"""Readers from which on a value that lives beyond the horizon counts as read everywhere, not as a skip connection."""


def narrow_places(readers: Sequence[Sequence[int]], inputs: Sequence[Sequence[int]] = ()) -> list[int]:
    """Return where units start, 0 first.

    Args:
        readers: ascending places of the readers of each place.
        inputs: ascending places of the readers of each value from outside.
    """
    held = [*enumerate(readers), *((places[0], places[1:]) for places in inputs if places)]
    starts = [0]
    for horizon in HORIZONS:
        starts = _starts(held, len(readers), horizon)
        longest = max(
            (after - start for start, after in zip(starts, [*starts[1:], len(readers)], strict=True)), default=0
        )
        if longest <= max(LEAST_LENGTH, len(readers) // SHARE):
            break
    return starts


def _starts(held: Sequence[tuple[int, Sequence[int]]], length: int, horizon: int) -> list[int]:
    change = [0] * (length + 1)
    for place, ends in held:
        near = [end for end in ends if end - place <= horizon]
        if not near or (len(ends) >= BROADCAST and ends[-1] - place > horizon):
            continue
        change[place + 1] += 1
        change[near[-1] + 1] -= 1
    starts, live = [0], 0
    for place in range(1, length):
        live += change[place]
        if live <= 1:
            starts.append(place)
    return starts


@dataclass(frozen=True, slots=True)
class Pattern:
    """Kinds that follow each other again and again."""

    kinds: tuple[Hashable, ...]
    times: int

    def turned(self, by: int) -> "Pattern":
        """The same repetition, begun `by` kinds later."""
        return Pattern(self.kinds[by:] + self.kinds[:by], self.times)


MAX_PERIOD = 12
LEAST_TIMES = 3


def repeated(kinds: Sequence[Hashable]) -> Pattern | None:
    """The shortest sequence of two kinds or more that covers most of a row by repeating itself at least three times."""
    best: Pattern | None = None
    covered = 0
    for period in range(2, min(MAX_PERIOD, len(kinds) // LEAST_TIMES) + 1):
        place = 0
        while place + period * LEAST_TIMES <= len(kinds):
            times = 1
            unit = tuple(kinds[place : place + period])
            while tuple(kinds[place + times * period : place + (times + 1) * period]) == unit:
                times += 1
            if times >= LEAST_TIMES and len(set(unit)) > 1 and times * period > covered:
                best, covered = Pattern(unit, times), times * period
            place += max(1, (times - 1) * period) if times >= LEAST_TIMES else 1
    return best


def joined(kinds: Sequence[Hashable], pattern: Pattern) -> list[int]:
    """The starts of units when every occurrence of a pattern is one, by place in `kinds`."""
    starts, place, period = [], 0, len(pattern.kinds)
    while place < len(kinds):
        starts.append(place)
        place += period if tuple(kinds[place : place + period]) == pattern.kinds else 1
    return starts
