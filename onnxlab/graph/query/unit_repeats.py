"""Units in a row that are alike and follow one another: the blocks of one stage."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from onnxlab.ops import layer_operators

ALIKE = 0.7
"""Least share of operators that alike units have in common."""


@dataclass(slots=True, eq=False)
class Unit:
    """A part of a row, by its places.

    Attributes:
        ops: operators of the unit's nodes on the trunk.
        depthwise: number of convolutions with a group for each channel.
        halves: whether a node of the unit has strides, so that its output is smaller than its input.
    """

    places: list[int]
    ops: tuple[str, ...]
    depthwise: int = 0
    halves: bool = False

    @property
    def convolutions(self) -> int:
        """The number of convolutions in it."""
        return sum(op in layer_operators("convolution") for op in self.ops)

    @property
    def pools(self) -> bool:
        """Whether something in it pools, but for what pools all of a plane."""
        return any(op.endswith("Pool") and "Global" not in op for op in self.ops)


def repeats_of(units: Sequence[Unit | None]) -> list[list[int]]:
    """Places of like units that follow one another at one resolution; None stands for what is no group."""
    runs: list[list[int]] = []
    before: Unit | None = None
    for place, unit in enumerate(units):
        if unit is not None and before is not None and not unit.halves and _alike(unit, before):
            runs[-1].append(place)
        elif unit is not None:
            runs.append([place])
        before = unit
    return runs


def _alike(left: Unit, right: Unit) -> bool:
    """Whether two units have most of their operators in common."""
    ours, theirs = Counter(left.ops), Counter(right.ops)
    return (ours & theirs).total() >= ALIKE * max((ours | theirs).total(), 1)
