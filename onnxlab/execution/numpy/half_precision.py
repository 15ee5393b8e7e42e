"""float16 and bfloat16 values held as float32 between nodes, in runs that keep nothing.

Kernels compute float16 and bfloat16 in float32 and round at the end. When one node rounds to 16 bits and the next one
widens again, the conversions take longer than most nodes. So between nodes whose traits permit it, such values stay in
float32 arrays. In exact runs they are rounded to numbers that 16 bits can hold: the same numbers, to the bit, as in
16-bit arrays. In others, as in onnxruntime, only those are rounded on which integers or truth values depend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Part, PartitionView, Step
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops import find_traits
from onnxlab.ops.base.half_arithmetic import HALVES, rounded
from onnxlab.ops.base.kernel_helpers import narrow, widen
from onnxlab.ops.base.traits import Half

_FLOATS = {*HALVES, np.dtype(np.float32), np.dtype(np.float64)}


def held_wide(
    steps: Sequence[Step], nodes: Sequence[NodeView], part: Part, view: PartitionView, exact: bool
) -> list[Step]:  # fmt: skip
    """The steps of a part, one for each node, with small floats in between held in float32 where that saves work.

    Values that are read outside of the part stay as they are.
    """
    halves = _halves(nodes, part, view)
    held = _held(steps, nodes, halves, part) if halves else frozenset()
    free = frozenset() if exact or not held else held - _decisive(nodes, view)
    return [_converting(step, node, halves, held, free) if held else step
            for step, node in zip(steps, nodes, strict=True)]  # fmt: skip


def _decisive(nodes: Sequence[NodeView], view: PartitionView) -> set[str]:
    """Names of the values that nodes compare, or make integers of, also by way of nodes that only move elements."""
    names: set[str] = set()
    for node in paced(nodes[::-1]):
        moved = frozenset() if _half(node) == "rounded" else names.intersection(node.outputs)
        if moved or any(view.fact(name).dtype not in _FLOATS for name in node.outputs if name):
            names.update(node.inputs)
    return names


def _halves(nodes: Sequence[NodeView], part: Part, view: PartitionView) -> dict[str, np.dtype[Any]]:
    """{name: dtype} of the values known to be float16 or bfloat16."""
    names = dict.fromkeys(name for node in paced(nodes) for name in (*node.inputs, *node.outputs) if name)
    return {name: dtype for name in paced(names) if (dtype := view.fact(name).dtype) is not None and dtype in HALVES}


def _held(steps: Sequence[Step], nodes: Sequence[NodeView], halves: Mapping[str, Any], part: Part) -> frozenset[str]:
    """Names of the values to hold in float32: those whose makers can make, and whose readers can all take, float32."""
    barred = set(part.outputs)
    for step, node in zip(steps, nodes, strict=True):
        barred.update(step.captures, () if _takes(node) else step.inputs)
    held: set[str] = set()
    for step, node in zip(steps, nodes, strict=True):
        saves = _half(node) == "rounded" or not held.isdisjoint(node.inputs)
        if step.constants is None and saves and _makes(node, halves):
            held.update(name for name in node.outputs if name in halves and name not in barred)
    return frozenset(held)


def _half(node: NodeView) -> Half:
    """The way a node treats 16-bit floats when it computes in float32; "" where it is not known."""
    return find_traits(node.domain, node.op_type).half


def _takes(node: NodeView) -> bool:
    """Whether a node makes the same results from 16-bit floats held in float32."""
    is_whole = node.op_type != "Clip" or (len(node.inputs) == 3 and all(node.inputs))  # an absent bound needs the type
    return not node.domain and is_whole and (bool(_half(node)) or node.op_type == "Cast")


def _makes(node: NodeView, halves: Mapping[str, Any]) -> bool:
    """Whether the node's float32 results, rounded, equal its results in 16 bits."""
    measured = node.inputs[1:2] if node.op_type == "Where" else node.inputs[:1]  # it has the type of the outputs
    return _takes(node) and node.op_type != "Cast" and all(name in halves for name in measured)


def _converting(
    step: Step, node: NodeView, halves: Mapping[str, np.dtype[Any]], held: frozenset[str], free: frozenset[str]
) -> Step:  # fmt: skip
    """The step that takes and makes held values; a step that neither reads nor makes any stays as it is.

    Args:
        free: the held values that are not rounded.
    """
    if step.constants is not None or held.isdisjoint((*node.inputs, *node.outputs)):
        return step
    rounds = _half(node) == "rounded"
    fates = tuple(
        None if name not in halves or name in free or (name in held and not rounds)
        else partial(rounded if name in held else narrow, dtype=halves[name])
        for name in node.outputs
    )  # fmt: skip
    call = partial(_call, step.call, step.context, fates)
    shown = partial(_as_stored, tuple(halves[name] if name in held else None for name in node.inputs))
    into = None if step.into is None else partial(_call, step.into, True, fates)
    return replace(step, call=call, shown=shown, into=into)


def _call(call: Any, leads: bool, fates: Sequence[Callable[[Any], Any] | None], *inputs: Any) -> Any:
    """Widen 16-bit inputs, call, and convert outputs as `fates` say; with `leads`, the first argument is no input."""
    lead, arrays = (inputs[:1], inputs[1:]) if leads else ((), inputs)
    wide = [widen(x) if isinstance(x, np.ndarray) and x.dtype in HALVES else x for x in arrays]
    result = call(*lead, *wide)
    is_listed = isinstance(result, tuple)
    done = [item if fate is None or item is None else fate(np.asarray(item))
            for item, fate in zip(result if is_listed else (result,), fates, strict=False)]  # fmt: skip
    return tuple(done) if is_listed else done[0]


def _as_stored(stored: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
    """Inputs of a step in the types that the model declares, for messages."""
    return tuple(
        value.astype(dtype) if dtype is not None and isinstance(value, np.ndarray) else value
        for value, dtype in zip(values, stored, strict=True)
    )
