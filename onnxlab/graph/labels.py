"""Labels that order things for life: numbers with gaps, so that something fits between two neighbours.

A position in a repeated field changes with every insertion before it; a label does not, and becomes a position by
bisection of the sorted labels.
"""

GAP = 1 << 32
"""Distance between the labels of neighbours in a file just read."""


def spread(count: int) -> list[int]:
    """Labels for `count` things in their order."""
    return list(range(GAP, GAP * (count + 1), GAP))


def label_at(labels: list[int], position: int) -> int:
    """A label for something to be put at `position` of the sorted `labels`, 0 where the gap there is used up."""
    low = labels[position - 1] if position else 0
    high = labels[position] if position < len(labels) else low + 2 * GAP
    return (low + high) // 2 if high - low >= 2 else 0
