"""Plans: records for the interpreter, the layout of the arena they work in, and one run of them.

A `PlanBuilder` takes records with symbolic addresses; `finish` lays out the arena so that buffers that are not alive
at once share memory. A `Plan` is immutable; what a run writes to belongs to a `Frame`, of which each run has its own.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from ctypes import c_size_t
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.base import background
from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.machine.records import CALL, FIELDS, WORDS
from onnxlab.execution.numba.plan.checkpoints import ResumedRun, Trace
from onnxlab.execution.numba.plan.views import Array, Buffer, View, dense

_ALIGNMENT = 64
SCRATCH = 1 << 18
_FAULT = View(Buffer("fault", 8), 0, (1,), (8,), np.dtype(np.int64))

Word: TypeAlias = "int | tuple[Buffer, int]"
"""A number, or (buffer, offset): an address."""
Result: TypeAlias = "tuple[tuple[int, ...], Any] | Array"
"""Shape and dtype of an output, or the output itself where it is the same in every run."""


@dataclass(slots=True, eq=False)
class Piece:
    """The records of one step of a plan, with symbolic addresses: another plan may have it too.

    Attributes:
        before: the values that it may be given where it asks for the like, in the order in which it asks.
        views: the values that it was given.
        kernels, work, touched: of each record: what does it, nanoseconds, and the buffers of the arena that it uses.
        kept: arrays that it holds addresses of.
        faults: whether a record may tell that an index is beyond its axis.
        token: tells it from other pieces.
    """

    before: Sequence[View] = ()
    views: list[View] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    touched: list[list[Buffer]] = field(default_factory=list)
    kept: list[Array] = field(default_factory=list)
    faults: bool = False
    token: object = field(default_factory=object)
    _rows: list[Word] = field(default_factory=list)
    _tables: list[tuple[Buffer, Sequence[Word]]] = field(default_factory=list)
    _flat: list[_Words] | None = None

    def place(
        self, kind: str, nbytes: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any],
        index: int = -1,
    ) -> View:  # fmt: skip
        """A value in a buffer of its own."""
        number = len(self.views)
        view = View(Buffer(kind, nbytes, index), 0, tuple(shape), tuple(strides), dtype)
        if number < len(self.before) and _asks(self.before[number]) == _asks(view):
            view = self.before[number]
        self.views.append(view)
        return view

    def add(self, kernel: str, row: Sequence[Word], touched: Iterable[Buffer], work: float) -> None:
        """Append a record."""
        self._rows += row
        self._rows += [0] * (WORDS - len(row))
        self.kernels.append(kernel)
        self.work.append(work)
        used = dict.fromkeys(touched)
        self.touched.append([buffer for buffer in used if buffer.kind == "arena"])
        self.faults |= _FAULT.buffer in used

    def table(self, words: Sequence[Word]) -> tuple[Buffer, int]:
        """Words beside the records; their address."""
        buffer = Buffer("table", 8 * len(words))
        self._tables.append((buffer, tuple(words)))
        return buffer, 0

    def flat(self) -> list[_Words]:
        """Its records, and each of its tables; settled when it is asked for."""
        if self._flat is None:
            self._flat = [_words(None, self._rows), *(_words(*table) for table in self._tables)]
        return self._flat


def _asks(view: View) -> tuple[object, ...]:
    buffer = view.buffer
    return buffer.kind, buffer.index, buffer.nbytes, view.shape, view.strides, view.dtype


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of a plan's table: `numbers`, 0 where there is an address, and [(place, buffer, offset)] of addresses."""

    buffer: Buffer | None
    numbers: Array
    addresses: list[tuple[int, Buffer, int]]


def _words(buffer: Buffer | None, words: Sequence[Word]) -> _Words:
    numbers = np.array([word if isinstance(word, int) else 0 for word in words], np.int64)
    return _Words(buffer, numbers, [(at, *word) for at, word in enumerate(words) if not isinstance(word, int)])


