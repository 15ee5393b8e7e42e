"""A part of a model that the Numba provider runs: a plan per set of input shapes, and NumPy until there is one.

A node that cannot be bound never makes a run fail: NumPy runs it in the region's place (see `fallback`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base import background
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import CompiledPart, Part, PartState, Step
from onnxlab.execution.base.tier import Tier
from onnxlab.execution.numba.lowering.binder import BareContext, Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.plan.plan import Plan
from onnxlab.execution.numba.plan.views import Array, plain
from onnxlab.execution.numba.plan.weight_packing import Packed
from onnxlab.execution.numba.region.bound_plans import loop_plan, short_plan
from onnxlab.execution.numba.region.fallback import NodeFallback
from onnxlab.execution.numba.region.inner_values import InnerValues, places_of, steps_of
from onnxlab.execution.numba.rules import registry
from onnxlab.execution.numba.rules.fusion.fusions import Fused, fused
from onnxlab.execution.program.executor import NodeContext, ProgramBody
from onnxlab.forking import fork_safe
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.limits import Repeated, Repetition
from onnxlab.ops import find_traits
from onnxlab.threads import thread_time

_PLANS = 16  # plans kept per region
# Plans made for the same shapes after which a region whose plans depend on values is left to NumPy for such shapes.
_MISSES = 64
_UNCOUNTED = 1 << 16  # bytes that no budget counts, as in the executor


class Region:
    """Runs a part; may be called from many threads at once.

    Args:
        part: nodes that all have rules, or are known while binding.
        constants: {name: array} of the initializers that these nodes read.
        step: gives NumPy's step of a node.
        opsets: {domain: version}.
        fallback: the whole part as a program of NumPy.
        halves: {name: dtype} of outputs that are float16 or bfloat16.
        threads: of a run.
        in_background: let NumPy run the part while kernels compile; otherwise the first call waits.
        precise: do without Winograd's convolutions.
        packed: the store of constants in the kernels' layouts.
        around: makes the program that leaves one node to NumPy.
        follows: inputs that follow from shapes, so that plans may depend on them.
        before: the region before an edit, whose plans are held until there is one that takes over their memory.

    Attributes:
        reason: why a node was last left to NumPy, "" where none was.
    """

    def __init__(
        self, part: Part, constants: Mapping[str, Array], step: Callable[[NodeView], Step],
        opsets: Mapping[str, int], fallback: ProgramBody, halves: Mapping[str, np.dtype[Any]],
        threads: Callable[[], int], in_background: bool, precise: bool, packed: Packed,
        around: Callable[[NodeView], ProgramBody], follows: frozenset[str] = frozenset(),
        before: Region | None = None,
    ) -> None:  # fmt: skip
        self.part = part
        self.reason = ""
        self._constants = constants
        self._step = step
        self._fallback = fallback
        self._opsets = opsets
        self._halves = halves
        self._threads = threads
        self._in_background = in_background
        self._precise = precise
        self._packed = packed
        self._around = cache(around)
        self._follows = follows
        about = (*halves.items(), *self._opsets.items())
        self._fixed = (tuple(map(attrgetter("id"), part.nodes)), part.inputs, part.outputs, follows, precise, about)
        self._about = (precise, *self._opsets.items())
        self._plans: Lru[Any, Plan | NodeFallback] = Lru("plans", _PLANS)
        self._valued: tuple[int, ...] = ()
        self._made: Lru[Any, int] = Lru("counts of plans", _PLANS)
        self._inner: tuple[Any, InnerValues] | None = None
        self._before: Collection[object] = () if before is None else before._before or before._plans.values()
        self._waiting = NodeFallback(fallback, None, "kernels are not ready yet")
        self._lock = fork_safe(threading.Lock())
        self._tier: Tier[Any] = Tier()
        self._tier.took[None] = 0.0  # the first plan is made at once where others have packed its constants

    def compiled_part(self, again: Callable[..., CompiledPart | None]) -> CompiledPart:
        """The region as programs run it; `again` makes it after an edit. It needs BLAS only where NumPy runs it."""
        return CompiledPart(self, self.quick, self.bound, self.repeat, self.places, self.look, self.shares, self.state,
                            self.ready, again, own_threads=True)  # fmt: skip

    def ready(self, arrays: Sequence[Any]) -> None:
        """Make the plan for arrays like these; where one is not known (None) or no plan can be made, NumPy's steps."""
        plan = self._made_ready(arrays) if all(x is not None and x.size for x in arrays) else self._waiting
        if isinstance(plan, NodeFallback):
            _ = plan.body.program

    def _made_ready(self, arrays: Sequence[Array]) -> Plan | NodeFallback:
        """The plan for these arrays; kernels that are missing are compiled, unless the process is about to end."""
        try:
            engine.start()
            with self._lock:
                return self._plans.get(self._key(arrays)) or self._bind(arrays, engine.address_of)
        except background.NotReadyError:
            return self._waiting

    def __call__(self, context: NodeContext, *arrays: Any) -> list[Any]:
        """Run the plan for the inputs' shapes, or node by node where there is none."""
        plan = self._plan(arrays)
        if isinstance(plan, Plan):
            try:
                context.reserve(plan.nbytes)
                return self._run(plan, plain(arrays), context)
            except IndexError:  # NumPy's error names the node
                plan = None
            except LimitError:  # NumPy may need less: it frees values after their last reader
                context.check()
                plan = None
        began = thread_time()
        with np.errstate(all="ignore"):
            results = context.call(self._fallback if plan is None else plan.body, arrays)
        if plan is None:
            return results
        if plan is self._waiting:  # after the run, which is not to share its processor with a compiler
            self._tier.instead[None] = thread_time() - began
            self._tier.later(self._key(arrays), partial(self._made_ready, arrays))
            self._tier.begin()
        else:
            plan.proved()
        return results

    def _run(self, plan: Plan, arrays: list[Array], context: NodeContext) -> list[Array]:
        """Run a plan; the first run after an edit begins where the plan differs from the one before."""
        run = partial(plan.run, arrays, self._threads(), engine.interpret, context.check, context.listening)
        is_first, plan.new = plan.new, False
        if not (is_first or context.is_kept) or not plan.long:
            return run()
        pasts, about = self._packed.shared.pasts, self._of_runs(arrays)
        course = pasts.course(about, plan, arrays, is_first, context.is_kept)
        if course is None:
            return run()
        try:
            context.reserve(course.nbytes)
        except LimitError:  # no room for states, which only later runs need
            return run()
        results = run(course)
        context.begins_at(course.first)
        pasts.put(about, plan, course.past(context.is_kept))
        return results

    def edited_elsewhere(self) -> bool:
        """Have the next runs begin where an edit of other nodes matters; False where parts of it hold the old model."""
        for plan in (plans := list(self._plans.values())):
            if isinstance(plan, Plan):
                plan.new = True
        return all(isinstance(plan, Plan) for plan in plans)

    def _of_runs(self, arrays: Sequence[Array]) -> Any:
        """The key of checkpoints of runs on arrays of these shapes, the same after edits of the region."""
        return self.part.inputs, self.part.outputs, *_types(arrays)

    def quick(self, *arrays: Any) -> Any:
        """Call without a context; None where one is needed: without a plan, or where it takes much time or memory."""
        plan = self._made_plan(arrays)
        if plan is None or plan.new or not plan.short or plan.nbytes > _UNCOUNTED:
            return None
        if plan.brief is None:
            plan.brief = short_plan(plan, self._threads()) or False
        if plan.brief:
            return plan.brief(*arrays)
        try:
            results = plan.run(plain(arrays), self._threads(), engine.interpret)
        except IndexError:
            return None
        return results[0] if len(results) == 1 else results

    def bound(self, *arrays: Any) -> Callable[..., Any] | None:
        """A call for arrays of these shapes without looking up the plan; None where there is none yet.

        Returns None too where the plan depends on values, takes long or has large outputs.
        """
        plan = None if self._valued else self._made_plan(arrays)
        return None if plan is None else short_plan(plan, self._threads())

    def repeat(self, context: Any, repetition: Repetition, most: int, *arrays: Any) -> Repeated | None:
        """Run the plan in a loop (see `CompiledPart`); None where there is no plan yet, or plans depend on values."""
        try:
            single = [array[0] if place in repetition.sliced else array for place, array in enumerate(arrays)]
        except (TypeError, IndexError):  # an optional input that is absent; nothing to iterate over
            return None
        plan = None if self._valued else self._made_plan(single)
        if plan is None:
            return None
        if repetition not in plan.loops:
            plan.loops[repetition] = loop_plan(plan, repetition, single, self._threads())
        loop = plan.loops[repetition]
        return None if loop is None else loop(context, most, arrays)

    def _made_plan(self, arrays: Sequence[Any]) -> Plan | None:
        """The plan for these arrays, where it has been made."""
        plan = self._known(arrays)
        return plan if type(plan) is Plan else None

    def _known(self, arrays: Sequence[Any]) -> Plan | NodeFallback | None:
        try:
            return self._plans.get(self._key(arrays))
        except AttributeError:  # an optional input that is absent
            return None

    def _key(self, arrays: Sequence[Array]) -> Any:
        key = tuple([array.shape for array in arrays])
        return (key, *[arrays[number].tobytes() for number in self._valued]) if self._valued else key

    def _plan(self, arrays: Sequence[Any]) -> Plan | NodeFallback | None:
        """The plan for these arrays, None where NumPy has to run them."""
        plan = self._known(arrays)
        if plan is not None or not all(array is not None and array.size for array in arrays):
            return plan
        if not self._in_background:
            return self._made_ready(arrays)
        return self._bound_now(arrays) or self._waiting

    def _bound_now(self, arrays: Sequence[Array]) -> Plan | NodeFallback | None:
        """The plan where it is made at once: kernels are loaded, constants packed, and making it takes little time."""
        if (
            not (self._tier.is_quick(None, self._tier.instead.get(None, 0.0)) and engine.is_ready())
            or not (self._plans or self._packed.shares)
            or not self._lock.acquire(blocking=False)
        ):
            return None
        try:
            return self._bind(arrays, engine.ready_address)
        except background.NotReadyError:
            return None
        finally:
            self._lock.release()

    def _bind(self, arrays: Sequence[Array], address_of: Callable[[str], int]) -> Plan | NodeFallback:
        """Make and remember the plan of these arrays; the caller holds the lock."""
        shapes, about = tuple(array.shape for array in arrays), _types(arrays)
        count = self._made.keep(shapes, self._made.get(shapes, 0) + 1)
        plan: Plan | NodeFallback | None = self._packed.plan((self._fixed, *about), self.part.nodes, self._constants)
        valued = set[int]()
        if count > _MISSES and self._valued:
            plan = NodeFallback(self._fallback, None, "its plans depend on values that change with every run")
        if plan is None:
            plan, binder = self._tier.timed(None, lambda: self._lowered(arrays, address_of))
            valued = binder.valued
            if isinstance(plan, Plan) and not valued:
                looked = frozenset(filter(binder.looked.has, self._constants))
                self._packed.remember((self._fixed, *about), plan, self.part.nodes, self._constants, looked)
        if isinstance(plan, Plan):
            plan.new = count == 1
        if valued - set(self._valued):
            self._valued = tuple(sorted(valued | set(self._valued)))
            self._plans.clear()
        self._before = ()
        return self._plans.keep(self._key(arrays), plan)

    def _lowered(self, arrays: Sequence[Array], address_of: Callable[[str], int]) -> tuple[Plan | NodeFallback, Binder]:
        """The plan of all nodes, or the fallback of one that cannot be lowered; and the binder that lowered them.

        Records of an earlier lowering are reused, and those of this one are kept for the next: they belong to one
        binder at a time.
        """
        earlier, about = self._packed.shared.records, (self._about, self.part.inputs, *_types(arrays))
        records = earlier.pop(about, {})
        binder = Binder(
            self.part, arrays, self._constants, self._step, self._packed, self._halves, BareContext(self._opsets),
            self._precise, self._follows, records,
        )  # fmt: skip
        try:
            for step in self._fused:
                background.rest()
                if isinstance(step, Fused):
                    binder.perform(step.match.output, step, partial(step.lower, binder, lower))
                else:
                    binder.node = step
                    binder.perform(step.outputs[0], step, partial(lower, binder, step))
            binder.node = None
            plan = binder.finish(address_of)
            records = binder.memo.made
        except background.NotReadyError:
            raise
        except (UnbindableError, OverflowError) as error:
            return self._detour(binder.node, str(error)), binder
        except Exception as error:  # a fault of a rule or of the model: only the latter fails in NumPy too
            return self._detour(binder.node, f"binding failed: {error!r}"), binder
        finally:
            earlier.keep(about, records)
        return plan, binder

    def inner_values(self, arrays: Sequence[Array]) -> InnerValues | None:
        """The values that a plan for such arrays leaves in memory; None where there is no such plan yet."""
        used = self._plans.get(key := self._key(arrays))
        if type(used) is not Plan:
            return None
        if self._inner is None or self._inner[0] != key:
            with self._lock:
                plan, binder = self._lowered(arrays, engine.address_of)
            if not isinstance(plan, Plan):
                return None
            equal = plan.trace.tokens == used.trace.tokens and np.array_equal(plan.trace.spans, used.trace.spans)
            # the memory of the plan in use is there, and in the processor's cache
            self._inner = key, InnerValues(used if equal else plan, places_of(binder), steps_of(binder))
        return self._inner[1]

    def places(self, *arrays: Array) -> frozenset[str]:
        """Names of the values that the plan for these arrays leaves in memory; none where there is no plan yet."""
        inner = self.inner_values(arrays)
        return frozenset() if inner is None else inner.names

    def look(self, context: NodeContext, names: Iterable[str], *arrays: Array) -> dict[str, Array]:
        """The requested values that the plan for these arrays leaves in memory, computed as a run computes them."""
        inner = self.inner_values(arrays)
        if inner is None:
            return {}
        before = self._packed.shared.pasts.get(self._of_runs(arrays)) if inner.plan.long else None
        return inner.read(inner.names.intersection(names), arrays, self._threads(), context, before)

    def shares(self, context: NodeContext, *arrays: Array) -> Sequence[tuple[tuple[NodeView, ...], float]]:
        """The share of each step in the time of a run; none where there is no plan yet."""
        inner = self.inner_values(arrays)
        return () if inner is None else inner.shares(arrays, self._threads(), context)

    def state(self) -> PartState:
        """The plan that was used last, or NumPy's steps in its place."""
        plan = next(reversed(self._plans.values()), None)
        nbytes = plan.nbytes if type(plan) is Plan else None
        return PartState(type(plan) is Plan, self._tier.is_compiling, self.reason, nbytes)

    @cached_property
    def _fused(self) -> list[NodeView | Fused]:
        return fused(self.part, self._constants)

    def _detour(self, node: NodeView | None, reason: str) -> NodeFallback:
        self.reason = reason
        if node is None or len(self.part.nodes) == 1:
            return NodeFallback(self._fallback, node, reason)
        return NodeFallback(self._around(node), node, reason)


def _types(arrays: Sequence[Array]) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    return [(array.shape, array.dtype) for array in arrays]


def lower(binder: Binder, node: Any) -> None:
    """Compute a node while binding where its inputs are known, else emit its records."""
    if find_traits(node.domain, node.op_type).shape_only:
        binder.shape_of(node)
    elif not binder.evaluate(node):
        rule = registry.find(node)
        if rule is None:
            raise UnbindableError(f"{node.label} was taken to be known while binding")
        rule.lower(binder, node)
