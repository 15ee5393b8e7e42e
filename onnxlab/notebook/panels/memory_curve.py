"""The memory of a run for some sizes of the dims, and the shapes that inputs and outputs get; nothing is run."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onnxlab.errors import NameLookupError
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, number
from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.model import Model

COLUMNS = 600
"""Most columns of the curve; each stands for one step, or for that of several steps with the most bytes."""
ALIVE = 12
"""Allocations that are listed at the peak."""
LARGEST = 1 << 31
"""Upper bound of sizes, exclusive."""


def curve(model: "Model", sizes: Mapping[str, Any] | None) -> JSON:
    """Bytes alive over the schedule, allocations alive at the peak, and shapes.

    Raises:
        ProtocolError: a size is no integer from 0 to LARGEST, or no input has a dim of this name.
    """
    for name, size in (sizes or {}).items():
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < LARGEST:
            raise ProtocolError("malformed", f"memory: the size of {name} is an integer below 2³¹, got {size!r}")
    try:
        memory = model.memory(sizes or {})
        facts = model.with_dims(memory.dims).facts
    except (NameLookupError, ValueError) as error:
        raise ProtocolError("nothing", str(error)) from error
    names = model.graph.main.names
    steps = memory.steps
    count = min(len(steps), COLUMNS)
    ends = [len(steps) * place // count for place in range(count + 1)] if count else [0]
    highest = [max(range(start, end), key=lambda place: steps[place].alive) for start, end in itertools.pairwise(ends)]
    alive = memory.alive() if steps else []
    shown = [value for value in (*model.inputs, *model.outputs) if value.name in facts]
    return {
        "dims": dict(memory.dims),
        "assumed": list(memory.assumed),
        "steps": len(steps),
        "nodes": [steps[place].node for place in highest],
        "alive": [number(steps[place].alive) for place in highest],
        "peak": number(memory.peak),
        "peak_node": steps[memory.peak_step].node if steps else 0,
        "weights": number(memory.weights),
        "inputs": number(memory.inputs),
        "at_peak": [
            {"values": [names[name] for name in item.values if name in names], "nbytes": number(item.nbytes)}
            for item in alive[:ALIVE]
        ],
        "more": len(alive) - len(alive[:ALIVE]),
        "values": [value.id for value in shown],
        "labels": [facts[value.name].label() for value in shown],
        "open": len(memory.open),
        "refused": [printable(str(refusal)) for refusal in memory.refused[:ALIVE]],
    }
