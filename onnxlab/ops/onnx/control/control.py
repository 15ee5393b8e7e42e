"""Control flow: If, Loop, Scan, SequenceMap. Bodies run through the RunContext, captures and all."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxlab.limits import Body, RunContext
from onnxlab.ops.base.kernel_helpers import Array, at, normal_axis
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits


@kernel("If", context=True)
def if_(ctx: RunContext, condition: Array, then_branch: Body, else_branch: Body) -> tuple[Any, ...]:
    """The outputs of one of two bodies."""
    if np.asarray(condition).size != 1:
        raise ValueError(f"cond has shape {condition.shape}: expected one element")
    return tuple(ctx.run(then_branch if bool(np.asarray(condition).reshape(())) else else_branch, ()))


@kernel("Loop", context=True)
def loop(
    ctx: RunContext, trip_count: Array | None, condition: Array | None, *carried: Any, body: Body
) -> tuple[Any, ...]:
    """Run the body while the condition holds, at most trip_count times: (carried values…, stacked scan outputs…)."""
    most = None if trip_count is None else int(trip_count.reshape(()))
    going = condition is None or bool(condition.reshape(()))
    values = list(carried)
    scanned: list[list[Array]] = [[] for _ in range(len(body.outputs) - 1 - len(values))]
    iteration = 0
    while going and (most is None or iteration < most):
        ctx.check()
        results = ctx.run(body, (np.array(iteration, np.int64), np.array(going), *values))
        going = bool(np.asarray(results[0]).reshape(()))
        values = results[1 : 1 + len(values)]
        for kept, item in zip(scanned, results[1 + len(values) :], strict=True):
            ctx.reserve(item.nbytes, "the scan outputs of the loop")
            kept.append(item)
        iteration += 1
    facts = body.output_facts[1 + len(values) :]
    return (*values, *(_stack(ctx, kept, fact) for kept, fact in zip(scanned, facts, strict=True)))


def _stack(ctx: RunContext, items: Sequence[Array], fact: Any, axis: int = 0) -> Array:
    """Items stacked along a new axis; without any, an empty tensor of the declared type, unknown dims 0."""
    if items:
        ctx.reserve(sum(item.nbytes for item in items), "the stacked scan outputs")
        return np.stack(items, axis)
    dims = [dim if isinstance(dim, int) else 0 for dim in fact.shape or ()]
    return np.zeros((0, *dims), fact.dtype or np.float32)


@kernel("Scan", since=9, context=True)
def scan(
    ctx: RunContext,
    *inputs: Array,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Run the body over slices of the scan inputs: (states…, scan outputs…); a direction of 1 runs backwards.

    Raises:
        ValueError: the scan inputs have different lengths.
    """
    split = len(inputs) - num_scan_inputs
    states, sequences = list(inputs[:split]), list(inputs[split:])
    axes = [
        normal_axis(axis, sequence.ndim)
        for axis, sequence in zip(scan_input_axes or (0,) * num_scan_inputs, sequences, strict=True)
    ]
    lengths = {sequence.shape[axis] for axis, sequence in zip(axes, sequences, strict=True)}
    if len(lengths) != 1:
        raise ValueError(f"the scan inputs have lengths {sorted(lengths)}: expected equal ones")
    backwards = scan_input_directions or (0,) * num_scan_inputs
    count, length = len(body.outputs) - split, lengths.pop()
    scanned: list[list[Array]] = [[] for _ in range(count)]
    for time in range(length):
        ctx.check()
        slices = [
            sequence[at(*(slice(None),) * axis, length - 1 - time if back else time)]
            for sequence, axis, back in zip(sequences, axes, backwards, strict=True)
        ]
        results = ctx.run(body, (*states, *(np.asarray(item) for item in slices)))
        states = results[:split]
        for kept, item in zip(scanned, results[split:], strict=True):
            ctx.reserve(item.nbytes, "the scan outputs")
            kept.append(item)
    outputs = []
    for number, kept in enumerate(scanned):
        if scan_output_directions and scan_output_directions[number]:
            kept = kept[::-1]
        axis = scan_output_axes[number] if scan_output_axes else 0
        outputs.append(_stack(ctx, kept, body.output_facts[split + number], axis if kept else 0))
    return (*states, *outputs)


@kernel("Scan", since=8, context=True)
def scan_8(
    ctx: RunContext,
    sequence_lens: Array | None,
    *inputs: Array,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """As Scan-9 with a batch axis in front of everything and sequences of different lengths, padded with zeros."""
    split = len(inputs) - num_scan_inputs
    longest = inputs[split].shape[1]
    results = []
    for entry in range(len(inputs[0])):
        length = longest if sequence_lens is None else int(sequence_lens[entry])
        feeds = [x[entry] for x in inputs[:split]] + [x[entry, :length] for x in inputs[split:]]
        outputs = scan(ctx, *feeds, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions)
        padded = [np.pad(y, [(0, longest - length)] + [(0, 0)] * (y.ndim - 1)) for y in outputs[split:]]
        results.append([*outputs[:split], *padded])
    return tuple(np.stack(parts) for parts in zip(*results, strict=True))


@kernel("SequenceMap", since=17, context=True)
def sequence_map(ctx: RunContext, sequence: list[Any], *others: Any, body: Body) -> tuple[list[Any], ...]:
    """Run the body on every element; other sequences are walked along, tensors given to every call."""
    outputs: list[list[Any]] = [[] for _ in body.outputs]
    for place, item in enumerate(sequence):
        ctx.check()
        feeds = [other[place] if isinstance(other, list) else other for other in others]
        for kept, result in zip(outputs, ctx.run(body, (item, *feeds)), strict=True):
            ctx.reserve(getattr(result, "nbytes", 0), "the mapped sequence")
            kept.append(result)
    return tuple(outputs)


traits("If", OpTraits(category="control", shape="other", flops=1, first_result=0, same_since=1))
traits("Loop", OpTraits(category="control", shape="other", flops=1, iterates=True, first_result=1, same_since=1))
traits("Scan", OpTraits(category="control", shape="other", flops=1, iterates=True, first_result=0, same_since=9))
traits(
    "SequenceMap", OpTraits(category="control", shape="other", flops=1, iterates=True, first_result=0, same_since=17)
)
