"""NumPy's kernels, and compiled ones in their place where they take long in runs that keep every value.

This is the provider of a Runner that is given none. What edits reach is computed again and again: a node that was, with
the same constants, gets a kernel compiled in the background, which runs it from then on unless it is the slower one.
No call waits for it, the first runs are NumPy's, and results are the same but for how sums are rounded.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import is_
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from onnxlab.execution.base import background
from onnxlab.execution.base.provider import Part, PartitionView, Step
from onnxlab.execution.numba.machine import availability
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.program.executor import NodeContext
from onnxlab.graph.edit.snapshot import NodeView

if TYPE_CHECKING:
    from onnxlab.execution.numba.region.single_node import Single

_GAINING = frozenset(("Conv",))
"""Operators of which a compiled kernel alone, which keeps to the usual layout, is much faster than NumPy's."""

_LONG = 3e-4
"""Seconds of NumPy's kernel from which another is worth to be made."""

_TRIED = 5
"""Calls of the other kernel after which it is known whether it is the slower one."""

_SLOWER = 1.25
"""How many times as long as NumPy's it has to take at the least to be the slower one: a machine has its moods."""

_SINGLE = np.dtype(np.float32)


class TieredNumpyProvider(NumpyProvider):
    """NumPy, which hastens what it runs again and again."""

    def __init__(self) -> None:
        self._hastened: WeakValueDictionary[NodeView, TieredKernel] = WeakValueDictionary()  # those of plans in use

    def compile(self, part: Part, view: PartitionView) -> list[Step]:
        """One step per node. Raises as NumPy's."""
        steps = super().compile(part, view)
        if not view.keep:
            return steps
        nodes = {node.id: node for node in part.nodes if node.op_type in _GAINING}
        return [self._step(step, nodes.get(step.node)) for step in steps] if nodes else steps

    def _step(self, step: Step, node: NodeView | None) -> Step:
        if node is None or not step.pure or step.op not in _GAINING or len(step.outputs) > 1 or availability.missing():
            return step
        kernel = self._hastened.get(node)
        if kernel is None or kernel.step is not step:
            kernel = self._hastened[node] = TieredKernel(step, node)
        return replace(step, call=kernel, context=True)


@dataclass(slots=True, eq=False)
class _Case:
    """Inputs of a node to compile for: arrays of a shape, and constants.

    Attributes:
        call: what runs it in NumPy's place; None as long as there is none.
        begun: whether compiling has begun.
        seconds: that NumPy took at the least; `tried` those of the other.
    """

    shape: tuple[int, ...]
    constants: tuple[Any, ...]
    call: Single | None = None
    begun: bool = False
    seconds: float = inf
    tried: list[float] = field(default_factory=list)

    def holds(self, x: Any, constants: Sequence[Any]) -> bool:
        """Whether these are like those."""
        if x.shape != self.shape or len(constants) != len(self.constants):
            return False
        return all(map(is_, constants, self.constants))


class TieredKernel:
    """A node's kernel: NumPy's until there is a compiled one for what it is given, if that takes long."""

    def __init__(self, step: Step, node: NodeView) -> None:
        self.step = step
        self._node = node
        self._case = _Case((), ())

    def __call__(self, context: NodeContext, *arrays: Any) -> Any:
        """Run the compiled kernel where it suits and is faster, NumPy's otherwise."""
        if not all(type(array) is np.ndarray and array.dtype == _SINGLE for array in arrays):
            return self._by_numpy(context, arrays)
        x, *constants = arrays
        case = self._case
        if not case.holds(x, constants):  # of several callers one has its way: the others' cases come again
            self._case = _Case(x.shape, tuple(constants))
            return self._by_numpy(context, arrays)
        call, began = case.call, perf_counter()
        result = call(context, x) if call is not None else None
        if result is not None:
            self._compare(case, perf_counter() - began)
            return result
        result = self._by_numpy(context, arrays)
        case.seconds = min(case.seconds, perf_counter() - began)
        if not case.begun and case.seconds > _LONG and x.size:
            case.begun = True
            background.do(lambda: self._hasten(case))
        return result

    def _compare(self, case: _Case, seconds: float) -> None:
        """Go back to NumPy where it is quicker."""
        if len(case.tried) < _TRIED:
            case.tried.append(seconds)
            if len(case.tried) == _TRIED and min(case.tried) > _SLOWER * case.seconds:
                case.call = None

    def _by_numpy(self, context: NodeContext, arrays: Sequence[Any]) -> Any:
        return self.step.call(context, *arrays) if self.step.context else self.step.call(*arrays)

    def _hasten(self, case: _Case) -> None:
        """In the background: have a kernel ready for a case."""
        if case is not self._case:  # meanwhile it is another
            return
        module = importlib.import_module("onnxlab.execution.numba.region.single_node")
        x = np.broadcast_to(_SINGLE.type(0), case.shape)
        case.call = module.single(self._node, self.step, x, case.constants)
