"""Labels that order things for life: numbers with gaps, so that something fits between two neighbors.

A position in a repeated field changes with every insertion before it; a label does not. A bisection of the sorted
labels finds the position of a label.
"""

GAP = 1 << 32
"""Distance between the labels of neighbors in a file just read."""


def spread(count: int) -> list[int]:
    """Labels for `count` things in their order."""
    return list(range(GAP, GAP * (count + 1), GAP))


def label_between(low: int, high: int | None) -> int:
    """A label above `low` and, unless that is None, below `high`; 0 where the gap between them is used up."""
    high = low + 2 * GAP if high is None else high
    return (low + high) // 2 if high - low >= 2 else 0
