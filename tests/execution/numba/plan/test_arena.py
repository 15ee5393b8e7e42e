"""The layout of the arena."""

import random

import pytest

from onnxlab.execution.numba.plan import arena
from onnxlab.execution.numba.plan.views import ArenaBuffer


def laid_out(spans):
    buffers = [ArenaBuffer("arena", nbytes, first=first, last=last) for nbytes, first, last in spans]
    return buffers, arena.lay_out(buffers)


def alive(buffers):
    """Bytes that are alive at once, with their padding."""
    sizes = [(-(-buffer.nbytes // 64) + 1) * 64 for buffer in buffers]
    moments = range(max(buffer.last for buffer in buffers) + 1)
    return max(
        sum(size for size, buffer in zip(sizes, buffers, strict=True) if buffer.first <= moment <= buffer.last)
        for moment in moments
    )


def overlapping(buffers):
    return [
        (buffer, other)
        for number, buffer in enumerate(buffers)
        for other in buffers[:number]
        if buffer.first <= other.last and other.first <= buffer.last
        if buffer.offset < other.offset + other.nbytes and other.offset < buffer.offset + buffer.nbytes
    ]


@pytest.mark.parametrize("seed", range(40))
def test_buffers_that_are_alive_at_once_do_not_overlap(seed):
    chance = random.Random(seed)
    spans = [(chance.choice([0, 1, 64, 1000, 4096, 9999]), number, number + chance.randrange(12))
             for number in range(chance.randrange(1, 90))]  # fmt: skip
    buffers, total = laid_out(spans)
    assert overlapping(buffers) == []
    assert all(buffer.offset % 64 == 0 and buffer.offset + buffer.nbytes <= total for buffer in buffers)
    assert total >= alive(buffers)


def test_a_value_takes_the_memory_of_one_that_its_record_reads_last():
    buffers = [ArenaBuffer("arena", 3200, first=first, last=last) for first, last in [(0, 2), (2, 5), (5, 6), (1, 2)]]
    old, new, newest, other = buffers
    total = arena.lay_out(buffers, [(old, new), (new, newest)])
    assert old.offset == new.offset == newest.offset != other.offset
    assert [buffer.is_replaced for buffer in buffers] == [True, True, False, False]
    assert total == alive([old, other])
    arena.lay_out(buffers)  # the same pieces in a plan that reads the values later
    assert not any(buffer.is_replaced for buffer in buffers)


@pytest.mark.parametrize(("nbytes", "last"), [(3200, 3), (3264, 2)])
def test_a_value_that_is_read_later_or_of_another_size_keeps_its_memory(nbytes, last):
    old, new = ArenaBuffer("arena", nbytes, first=0, last=last), ArenaBuffer("arena", 3200, first=2, last=5)
    arena.lay_out([old, new], [(old, new)])
    assert overlapping([old, new]) == []
    assert not old.is_replaced
