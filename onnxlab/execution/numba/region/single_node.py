"""A node by itself as a plan of compiled kernels, for runs that keep values: what it reads and makes lies as usual.

    call = single(node, step, x, (weights, bias))
    y = call(context, x)

Plans share the memory that they work in: one run at a time has it. It goes with the last of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias
from weakref import ref

from onnxlab.errors import LimitError
from onnxlab.execution.base.provider import Part, Step
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.plan.memory import aligned
from onnxlab.execution.numba.plan.plan import Plan
from onnxlab.execution.numba.plan.views import Array, plain
from onnxlab.execution.numba.plan.weight_packing import SharedConstants
from onnxlab.execution.numba.region.region import BareContext, lower
from onnxlab.execution.numba.rules.loading import load
from onnxlab.execution.program.executor import NodeContext
from onnxlab.forking import fork_safe
from onnxlab.graph.edit.snapshot import NodeView

Single: TypeAlias = "Callable[[NodeContext, Array], Array | None]"
"""The node's only output; None where another run has the memory, or the budget does not suffice."""

_working = fork_safe(threading.Lock())
_memory: ref[Array] | None = None  # the largest that any plan has asked for; those that ran in it have it


def single(node: NodeView, step: Step, x: Array, constants: Sequence[Array]) -> Single | None:
    """Make the plan of a node for arrays like x and these constants; None where there can be none.

    Compiles what is missing and packs the constants.
    """
    rule = load()(node)
    if rule is None:
        return None
    engine.start()
    name, *others = node.inputs
    part = Part("numba", (node,), (name,), node.outputs)
    known, shared = dict(zip(others, constants, strict=True)), SharedConstants()
    binder = Binder(part, [x], known, lambda _: step, shared.region(), {}, BareContext(step.opsets), precise=True)
    try:
        binder.perform(node.outputs[0], node, partial(lower, binder, node))
        plan = binder.finish(engine.address_of)
    except (UnbindableError, OverflowError):
        return None
    finally:
        binder.memo.close()
    return partial(_run, plan)


def _run(plan: Plan, context: NodeContext, x: Array) -> Array | None:
    if not _working.acquire(blocking=False):
        return None
    try:
        try:
            context.reserve(plan.nbytes)
        except LimitError:  # the layouts of kernels take more than NumPy does
            return None
        plan.work_in(_room(plan.arena))
        results = plan.run(plain([x]), 1, engine.interpret, context.check, context.listening)
        return results[0]
    finally:
        _working.release()


def _room(nbytes: int) -> Array:
    """The memory, at least so large."""
    global _memory
    memory = None if _memory is None else _memory()
    if memory is None or memory.nbytes < nbytes:  # doubled at least, since frames may have the one before
        memory = aligned(1 << nbytes.bit_length())
        _memory = ref(memory)
    return memory
