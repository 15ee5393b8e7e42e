"""The parts that run a model by now: those of the last run, by which provider, and what is being compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from onnxlab.execution.base import background
from onnxlab.execution.base.provider import PartState, Step
from onnxlab.execution.program.program import Program
from onnxlab.execution.run.runner import Runner
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

if TYPE_CHECKING:
    from onnxlab.execution.numba.plan.kernels_ahead import KernelsAhead

_NOW = PartState(compiled=True)


@dataclass(frozen=True, slots=True)
class RunningPart:
    """Nodes that run together.

    Attributes:
        provider: name of the provider.
        nodes: ids of the nodes.
        span: the labels of the first and the last node.
        compiled: whether the part runs by the provider's own kernels; otherwise NumPy runs it.
        compiling: whether these kernels are being compiled.
        reason: why nodes are left to NumPy, "" where none are.
    """

    provider: str
    nodes: tuple[int, ...]
    span: str
    compiled: bool
    compiling: bool = False
    reason: str = ""

    @property
    def state(self) -> str:
        """The state in a word: "compiled", "compiling", "NumPy answers", or "" for a part of NumPy."""
        if self.provider == "numpy":
            return ""
        return "compiled" if self.compiled else "compiling" if self.compiling else "NumPy answers"

    def __str__(self) -> str:
        also = f"  {self.state}" if self.state else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.provider:12} {len(self.nodes):6} nodes  {self.span}{also}{reason}"


class Compiled(Spelled, metaclass=ShortHelp):
    """The parts of the last run of a model for which no providers were named, by provider; print it.

    Examples:
        >>> done = model.run(np.zeros((1, 1, 8, 8), np.float32))
        >>> sum(len(part.nodes) for part in model.compiled.parts)
        24
    """

    __slots__ = ("_runner",)

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def parts(self) -> tuple[RunningPart, ...]:
        """The parts of the last run, in the order in which they run; none before a run, or after an edit."""
        program = self._runner.usual().last()
        return () if program is None else tuple(_parts(program, self.compiling))

    @property
    def compiling(self) -> bool:
        """Whether programs or kernels are being made in the background, or wait for it."""
        return self._runner.usual().fallbacks.tier.is_compiling or any(state.compiling for state in self.states())

    @property
    def ready(self) -> bool:
        """Whether nothing is left to be compiled for runs like the last."""
        return not self.compiling

    @property
    def in_background(self) -> bool:
        """Whether runs may have kernels compiled in the background; set it to False to stay with NumPy.

        The environment variable ONNXLAB_COMPILE=0 sets it for all models.
        """
        return self._runner.compiles

    @in_background.setter
    def in_background(self, on: bool) -> None:
        self._runner.compiles = on

    @property
    def kernels(self) -> KernelsAhead:
        """The share of all kernels that is on disk, for every model; the others are made in the background.

        Compilation begins when the first run of a process is worth compiling, and yields to all other work. The
        environment variable ONNXLAB_WARM=0 turns it off; `onnxlab warm` makes all kernels at once.

        Examples:
            >>> model.compiled.kernels.count > 30
            True
        """
        from onnxlab.execution.numba.plan import kernels_ahead  # imported here: only runs need it

        return kernels_ahead.state()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is being compiled.

        Args:
            timeout: seconds to wait at the most.

        Returns:
            bool: whether nothing is being compiled any more.

        Examples:
            >>> model.compiled.wait(timeout=300)
            True
        """
        return background.wait(timeout)

    def states(self) -> list[PartState]:
        """The states of the parts of the last run, without the nodes that run one by one."""
        program = self._runner.usual().last()
        return [] if program is None else [_state(i.step) for i in program.instructions if i.step.part is not None]

    def __str__(self) -> str:
        lines = [*map(str, self.parts)] or ["nothing was run since the model was opened or edited"]
        if self.compiling:
            from onnxlab.execution.numba.plan import engine

            name = engine.compiling()
            lines.append(f"kernels are being compiled in the background{f': {name}' if name else ''}")
        if (kernels := self.kernels).under_way:
            lines.append(f"for later models: {kernels}")
        if not self.in_background:
            lines.append("compiling in the background is turned off: runs are NumPy's")
        return printable_lines(lines)

    def __repr__(self) -> str:
        parts = self.parts
        count = sum(len(part.nodes) for part in parts if part.state == "compiled")
        return f"<Compiled: {count} of {sum(len(part.nodes) for part in parts)} nodes>"


def _state(step: Step) -> PartState:
    return _NOW if step.part is None or step.part.state is None else step.part.state()


def _parts(program: Program, compiling: bool) -> Iterator[RunningPart]:
    """The running parts of a program: steps of parts, and consecutive steps of single nodes as one part."""
    for part, alike in groupby((instruction.step for instruction in program.instructions), lambda step: step.part):
        steps = [*alike]
        if part is None:
            yield _single(steps)
            continue
        step, state = steps[0], _state(steps[0])
        span = step.label.removeprefix(f"{step.op} part from ").replace(" to ", " … ")
        waiting = compiling and not state.compiled and not state.reason
        yield RunningPart(step.op, part.nodes, span, state.compiled, state.compiling or waiting, state.reason)


def _single(steps: list[Step]) -> RunningPart:
    first, last = steps[0].label, steps[-1].label
    span = first if len(steps) == 1 else f"{first} … {last}"
    return RunningPart("numpy", tuple(step.node for step in steps), span, compiled=True)