class PlanBuilder:
    """Collects the records of a plan.

    Attributes:
        piece: takes those of the step that is being lowered.
    """

    def __init__(self) -> None:
        self.piece = Piece()
        self._pieces = [self.piece]

    def begin(self, piece: Piece) -> None:
        """Append a piece, which may be full already."""
        self.piece = piece
        self._pieces.append(piece)

    def allocate(self, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> View:
        """A new value in the arena, contiguous unless strides are given."""
        dtype = np.dtype(dtype)
        steps = dense(shape, dtype.itemsize) if strides is None else tuple(strides)
        reach = sum((size - 1) * step for size, step in zip(shape, steps, strict=True)) + dtype.itemsize
        return self.piece.place("arena", reach, shape, steps, dtype)

    def output(self, number: int, shape: Sequence[int], dtype: Any) -> View:
        """The caller's array of this number."""
        dtype = np.dtype(dtype)
        return self.piece.place("output", 0, shape, dense(shape, dtype.itemsize), dtype, number)

    def keep(self, array: Array) -> int:
        """The address of an array that lives as long as the plan."""
        self.piece.kept.append(array)
        return address(array)

    def fault(self) -> View:
        """The place where kernels report an index beyond its axis: an int64 that is 0 when a run begins."""
        return _FAULT

    def table(self, words: Sequence[Word]) -> tuple[Buffer, int]:
        """Words beside the records, which may hold addresses; returns their place."""
        return self.piece.table(words)

    def emit(
        self, kernel: str, units: int, values: Mapping[str, Word],
        reads: Sequence[View | None] = (), writes: Sequence[View] = (), work: float = 0.0,
    ) -> None:  # fmt: skip
        """Append a record.

        Args:
            kernel: name of what does it.
            units: pieces of work that threads may share.
            values: its words by the names of FIELDS; those left out are 0.
            reads, writes: what it touches, for the layout of the arena; what `values` show is found out.
            work: about how many nanoseconds it takes.
        """
        row: list[Word] = [values.get(name, 0) for name in FIELDS[kernel]]
        row[1] = units
        touched = [view.buffer for view in (*reads, *writes) if view is not None]
        touched += [word[0] for word in row if isinstance(word, tuple)]
        self.piece.add(kernel, row, touched, work)

    def finish(self, inputs: int, outputs: Sequence[Result], address_of: Callable[[str], int]) -> Plan:
        """Lay out the arena and make the plan; `address_of` is asked for the code of each kernel."""
        kernels = [kernel for piece in paced(self._pieces) for kernel in piece.kernels]
        alive = self._alive()
        fault = Buffer("arena", 8, first=0, last=len(kernels))  # alive from the first record to the last
        faults = any(piece.faults for piece in self._pieces)
        arena = _lay_out([*alive, fault] if faults else alive)
        flat = [piece.flat() for piece in paced(self._pieces)]
        words = [*(rows for rows, *_ in paced(flat)), *(table for _, *tables in paced(flat) for table in tables)]
        template = np.concatenate([item.numbers for item in paced(words)])
        template[: len(kernels) * WORDS : WORDS] = [address_of(kernel) for kernel in paced(kernels)]
        linked = _Linked(template, fault)
        linked.add(words)
        kept = [array for piece in paced(self._pieces) for array in piece.kept]
        work = np.array([cost for piece in paced(self._pieces) for cost in piece.work])
        place = fault.offset if faults else -1
        patches = linked.patches()
        trace = self._trace(alive, [len(item.numbers) for item in words]).knowing(
            {number: where for (kind, number), (where, _) in patches.items() if kind == "output"})  # fmt: skip
        return Plan(template, patches, arena, inputs, tuple(outputs), (*kept, *linked.kept), work, place,
                    linked.constants, trace)  # fmt: skip

    def _trace(self, alive: Sequence[Buffer], sizes: Sequence[int]) -> Trace:
        """The steps of the plan; `sizes` are of the pieces' rows, then of their tables, in the plan's table."""
        own: list[tuple[object, int]] = []
        numbers, first = [], 0
        for piece in paced(self._pieces):
            numbers.append(len(own))  # a piece without records is the next one's
            if piece.kernels:
                own.append((piece.token, first))
            first += len(piece.kernels)
        placed = paced(zip(numbers, self._pieces, strict=True))
        tables = [number for number, piece in placed for _ in piece.flat()[1:]]
        spans = [(buffer.offset, buffer.nbytes, buffer.first, buffer.last) for buffer in paced(alive)]
        return Trace(
            tuple(token for token, _ in paced(own)),
            np.array([*(record for _, record in paced(own)), first]),
            np.cumsum([0, *sizes[:-1]]),
            np.array([*numbers, *tables]),
            tuple(alive),
            np.array(spans, np.int64).reshape(-1, 4).T,
        )

    def _alive(self) -> list[Buffer]:
        """The buffers of the arena, with the first and last record that uses each."""
        found: dict[int, Buffer] = {}
        number = 0
        for piece in paced(self._pieces):
            for touched in piece.touched:
                for buffer in touched:
                    if id(buffer) not in found:
                        found[id(buffer)] = buffer
                        buffer.first = number
                    buffer.last = number
                number += 1
        return list(found.values())


class _Linked:
    """Fills the addresses of constants into a plan's table, and collects those that are known in a run only.

    Attributes:
        constants: {address: words that are addresses in it}; `kept` are their arrays.
    """

    def __init__(self, template: Array, fault: Buffer) -> None:
        self._template = template
        self._fault = fault
        self._found: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        self.constants: dict[int, list[int]] = {}
        self.kept: list[Array] = []

    def add(self, words: Sequence[_Words]) -> None:
        """Link the words that follow each other in the table."""
        base = 0
        for item in paced(words):
            if item.buffer is not None:
                item.buffer.offset = 8 * base
            base += len(item.numbers)
        base = 0
        for item in paced(words):
            for at, buffer, offset in item.addresses:
                if buffer.kind == "constant":
                    self._constant(base + at, buffer, offset)
                elif buffer.kind == "fault":
                    self._later("arena", 0, base + at, self._fault.offset)
                elif buffer.kind in ("arena", "table"):
                    self._later(buffer.kind, 0, base + at, buffer.offset + offset)
                else:
                    self._later(buffer.kind, buffer.index, base + at, offset)
            base += len(item.numbers)

    def _constant(self, index: int, buffer: Buffer, offset: int) -> None:
        assert buffer.array is not None
        start = address(buffer.array)
        self._template[index] = start + offset
        self.kept.append(buffer.array)
        self.constants.setdefault(start, []).append(index)

    def _later(self, kind: str, number: int, index: int, offset: int) -> None:
        found = self._found.get((kind, number))
        if found is None:
            found = self._found[kind, number] = [], []
        found[0].append(index)
        found[1].append(offset)

    def patches(self) -> Patches:
        """{(kind, number): (words, offsets to add to what is known then)}."""
        return {key: (np.array(where), np.array(offsets)) for key, (where, offsets) in self._found.items()}


def _lay_out(buffers: list[Buffer]) -> int:
    """Give each buffer a place in the arena; its size. An edit mostly leaves sizes and uses as they were."""
    offsets, total = _places(tuple((buffer.nbytes, buffer.first, buffer.last) for buffer in paced(buffers)))
    for buffer, offset in paced(zip(buffers, offsets, strict=True)):
        buffer.offset = offset
    return total


@lru_cache(maxsize=32)
def _places(spans: tuple[tuple[int, int, int], ...]) -> tuple[list[int], int]:
    """Places of buffers by (bytes, first and last use), the largest first, clear of those alive at the same time."""
    buffers = [Buffer("arena", nbytes, first=first, last=last) for nbytes, first, last in paced(spans)]
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(buffers, key=lambda item: -item.nbytes):
        background.rest()  # it is clear of all that were placed before
        size = -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        offset = 0
        for other in placed:  # by offset
            if other.first > buffer.last or other.last < buffer.first:
                continue
            if other.offset - offset >= size:
                break
            offset = max(offset, other.offset + -(-other.nbytes // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT)
        buffer.offset = offset
        total = max(total, offset + size)
        insort(placed, buffer, key=lambda item: item.offset)
    return [buffer.offset for buffer in buffers], total


empty = np.empty
"""Memory for outputs."""


def aligned(nbytes: int) -> Array:
    """Fresh memory that begins at a cache line."""
    raw = np.empty(nbytes + _ALIGNMENT, np.uint8)
    skip = -int(raw.__array_interface__["data"][0]) % _ALIGNMENT
    return raw[skip : skip + nbytes]


_DATA = object.__basicsize__
"""Where an array object has the address of its elements: the first field behind the object's own."""


def _by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _by_field(array: Array) -> int:
    """A fifth of the time of the way round, which counts in regions of microseconds. The layout is NumPy's C API."""
    found: int = c_size_t.from_address(id(array) + _DATA).value
    return found


_SAMPLES: list[Array] = [np.zeros(3), np.zeros((2, 3))[1:, ::2], np.zeros(9, np.uint8)[1:5].view(np.float32)]
_agree = sys.implementation.name == "cpython" and all(_by_field(array) == _by_interface(array) for array in _SAMPLES)
address: Callable[[Array], int] = _by_field if _agree else _by_interface
"""The address of an array's first element."""


Patches: TypeAlias = Mapping[tuple[str, int], tuple[Array, Array]]


class Frame:
    """Memory of one run: arena, table with its addresses filled in, counters, stop flag and scratch of each thread.

    Args:
        memory: that has the arena; default: new memory.
    """

    def __init__(self, plan: Plan, memory: Array | None = None) -> None:
        self.memory = aligned(plan.arena) if memory is None else memory
        self.arena = self.memory[: plan.arena]
        self.table = plan.template.copy()
        self.words = self.table.data
        for key, base in ((("arena", 0), address(self.arena)), (("table", 0), address(self.table))):
            if key in plan.patches:
                where, offsets = plan.patches[key]
                self.table[where] = offsets + base
        self.shared = np.zeros(plan.records + 1, np.int64)
        self._stop = np.zeros(1, np.int64)
        self._scratch: list[Array] = []
        self._called: list[Array] = []
        self._calls: dict[int, list[int]] = {}

    def halt(self) -> None:
        """End the run before its next unit of work; the frame is not used again."""
        self._stop[0] = 1

    @property
    def halted(self) -> bool:
        """Whether the run has been asked to stop."""
        return bool(self._stop[0])

    def calls(self, threads: int) -> list[int]:
        """For each of so many threads, the address of what it calls the interpreter with."""
        found = self._calls.get(threads)
        return self._made_calls(threads) if found is None else found

    def _made_calls(self, threads: int) -> list[int]:
        while len(self._scratch) < threads:
            self._scratch.append(aligned(SCRATCH))
        given = {"table": address(self.table), "threads": threads, "shared": address(self.shared),
                 "stop": address(self._stop)}  # fmt: skip
        rows = [given | {"scratch": address(memory)} for memory in self._scratch[:threads]]
        words = [np.array([row[name] for name in CALL], np.int64) for row in rows]
        self._called += words
        self._calls[threads] = [address(row) for row in words]
        return self._calls[threads]


class Plan:
    """A compiled region for one set of input shapes.

    Attributes:
        nbytes: what a run takes besides its inputs.
        records: how many there are; `work` is about how many nanoseconds each takes.
        inputs: how many there are; `outputs` are what is known of the others.
        few: (word, offset, array) of the addresses in the caller's arrays, inputs first; None where there are many.
        fault: place in the arena where kernels tell that an index is beyond its axis, -1 where none does.
        trace: its steps, None where they were not traced.
        new: whether it is the first of its region for these shapes, and has not run.
    """

    def __init__(
        self, template: Array, patches: Patches, arena: int, inputs: int,
        outputs: tuple[Result, ...], kept: tuple[Array, ...], work: Array, fault: int = -1,
        constants: Mapping[int, list[int]] | None = None, trace: Trace | None = None,
    ) -> None:  # fmt: skip
        self.template = template
        self.trace = trace
        self.new = False
        self.patches = patches
        self.arena = arena
        self.records = len(work)
        self.inputs = inputs
        self.work = work
        self.outputs = outputs
        self.fault = fault
        self._kept = {id(array): array for array in kept}
        self._constants = constants or {}  # by the address of each: words that are addresses in it
        self._ports = _ports(patches, inputs, len(outputs))
        where, offsets, numbers = self._ports
        # a call of NumPy takes as long as a dozen turns of a loop
        self.few = [*zip(where.tolist(), offsets.tolist(), numbers.tolist(), strict=True)] if len(where) <= 8 else None
        made = [result for result in outputs if isinstance(result, tuple)]
        self.nbytes = arena + sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in made)
        self._idle: list[Frame] = []
        self.stages = _stages(work)
        self.short = len(self.stages) == 1
        """Whether a run takes milliseconds, so that it needs no way to stop it."""

    def run(
        self,
        inputs: Sequence[Array],
        threads: int,
        interpret: Callable[..., Any],
        check: Callable[[], None] | None = None,
        listening: Callable[[Callable[[], None]], AbstractContextManager[None]] | None = None,
        course: ResumedRun | None = None,
    ) -> list[Array]:
        """Run on contiguous arrays of the shapes that it was made for; may be called from many threads at once.

        Args:
            interpret: `interpret(frame, first, last, threads)`.
            check: called every few milliseconds of work; may raise to end the run.
            listening: a context in which the callable that it is given is called when the run has to end: for
                records that take long.
            course: where it begins, and what it notes; default: all is run, nothing noted.

        Raises:
            IndexError: an index was beyond its axis.
        """
        outputs = [empty(*result) if isinstance(result, tuple) else result for result in self.outputs]
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = Frame(self)
        self._connect(frame, [*map(address, inputs), *map(address, outputs)])
        if self.fault >= 0:
            frame.arena[self.fault] = 0
        if self.short and course is None:
            interpret(frame, 0, self.records, threads)
        else:
            with listening(frame.halt) if listening is not None else nullcontext():
                self._run(frame, outputs, partial(interpret, threads=threads), check, course)
        if not frame.halted:  # it may have been when all was done
            self._idle.append(frame)
        if self.fault >= 0 and frame.arena[self.fault]:
            raise IndexError("an index is beyond its axis")
        return outputs

    def _run(
        self, frame: Frame, outputs: Sequence[Array], interpret: Callable[[Frame, int, int], Any],
        check: Callable[[], None] | None, course: ResumedRun | None,
    ) -> None:  # fmt: skip
        """Run stage by stage."""
        first, stages = 0, self.stages
        if course is not None:
            first, stages = course.first, course.ends(stages)
            course.begin(frame.arena, outputs)
        for last in stages:
            interpret(frame, first, last)
            first = last
            if check is not None:
                check()
            if course is not None:
                course.passed(last, frame.arena, outputs)

    def work_in(self, memory: Array) -> None:
        """Let the next run work in this memory, which has to be large enough and in no other use meanwhile."""
        if not self._idle or self._idle[-1].memory is not memory:
            self._idle[:] = [Frame(self, memory)]

    @cached_property
    def constants_nbytes(self) -> int:
        """Bytes of the arrays that it has addresses of; others in their place are as large."""
        return sum(array.nbytes for array in self._kept.values())

    def exchanged(self, pairs: Iterable[tuple[Array, Array]]) -> Plan:
        """The plan with other constants, laid out alike, in place of some: [(that of this plan, the other)].

        Nothing that a run writes to is shared; without pairs it is this plan without the memory of its runs.
        """
        made = copy(self)
        made._idle = []
        exchanged = [*pairs]
        moved = {address(old): new for old, new in exchanged}
        if not moved:
            return made
        made.template = self.template.copy()
        for old, new in moved.items():
            made.template[self._constants.get(old, [])] += address(new) - old
        if self.trace is not None:
            made.trace = self.trace.changed(word for old in moved for word in self._constants.get(old, []))
        made._constants, made._kept = {**self._constants}, {**self._kept}
        for old in moved:  # all go before the first comes
            made._constants.pop(old, None)
        for old, new in moved.items():
            made._constants[address(new)] = self._constants.get(old, [])
        for array, _ in exchanged:
            made._kept.pop(id(array), None)
        made._kept.update((id(new), new) for new in moved.values())
        return made

    def _connect(self, frame: Frame, addresses: list[int]) -> None:
        """Fill the addresses of the caller's arrays in."""
        if self.few is not None:
            words = frame.words
            for place, offset, number in self.few:
                words[place] = addresses[number] + offset
        else:
            where, offsets, numbers = self._ports
            frame.table[where] = np.array(addresses, np.int64)[numbers] + offsets


def _ports(patches: Patches, inputs: int, outputs: int) -> tuple[Array, Array, Array]:
    """Of every word that is an address in the caller's arrays: its place, the offset, and which array."""
    names = [*(("input", number) for number in range(inputs)), *(("output", number) for number in range(outputs))]
    found = [(*patches[name], number) for number, name in enumerate(names) if name in patches]
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    places, offsets, numbers = zip(*found, strict=True)
    return np.concatenate(places), np.concatenate(offsets), np.repeat(numbers, [len(place) for place in places])


_STAGE = 20e6  # nanoseconds of work between looks at the stop flag


def _stages(work: Array) -> list[int]:
    """Ends of runs of records that take about _STAGE each."""
    ends = []
    spent = 0.0
    for number, cost in enumerate(paced(work)):
        spent += float(cost)
        if spent > _STAGE:
            ends.append(number + 1)
            spent = 0.0
    return [*ends, len(work)]
