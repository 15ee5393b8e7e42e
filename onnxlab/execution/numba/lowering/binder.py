"""Binding a region to the shapes of a call: its nodes are lowered one by one to the records of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab.execution.base.provider import Part, Step
from onnxlab.execution.numba.lowering.region_values import RegionValues, UnbindableError, Value
from onnxlab.execution.numba.plan.copies import emit_copy
from onnxlab.execution.numba.plan.elementwise_chains import (
    SMALL_FLOATS,
    Chain,
    emit_chain,
)
from onnxlab.execution.numba.plan.lowering_cache import LoweringRecord
from onnxlab.execution.numba.plan.plan import Plan
from onnxlab.execution.numba.plan.views import Array, dense
from onnxlab.execution.numba.plan.weight_packing import Packed
from onnxlab.graph.edit.snapshot import NodeView

_INPUTS, _OUTPUTS = ("inputs",), ("outputs",)  # steps besides those of nodes
_LARGEST = 1 << 28  # bytes that a value may take which is computed while binding


class Binder(RegionValues):
    """Makes the plan of a part for the inputs of one call.

    Args:
        step: gives NumPy's step of a node, for nodes that are computed while binding.
        context: the RunContext for kernels that ask for one.
        part, inputs, constants, packed, halves, precise, follows, before: as `RegionValues` has them.

    Attributes:
        node: the node that is being lowered, where lowering may fail.
    """

    def __init__(
        self,
        part: Part,
        inputs: Sequence[Array],
        constants: Mapping[str, Array],
        step: Callable[[NodeView], Step],
        packed: Packed,
        halves: Mapping[str, np.dtype[Any]],
        context: Any,
        precise: bool = False,
        follows: frozenset[str] = frozenset(),
        before: Mapping[object, LoweringRecord] | None = None,
    ) -> None:
        super().__init__(part, inputs, constants, packed, halves, precise, follows, before or {})
        self._context = context
        self._step = step
        self.node: NodeView | None = None
        self.perform(_INPUTS, part.inputs, self._name_inputs)

    def perform(self, name: object, step: object, lower: Callable[[], None]) -> None:
        """Lower a step by `lower`, or reuse its earlier record where everything that it read is unchanged.

        Args:
            name: name of one of the results, which identifies the step.
            step: equals the earlier step if it does the same.
        """
        before = self.memo.begin(name, step)
        self.builder.begin(self.memo.record.piece)
        self.packed.note(self.memo.record.packed, self.memo.record.sources)
        if before is None:
            lower()
            self.memo.end(name)

    def _name_inputs(self) -> None:
        for number, (name, array) in enumerate(zip(self.part.inputs, self._inputs, strict=True)):
            if name in self._constants:
                continue
            shape, dtype = array.shape, array.dtype
            view = self.builder.piece.place("input", array.nbytes, shape, dense(shape, dtype.itemsize), dtype, number)
            self._values[name] = Chain("copy", (view,), shape) if dtype in SMALL_FLOATS else view
        self.memo.record.reusable = False

    def _followed(self, name: str) -> Value:
        """The value of a name; for an input that follows from shapes, the array itself."""
        known = self.known(name) if name in self._follows else None
        return self.value(name) if known is None else known

    def _may_be_known(self, name: str) -> bool:
        """Whether a value is an array, or an input that may be one, without noting a read of its elements."""
        value = self._values.get(name)
        return name in self._follows or isinstance(self._constants.get(name) if value is None else value, np.ndarray)

    def shape_of(self, node: NodeView) -> None:
        """Lower Shape and Size, which read nothing but the shape."""
        shape, get = self.shape(node.inputs[0]), node.attributes.get
        sizes: Any = prod(shape) if node.op_type == "Size" else shape[get("start", 0) : get("end", len(shape))]
        self._values[node.outputs[0]] = np.array(sizes, np.int64)

    def evaluate(self, node: NodeView) -> bool:
        """Compute a node with NumPy's kernel where all its inputs are known; returns whether they were."""
        if not all(map(self._may_be_known, filter(None, node.inputs))):
            return False
        values = [self._followed(name) if name else None for name in node.inputs]
        if not all(value is None or isinstance(value, np.ndarray) for value in values):
            return False
        step, self._context.outputs = self._step(node), tuple(map(bool, node.outputs))
        arguments = (self._context, *values) if step.context else values
        returned = step.call(*arguments) if step.constants is None else step.constants
        results: Sequence[Any] = returned if isinstance(returned, tuple) else (returned,)
        for name, result in zip(node.outputs, results, strict=False):
            if name:
                array = np.asarray(result)
                self._values[name] = array.astype(np.float32) if array.dtype in SMALL_FLOATS else array
        return True

    def finish(self, address_of: Callable[[str], int]) -> Plan:
        """Write the region's outputs to the caller's arrays, and make the plan."""
        self.perform(_OUTPUTS, self.part.outputs, self._bring_outputs)
        results = [((), None) if (result := self._results.get(number)) is None else result
                   for number in range(len(self.part.outputs))]  # fmt: skip
        return self.builder.finish(len(self.part.inputs), results, address_of)

    def _bring_outputs(self) -> None:
        for number, name in enumerate(self.part.outputs):
            known = self._values.get(name)
            half = self._halves.get(name)
            if isinstance(known, np.ndarray):
                frozen = self._results[number] = known.astype(known.dtype if half is None else half, copy=False).view()
                frozen.flags.writeable = False  # all runs share it
                continue
            view = self.view(name)
            if half is not None:
                emit_chain(self.builder, Chain("copy", (view,), view.shape), self._output(name, view.shape, half))
            elif view.buffer.kind != "output" or view.buffer.index != number or not view.contiguous:
                emit_copy(self.builder, view, self._output(name, view.shape, view.dtype))


class BareContext:
    """The RunContext of kernels that run while binding, on small values, without bodies or random numbers."""

    node = "a node that is computed while binding"

    def __init__(self, opsets: Mapping[str, int]) -> None:
        self._opsets = opsets
        self.outputs: tuple[bool, ...] = (True,)  # of the node that is computed

    def opset_version(self, domain: str = "") -> int:
        """The imported version of a domain, 0 where it is not imported."""
        return self._opsets.get(domain, 0)

    def reserve(self, nbytes: int, what: str = "") -> None:
        """Refuse constants that are too large to be part of a plan."""
        if nbytes > _LARGEST:
            raise UnbindableError(f"{what or 'a constant'} of {nbytes} bytes")

    def check(self) -> None:
        """Do nothing: there is no run to stop."""
