"""Budgets of a run, and the questions that rules and kernels may ask it.

`Limits` is what a user gives: bytes, loop iterations, seconds and a stop flag. `begin` turns it into the
running budget of one run, which counts. The protocols `Body`, `RunContext` and `InferContext` let operators
with subgraphs (If, Loop, Scan, SequenceMap, functions) be written without knowing executor or inference.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from onnxlab.argument_types import expect
from onnxlab.errors import LimitError, LoadError, RunStopped
from onnxlab.forking import fork_safe
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

if TYPE_CHECKING:
    from onnxlab.shapes import Dim, Fact

SHARE_OF_MEMORY = 0.8
"""Part of the available memory that a run may take when nothing else is said."""

FOLDED = 1 << 20
"""Bytes that folding of constants may add to a model unless told otherwise."""

_telling = fork_safe(threading.Lock())  # of the listeners that learn when a run has to end
_CGROUP = Path("/sys/fs/cgroup")
_MEMORY_IS_FRESH = 1.0  # seconds for which a reading of the available memory is used again


# The stop flag of runs without one of their own, which nothing sets: making one takes as long as a tiny run.
_NEVER = threading.Event()


@dataclass(slots=True)
class Limits(Spelled, metaclass=ShortHelp):
    """The limits of a run. None means the default for `bytes` and no limit for the others.

    Attributes:
        bytes: bytes of arrays alive at once, or a size as "512MB" or "2GiB"; default 80 % of the memory available when
            the run begins.
        iterations: runs of subgraph bodies (Loop, Scan, …) in the whole run.
        deadline: seconds from the beginning of the run.
        stop: set it, from any thread, to stop the run before its next node or iteration.
        held: bytes that the run holds now, as counted by the executor.
        iterated: runs of subgraph bodies until now.
        interrupted: ends a running budget like `stop`, but does not set the user's flag.

    Examples:
        >>> done = model.run(np.zeros((1, 1, 8, 8), np.float32), limits=onnxlab.Limits(deadline=60))
    """

    bytes: int | None = None
    iterations: int | None = None
    deadline: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    held: int = field(default=0, init=False, compare=False)
    iterated: int = field(default=0, init=False, repr=False, compare=False)
    interrupted: bool = field(default=False, init=False, repr=False, compare=False)
    _listeners: list[Callable[[], None]] = field(default_factory=list, init=False, repr=False, compare=False)
    _until: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.iterations is not None or self.deadline is not None or type(self.bytes) is not int or self.bytes < 0:
            self._check_types()  # a usual run is not checked

    def _check_types(self) -> None:
        """Turn sizes such as "1GB" into bytes, and refuse what is no number from 0 on."""
        size: object = self.bytes
        if isinstance(size, str):
            self.bytes = parse_bytes(size)
        for name, kinds in (("bytes", int), ("iterations", int), ("deadline", (int, float))):
            value = getattr(self, name)
            if value is not None:
                value = expect(value, kinds, f"Limits.{name}", "a number from 0 on, or None")
                setattr(self, name, value)
                if value < 0:
                    raise ValueError(f"Limits.{name} is {value}: expected a number from 0 on, or None")

    @classmethod
    def usual(cls) -> Limits:
        """The budget of a run for which nothing is said: `Limits().begin()` in fewer steps."""
        return cls(int(SHARE_OF_MEMORY * available_memory()), stop=_NEVER)

    def begin(self) -> Limits:
        """A budget for one run: the same limits and stop flag, the clock started, nothing used."""
        running = replace(self)
        if running.bytes is None:
            running.bytes = int(SHARE_OF_MEMORY * available_memory())
        if running.deadline is not None:
            running._until = time.monotonic() + running.deadline
        return running

    def check(self) -> None:
        """Raise RunStopped when the stop flag is set, LimitError after the deadline."""
        if self.interrupted or self.stop.is_set():
            raise RunStopped("the run was stopped")
        if self._until is not None and time.monotonic() > self._until:
            raise LimitError(f"the run took longer than its limit of {self.deadline:g} s (Limits.deadline)")

    @contextlib.contextmanager
    def listening(self, stop: Callable[[], None]) -> Iterator[None]:
        """Have `stop` called, from another thread, when the run has to end meanwhile: for calls that cannot look.

        `stop` is not called any more when the context has been left.
        """
        self._listeners.append(stop)
        try:
            yield
        finally:
            with _telling:
                self._listeners.remove(stop)

    def end(self) -> None:
        """Notify the listeners that the run has to end."""
        with _telling:
            for stop in list(self._listeners):
                stop()

    def iterate(self, times: int = 1) -> None:
        """Count runs of a body. Raises LimitError beyond `iterations`, and what `check` raises."""
        self.iterated += times
        if self.iterations is not None and self.iterated > self.iterations:
            raise LimitError(f"more than {self.iterations:,} iterations of loop bodies (Limits.iterations)")
        self.check()

    def reserve(self, nbytes: int, purpose: str = "an array") -> None:
        """Claim `nbytes` more before they are allocated; `release` or the executor gives them back.

        Raises LimitError when the run would then hold more than `bytes`.
        """
        if self.bytes is not None and self.held + nbytes > self.bytes:
            already = f" on top of the {format_bytes(self.held)} that the run holds" if self.held else ""
            limit = f"the limit is {format_bytes(self.bytes)} (Limits.bytes)"
            raise LimitError(f"{purpose} needs {format_bytes(nbytes)}{already}, and {limit}")
        self.held += nbytes

    def release(self, nbytes: int) -> None:
        """Give back `nbytes` that were reserved."""
        self.held -= nbytes


_under_way: ContextVar[Limits | None] = ContextVar("onnxlab_run", default=None)
_SMALL = 1 << 16


class Loading:
    """`with Loading(limits):` counts the data that is read meanwhile, in this thread, as part of a run."""

    __slots__ = ("_limits", "_token")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def __enter__(self) -> None:
        self._token: Token[Limits | None] = _under_way.set(self._limits)

    def __exit__(self, *_: object) -> None:
        _under_way.reset(self._token)


def claim(nbytes: int, purpose: str) -> None:
    """Ask for memory for data that is about to be read and kept: of the run under way, else of the machine.

    Raises LimitError where the run has less left, LoadError where the machine has.
    """
    if nbytes <= _SMALL:
        return
    run = _under_way.get()
    if run is not None:
        run.reserve(nbytes, purpose)
    elif nbytes > (most := int(SHARE_OF_MEMORY * available_memory())):
        raise LoadError(f"{purpose} needs {format_bytes(nbytes)}, which does not fit into memory: {format_bytes(most)}")


def parse_bytes(word: str) -> int:
    """A number of bytes in words: 500000, 512MB, 2GiB.

    Raises:
        ValueError: the word is no number of bytes.
    """
    factors = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    factors |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
    number = word.strip().rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    unit = word.strip()[len(number) :].upper()
    try:
        nbytes = float(number) * factors[unit]
    except (ValueError, KeyError):
        raise ValueError(f"{word!r} is no size: write bytes, or a size as 512MB or 2GiB") from None
    if not 0 < nbytes < 1 << 62:
        raise ValueError(f"{word!r} is no size that memory can have")
    return int(nbytes)


def format_bytes(nbytes: int) -> str:
    """'512 B', '3.4 MB', '7.3 TB': decimal units, as file managers and ONNX tools print them."""
    size = float(nbytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} PB"


_memory_lock = fork_safe(threading.Lock())
_memory_read: tuple[float, int] = (float("-inf"), 0)


_memory_allowed: int | None = None


@contextlib.contextmanager
def memory_at_most(nbytes: int) -> Iterator[None]:
    """Let runs that say nothing of bytes take so many, in the whole process, however much memory is free."""
    global _memory_allowed, _memory_read
    before = _memory_allowed
    _memory_allowed, _memory_read = nbytes, (float("-inf"), 0)
    try:
        yield
    finally:
        _memory_allowed, _memory_read = before, (float("-inf"), 0)


def available_memory() -> int:
    """Bytes that can be allocated now without swapping: the machine's, or the cgroup's when that is less.

    A reading is kept for a second, so that runs of microseconds do not pay for it.
    """
    global _memory_read
    with _memory_lock:
        read_at, nbytes = _memory_read
        if time.monotonic() - read_at > _MEMORY_IS_FRESH:
            nbytes = min([_machine_memory(), *_cgroup_memory(_CGROUP)])
            if _memory_allowed is not None:
                nbytes = min(nbytes, int(_memory_allowed / SHARE_OF_MEMORY))
            _memory_read = (time.monotonic(), nbytes)
        return nbytes


def _machine_memory() -> int:
    """MemAvailable on Linux; elsewhere half of the physical memory; 4 GiB where not even that is known."""
    with contextlib.suppress(OSError, ValueError):  # not Linux: the portable figures below
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def _cgroup_memory(root: Path) -> list[int]:
    """Memory left to a container, by cgroup version 2 or 1; empty without a limit.

    Page cache that the kernel would drop first (inactive_file) counts as free.
    """
    for folder, limit, usage, inactive in (
        (root, "memory.max", "memory.current", "inactive_file"),
        (root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            free = int((folder / limit).read_text()) - int((folder / usage).read_text())
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            cached = statistics.get(inactive, "0")
            return [max(0, free + int(cached))]
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return []


class Body(Protocol):
    """A subgraph or function body as a kernel or rule sees it: something to pass to `run` or `infer`."""

    @property
    def inputs(self) -> Sequence[str]:
        """Names of its formal inputs, without captured outer values."""

    @property
    def outputs(self) -> Sequence[str]:
        """Names of its outputs."""

    @property
    def output_facts(self) -> Sequence[Fact]:
        """Declared types of the outputs (UNKNOWN where there is none): for a Loop that runs zero times."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """The work of a loop between the iterations of its body, by places of inputs and outputs.

    Attributes:
        carried: (input, output): the output of one iteration is the input of the next one.
        sliced: inputs with an additional first axis, of which each iteration reads one entry.
        collected: outputs that are stacked along a new first axis.
        counter: the input that is the number of the iteration, -1 for none.
        condition: the output that says whether the loop goes on, -1 for none.
    """

    carried: tuple[tuple[int, int], ...] = ()
    sliced: tuple[int, ...] = ()
    collected: tuple[int, ...] = ()
    counter: int = -1
    condition: int = -1


Repeated: TypeAlias = "tuple[int, list[Any]]"
"""The number of iterations that ran; and each output: stacked where it is collected, else of the last iteration."""


class RunContext(Protocol):
    """The first argument of a kernel with `context=True`."""

    @property
    def node(self) -> str:
        """Label of the node, for messages."""

    @property
    def outputs(self) -> tuple[bool, ...]:
        """For each output slot that the node lists, whether its name is not empty."""

    @property
    def rng(self) -> np.random.Generator:
        """The run's random numbers, for operators without a `seed` attribute."""

    def opset_version(self, domain: str = "") -> int:
        """Version of `domain` that the node's graph or function imports; 0 where it imports none."""

    def reserve(self, nbytes: int, what: str = "") -> None:
        """Claim memory before allocating it; given back when the node is done. Raises LimitError."""

    def check(self) -> None:
        """Call it in long loops. Raises RunStopped or LimitError when the run has to end."""

    def run(self, body: Body, feeds: Sequence[Any]) -> list[Any]:
        """Run a body once on `feeds` by position and the outer values it captures; counts an iteration."""

    def repeat(self, body: Body, repetition: Repetition, most: int, feeds: Sequence[Any]) -> Repeated | None:
        """Run a body in a loop, `most` times if nothing ends it before; None where it has to be run one by one."""


class InferContext(Protocol):
    """The first argument of a shape rule."""

    @property
    def node(self) -> str:
        """Label of the node, for messages."""

    @property
    def outputs(self) -> tuple[bool, ...]:
        """For each output slot that the node lists, whether its name is not empty."""

    @property
    def depth(self) -> int:
        """The number of bodies that the node is nested in; 0 in the main graph."""

    def opset_version(self, domain: str = "") -> int:
        """Version of `domain` that the node's graph or function imports; 0 where it imports none."""

    def symbol(self, slot: int, axis: int) -> Dim:
        """The dimension that stands for an unknown size: the same one every time for (slot, axis)."""

    def infer(self, body: Body, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs, given those of its inputs by position."""

    def warn(self, message: str, *, code: str = "suspect", expected: str = "", found: str = "", hint: str = "") -> None:
        """Report what is suspect but does not keep the rule from an answer; to refuse, raise FactError."""
