"""The loop that runs a plan: records in order, their units shared by the threads of a run, a barrier after each.

Threads call `interpret` with the same table. `shared` is memory of the run: word 0 counts arrivals at the barrier,
word 1 + r the units of record r that are taken. Nothing of a run is kept in the plan.
"""

from __future__ import annotations

from typing import Any

from onnxlab.execution.numba.kernels.simd.memory import atomic_add, atomic_load, call_kernel, relax, word
from onnxlab.execution.numba.machine.object_cache import entry
from onnxlab.execution.numba.machine.records import CALL, WORDS

_SPINS = 2000  # looks at a counter before the processor is given to others
_TABLE, _THREADS, _SHARED, _SCRATCH, _STOP = range(len(CALL))


@entry
def interpret(call: Any, first: Any, last: Any) -> Any:
    """Run records first … last - 1 of a table. `call` is the address of the words that CALL names."""
    table, threads, stop = word(call, _TABLE), word(call, _THREADS), word(call, _STOP)
    shared, scratch = word(call, _SHARED), word(call, _SCRATCH)
    arrived = 0
    for number in range(first, last):
        record = table + number * WORDS * 8
        kernel, units = word(record, 0), word(record, 1)
        if threads == 1:
            for unit in range(units):
                if atomic_load(stop) != 0:
                    return 1
                call_kernel(kernel, record, unit, scratch)
            continue
        counter = shared + 8 * (1 + number)
        unit = atomic_add(counter, 1)
        while unit < units and atomic_load(stop) == 0:
            call_kernel(kernel, record, unit, scratch)
            unit = atomic_add(counter, 1)
        arrived += threads
        atomic_add(shared, 1)
        spins = 0
        while atomic_load(shared) < arrived:
            if atomic_load(stop) != 0:  # a thread may never arrive
                return 1
            spins += 1
            if spins > _SPINS:
                relax()
    return 0
