"""The order of a run that keeps nothing: the file's, or one in which less is alive at once where that saves much.

Any topological order makes the same values, but the order decides how many of them are alive at the same time. The
other order is found greedily: of the steps that can run, the next is the one that adds the least memory, after
subtracting the values that it is the last to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

from onnxlab.execution.base import background
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Step
from onnxlab.execution.planning.passes.pass_list import StepList, StepPass

WORTHWHILE = 0.9
"""Share of the file's peak below which another order is taken."""

_SMALL = 1 << 23  # peak bytes below which no other order is looked for
_MANY = 4096  # steps beyond which looking for an order takes too long

Sizes = Callable[[str], int | None]


class ByLiveness(StepPass):
    """Steps in an order in which less is alive at once."""

    order = 100  # last, on the steps that other passes leave

    def run(self, draft: StepList) -> Sequence[Step]:
        """The steps in the order in which they are given, or in one that needs clearly less memory."""
        return by_liveness(draft.steps, draft.outputs, draft.nbytes)


def by_liveness(steps: Sequence[Step], outputs: Iterable[str], nbytes: Sizes) -> list[Step]:
    """The steps, in the order in which they are given or in one that needs clearly less memory.

    Args:
        steps: in an order in which they can run.
        outputs: names that stay alive to the end.
        nbytes: gives the bytes of a value, None where they are not known: the order then stays.
    """
    original = list(steps)
    sizes = _sizes(original, nbytes) if len(original) <= _MANY else None
    if sizes is None:
        return original
    ends = frozenset(outputs)
    before = peak(original, ends, sizes)
    if before < _SMALL:
        return original
    reordered = _greedy(original, ends, sizes)
    return reordered if peak(reordered, ends, sizes) <= WORTHWHILE * before else original


def _sizes(steps: Sequence[Step], nbytes: Sizes) -> dict[str, int] | None:
    """{name: bytes} of what the steps make; None where a size is not known."""
    sizes = {name: nbytes(name) if name and step.constants is None else 0
             for step in paced(steps) for name in step.outputs}  # fmt: skip
    known = {name: size for name, size in sizes.items() if size is not None}
    return known if len(known) == len(sizes) else None


def _readers(steps: Sequence[Step], sizes: Mapping[str, int]) -> dict[str, set[int]]:
    """{name: numbers of the steps that read it}, of values that steps make."""
    readers: dict[str, set[int]] = {name: set() for name in sizes}
    for number, step in enumerate(paced(steps)):
        for name in (*step.inputs, *step.captures):
            if name in readers:
                readers[name].add(number)
    return readers


def peak(steps: Sequence[Step], ends: frozenset[str], sizes: Mapping[str, int]) -> int:
    """Bytes of values alive at once at most, in this order."""
    last = {name: max(users) for name, users in _readers(steps, sizes).items() if users and name not in ends}
    alive = most = 0
    for number, step in enumerate(paced(steps)):
        alive += sum(sizes[name] for name in step.outputs)
        most = max(most, alive)
        gone = {name for name in (*step.inputs, *step.captures) if last.get(name) == number}
        gone.update(name for name in step.outputs if name not in last and name not in ends)
        alive -= sum(sizes[name] for name in gone)
    return most


def _greedy(steps: Sequence[Step], ends: frozenset[str], sizes: Mapping[str, int]) -> list[Step]:
    """The steps by a greedy search: the runnable one that adds least comes next; impure steps keep their order."""
    readers = _readers(steps, sizes)
    maker = {name: number for number, step in enumerate(steps) for name in step.outputs if name}
    needs = [{maker[name] for name in (*step.inputs, *step.captures) if name in maker} for step in paced(steps)]
    impure = [number for number, step in enumerate(steps) if not step.pure]
    for earlier, later in pairwise(impure):
        needs[later].add(earlier)
    sorter = TopologicalSorter(dict(enumerate(needs)))
    sorter.prepare()
    ready, order = set(sorter.get_ready()), []
    while ready:
        background.rest()
        number = min(
            ready, key=lambda candidate: (_added(candidate, steps[candidate], readers, ends, sizes), candidate)
        )
        ready.remove(number)
        order.append(steps[number])
        for name in (*steps[number].inputs, *steps[number].captures):
            readers.get(name, set()).discard(number)
        sorter.done(number)
        ready.update(sorter.get_ready())
    return order


def _added(
    number: int, step: Step, readers: Mapping[str, set[int]], ends: frozenset[str], sizes: Mapping[str, int]
) -> int:
    """Bytes that a step makes, less those of values that it is the last to read."""
    read = {name for name in (*step.inputs, *step.captures) if name in readers and name not in ends}
    freed = sum(sizes[name] for name in read if readers[name] == {number})
    return sum(sizes[name] for name in step.outputs) - freed
