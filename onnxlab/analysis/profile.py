"""Profiles of a run: seconds, bytes and floating-point operations of every node.

    print(profile(runner, feeds))

Operations are counted from the shapes of the run itself: two for each multiplication with an addition, one for each
element elsewhere. The counts say how much there is to do, not how it is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxlab.analysis.flops import flops
from onnxlab.argument_types import expect
from onnxlab.execution.base import background
from onnxlab.execution.planning.programs import Programs
from onnxlab.execution.program.call import Call, Progress
from onnxlab.execution.program.executor import NodeContext
from onnxlab.execution.program.program import Instruction
from onnxlab.execution.program.run_observers import StepCounter
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.snapshot import NodeView, SnapshotAttributes
from onnxlab.graph.index.records import NodeRecord
from onnxlab.limits import Limits, format_bytes
from onnxlab.printable import printable_lines

_ATTEMPTS = 6
"""Runs after which parts that are still not compiled are no longer waited for."""


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """One node's share of a run.

    Attributes:
        node: its id, 0 for a part of several that a provider compiled and does not time inside.
        seconds: of the fastest of the runs; nodes that run as one step share its time by their operations.
        read, written: bytes of its inputs and outputs.
        flops: floating-point operations, estimated.
        shapes: of its outputs, as "float32[1,64]".
        provider: its name.
        together: how many nodes run as one step, this one among them.
    """

    node: int
    label: str
    op: str
    seconds: float
    read: int
    written: int
    flops: int
    shapes: tuple[str, ...]
    provider: str = "numpy"
    together: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """A run, node by node in the order in which they ran."""

    entries: tuple[NodeProfile, ...]
    runs: int

    @property
    def seconds(self) -> float:
        """Of all nodes together."""
        return sum(entry.seconds for entry in self.entries)

    @property
    def flops(self) -> int:
        """The floating-point operations of one run, all nodes together."""
        return sum(entry.flops for entry in self.entries)

    def slowest(self, count: int = 10) -> list[NodeProfile]:
        """The nodes that took longest, the longest first."""
        return sorted(self.entries, key=lambda entry: -entry.seconds)[:count]

    def by_operator(self) -> dict[str, tuple[int, float]]:
        """{operator: (nodes, seconds)}, the longest first."""
        count, seconds = Counter(entry.op for entry in self.entries), Counter[str]()
        for entry in self.entries:
            seconds[entry.op] += entry.seconds  # type: ignore[assignment]
        return {op: (count[op], float(spent)) for op, spent in seconds.most_common()}

    def __str__(self) -> str:
        """Two tables: of operators and of the slowest nodes."""
        whole = self.seconds or 1.0
        by = ", ".join(dict.fromkeys(entry.provider for entry in self.entries)) or "none"
        lines = [
            f"{len(self.entries)} nodes by {by}, {format_seconds(self.seconds)}, {format_count(self.flops)}FLOP, "
            f"fastest of {self.runs} runs"
        ]
        lines.append(f"{'operator':32} {'nodes':>6} {'time':>9} {'share':>6}")
        for op, (nodes, spent) in list(self.by_operator().items())[:12]:
            lines.append(f"{op[:32]:32} {nodes:6} {format_seconds(spent):>9} {spent / whole:6.1%}")
        lines.append(f"{'node':40} {'time':>9} {'read':>9} {'written':>9} {'FLOP':>8} {'per s':>9}")
        for entry in self.slowest():
            rate = format_count(int(entry.flops / entry.seconds)) if entry.seconds else ""
            also = f"  with {entry.together - 1} more" if entry.together > 1 else ""
            lines.append(
                f"{entry.label[-40:]:40} {format_seconds(entry.seconds):>9} {format_bytes(entry.read):>9} "
                f"{format_bytes(entry.written):>9} {format_count(entry.flops):>8} {rate:>9}  "
                f"{', '.join(entry.shapes)}{also}"
            )
        return printable_lines(lines)


def profile(
    runner: Runner,
    feeds: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    runs: int = 3,
    limits: Limits | None = None,
    progress: Progress | None = None,
    seed: int | None = None,
    by: Programs | None = None,
) -> Profile:
    """Run a few times, step by step, and keep the fastest time of each node. Values are not kept.

    Args:
        feeds, outputs, limits, progress, seed: as of `Runner.run`; missing inputs are made up.
        runs: how often; the first one also compiles and reads weights.
        by: programs of other providers than the runner's own. The profile waits until their code is compiled; a run
            node by node finds what nodes read, write and compute.

    Raises:
        ValueError: fewer than one run; and what `Runner.run` raises.
    """
    runs = expect(runs, int, "runs", "a whole number from 1 on")
    if runs < 1:
        raise ValueError(f"runs is {runs}: at least one is needed")
    samples = runner.sample_inputs(feeds) if feeds is not None or not runner.last_inputs() else None
    turns = [runner.programs, *[by] * runs] if by is not None else [runner.programs] * runs
    nodes: dict[int, NodeProfile] = {}
    best: list[NodeProfile] = []
    for turn, programs in enumerate(turns):
        call = Call(limits, _part(progress, turn, len(turns)), seed, programs.threads)
        watch = _Watch(call, nodes, runner.graph.nodes)
        runner.observed(watch, samples, call, outputs, programs)
        if by is not None and turn == 0:
            nodes.update((entry.node, entry) for entry in watch.entries)
            _compile(runner, samples, outputs, limits, by)
            continue
        before = best if len(best) == len(watch.entries) else watch.entries
        best = [new if new.seconds < old.seconds else old for new, old in zip(watch.entries, before, strict=True)]
    return Profile(tuple(best), runs)


def _compile(
    runner: Runner, feeds: Mapping[str, Any] | None, outputs: Sequence[str] | None, limits: Limits | None, by: Programs
) -> None:
    """Run until nothing is left to be compiled: a run asks for what the one before could not have."""
    for _ in range(_ATTEMPTS):
        runner.run(feeds, outputs, keep=False, limits=limits, by=by)
        if background.wait(0):
            return
        background.wait(None if limits is None or limits.deadline is None else limits.deadline)


def _part(progress: Progress | None, turn: int, runs: int) -> Progress | None:
    """Progress of one run as that of all."""
    if progress is None:
        return None
    return lambda done, total, label: progress(turn * total + done, runs * total, label)


class _Watch(StepCounter):
    """An observer that makes an entry for every node.

    Args:
        call: the run.
        nodes: {node id: what it reads, writes and computes}, for those that a provider compiled.
        records: the nodes of the model.
    """

    def __init__(self, call: Call, nodes: Mapping[int, NodeProfile], records: Mapping[int, NodeRecord]) -> None:
        super().__init__(call.position)
        self.entries: list[NodeProfile] = []
        self._run = call.run
        self._nodes = nodes
        self._records = records

    def done(self, instruction: Instruction, frame: list[Any], seconds: float) -> Iterable[int]:
        provider, inside = instruction.step.op, list[NodeProfile]()
        for nodes, share in self._shares(instruction, frame):
            entries = [self._inside(node) for node in nodes]
            whole = sum(entry.flops for entry in entries)
            parts = [entry.flops / whole if whole else 1 / len(entries) for entry in entries]
            inside += [
                replace(entry, seconds=seconds * share * part, provider=provider, together=len(nodes))
                for entry, part in zip(entries, parts, strict=True)
            ]
        self.entries += inside or [_entry(instruction, frame, seconds, self._records)]
        return super().done(instruction, frame, seconds)

    def _shares(self, instruction: Instruction, frame: list[Any]) -> Sequence[tuple[tuple[NodeView, ...], float]]:
        """The nodes of a compiled part that run as one step, and their part of its time; none of other steps."""
        part = instruction.step.part
        if part is None or part.shares is None:
            return ()
        context = NodeContext(self._run, instruction, frame)
        try:
            return part.shares(context, *[frame[slot] for slot in instruction.reads])
        finally:
            context.release()

    def _inside(self, node: NodeView) -> NodeProfile:
        known = self._nodes.get(node.id)
        if known is not None:
            return known
        op = f"{node.domain}::{node.op_type}" if node.domain else node.op_type  # of a function that is called
        return NodeProfile(node.id, node.label, op, 0.0, 0, 0, 0, ())


def _entry(
    instruction: Instruction, frame: list[Any], seconds: float, records: Mapping[int, NodeRecord]
) -> NodeProfile:
    """The entry of one step, when it has been called."""
    step = instruction.step
    inputs = [frame[slot] for slot in instruction.reads]
    outputs = [frame[slot] for slot in instruction.results if slot > 0]
    arrays = [array for array in outputs if isinstance(array, np.ndarray)]
    record = records.get(step.node)  # None where an edit took it out meanwhile
    return NodeProfile(
        step.node,
        step.label,
        step.op,
        seconds,
        sum(_nbytes(value) for value in inputs),
        sum(_nbytes(value) for value in outputs),
        flops(step.op, inputs, outputs, {} if record is None else SnapshotAttributes(record)),
        tuple(f"{array.dtype}[{','.join(map(str, array.shape))}]" for array in arrays),
        "numpy" if step.part is None else step.op,
    )


def _nbytes(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(map(_nbytes, value))
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0


# -- operations ------------------------------------------------------------------------------------------------------


def format_seconds(seconds: float) -> str:
    """'1.20 s', '3.40 ms', '5.6 µs'."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def format_count(number: int) -> str:
    """'12', '3.4 k', '8.2 G'."""
    size = float(number)
    for unit in ("", "k", "M", "G"):
        if abs(size) < 1000:
            return f"{size:.0f} " if not unit else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} T"
