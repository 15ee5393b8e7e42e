"""The loop that runs a plan: records in order, the units of each shared by the threads of a run.

Threads call `interpret` with the same table. `shared` is memory of the run: word 2 r counts the units of record r that
are taken, word 2 r + 1 those that are done. A thread goes on to the next record when all units are done: it waits for
units, not for threads, so one that the system lets wait delays no other. Nothing of a run is kept in the plan.

One thread alone may run the records of a loop's body many times in one call (see `records.CALL`).
"""

from __future__ import annotations

from typing import Any

from onnxlab.execution.numba.kernels.simd.memory import (
    atomic_add,
    atomic_load,
    call_kernel,
    copy_bytes,
    get_u8,
    put_i64,
    relax,
    word,
)
from onnxlab.execution.numba.machine.object_cache import entry, helper
from onnxlab.execution.numba.machine.records import CALL, MOVE, WORDS

_SPINS = 2000  # looks at a counter before the processor is given to others
_TABLE, _THREADS, _SHARED, _SCRATCH, _STOP, _REPEATS, _MOVES, _MOVED, _CONDITION, _DONE = range(len(CALL))
_MOVE_BYTES = 8 * len(MOVE)


@entry
def interpret(call: Any, first: Any, last: Any) -> Any:
    """Run records first … last - 1 of a table. `call` is the address of the words that CALL names."""
    repeats = word(call, _REPEATS)
    if repeats == 0:
        return _once(call, first, last)
    moves, moved, condition = word(call, _MOVES), word(call, _MOVED), word(call, _CONDITION)
    for done in range(repeats):
        if _once(call, first, last) != 0:
            return 1
        put_i64(call + 8 * _DONE, done + 1)
        for number in range(moved):
            move = moves + number * _MOVE_BYTES
            nbytes, target, source = word(move, 0), word(move, 1), word(move, 2)
            if nbytes == 0:
                put_i64(target, word(target, 0) + source)
            else:
                copy_bytes(target, source, nbytes)
        if condition != 0 and get_u8(condition) == 0:
            break
    return 0


@helper
def _once(call: Any, first: Any, last: Any) -> Any:
    table, threads, stop = word(call, _TABLE), word(call, _THREADS), word(call, _STOP)
    shared, scratch = word(call, _SHARED), word(call, _SCRATCH)
    for number in range(first, last):
        record = table + number * WORDS * 8
        kernel, units = word(record, 0), word(record, 1)
        if threads == 1:
            for unit in range(units):
                if atomic_load(stop) != 0:
                    return 1
                call_kernel(kernel, record, unit, scratch)
            continue
        counter = shared + 16 * number
        done = counter + 8
        finished = 0
        unit = atomic_add(counter, 1)
        while unit < units and atomic_load(stop) == 0:
            call_kernel(kernel, record, unit, scratch)
            finished += 1
            unit = atomic_add(counter, 1)
        if finished != 0:
            atomic_add(done, finished)
        spins = 0
        while atomic_load(done) < units:
            if atomic_load(stop) != 0:  # a unit that is taken may never be done
                return 1
            spins += 1
            if spins > _SPINS:
                relax()
    return 0
