"""Values of a region by name, while it is bound to the shapes of a call, and when those that wait are computed.

A value is a View, an array that is known while binding (a constant, or a value that follows from shapes), or an
expression that later nodes may be fused into: a Chain of elementwise operators or a Product. Chains and products are
emitted when their elements are needed, when they have several readers, or when they leave the region.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Part
from onnxlab.execution.numba.lowering.integer_products import IntegerProduct, emit_dot
from onnxlab.execution.numba.lowering.matrix_products import Product, emit_product
from onnxlab.execution.numba.lowering.winograd import emit_winograd
from onnxlab.execution.numba.plan.builder import PlanBuilder
from onnxlab.execution.numba.plan.copies import contiguous, emit_copy
from onnxlab.execution.numba.plan.elementwise_chains import (
    MAX_OPERANDS,
    MAX_STEPS,
    SMALL_FLOATS,
    Chain,
    Operand,
    QuantizedView,
    emit_chain,
    supports,
)
from onnxlab.execution.numba.plan.lowering_cache import LoweringMemo, LoweringRecord, TrackedDict
from onnxlab.execution.numba.plan.plan import Result
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array, View, channels_last, constant_view, dense
from onnxlab.execution.numba.plan.weight_packing import Key, Late, Packed, late
from onnxlab.graph.edit.snapshot import NodeView

Value: TypeAlias = "View | Array | Chain | Product"
_BY_VALUE = 64  # elements of an integer input that a plan may depend on


class UnbindableError(Exception):
    """These shapes or values are left to NumPy; the message says why."""


class RegionValues:
    """The values of a part, for the inputs of one call.

    Args:
        part: what to run.
        inputs: the arrays of the call; a plan depends on their shapes, and on elements of small integer ones if read.
        constants: {name: array} of initializers.
        packed: constants in the kernels' layouts, kept between plans.
        halves: {name: dtype} of outputs that are float16 or bfloat16. Inside, all floats are float32.
        precise: do without Winograd's convolutions, which round more.
        follows: inputs that follow from shapes: nodes that read these alone are computed while binding.
        before: records of lowering of a plan that was made before.

    Attributes:
        builder: receives the records.
        valued: numbers of the inputs whose elements were read: the plan holds for these elements only.
        levels: {name: QuantizedView} of quantized values.
        looked: names of constants whose elements may have been read: all that were asked for, except as `weights`.
    """

    def __init__(
        self,
        part: Part,
        inputs: Sequence[Array],
        constants: Mapping[str, Array],
        packed: Packed,
        halves: Mapping[str, np.dtype[Any]],
        precise: bool,
        follows: frozenset[str],
        before: Mapping[object, LoweringRecord],
    ) -> None:
        self.part = part
        self.builder = PlanBuilder()
        self.valued: set[int] = set()
        self.memo = LoweringMemo(before)
        self.levels: TrackedDict[str, QuantizedView] = TrackedDict(self.memo)
        self.looked: TrackedDict[str, bool] = TrackedDict(self.memo)
        self.packed = packed
        self._halves = TrackedDict(self.memo, halves.items())
        self._inputs = inputs
        self.precise = precise
        self._follows = TrackedDict(self.memo, ((name, True) for name in follows))
        self._number = TrackedDict(self.memo, ((name, number) for number, name in enumerate(part.inputs)))
        self._constants = TrackedDict(self.memo, constants.items())
        self._values: TrackedDict[str, Value] = TrackedDict(self.memo)
        self._emitted: TrackedDict[Chain, View] = TrackedDict(self.memo)
        self._moved: TrackedDict[str, View] = TrackedDict(self.memo)
        self._makers = TrackedDict(self.memo, ((output, node) for node in paced(part.nodes) for output in node.outputs))
        uses = Counter(name for node in paced(part.nodes) for name in node.inputs if name)
        self._uses = TrackedDict(self.memo, uses.items())
        self._outputs = TrackedDict(self.memo, ((name, number) for number, name in enumerate(part.outputs)))
        self._results: TrackedDict[int, Result] = TrackedDict(self.memo)

    # -- reading ----------------------------------------------------------------------------------------------------

    def value(self, name: str) -> Value:
        """The lowered value of that name, or the constant."""
        value = self._values.get(name)
        if value is None:
            value = self._constants[name]
            self.looked[name] = True
            if value.dtype in SMALL_FLOATS:
                value = self._values[name] = value.astype(np.float32)
        return copy(value) if isinstance(value, Product) else value  # a copy: rules fuse later nodes into it

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the value of that name."""
        value = self._values.get(name)
        return tuple((self._constants[name] if value is None else value).shape)

    def weights(self, name: str) -> tuple[Late | None, Key]:
        """A known value and its key, for callers that pack it and ask for nothing but its shape.

        Other constants can then replace it in the plan. The value is None where it is not known.
        """
        array = self._constants.get(name)
        if array is not None and name not in self._values and array.dtype == np.float32:
            return Late(lambda: array, array.shape, name=name), self.packed.key_of(array, persistent=True)
        value = self.value(name)
        return (late(value), self.key_of(name)) if isinstance(value, np.ndarray) else (None, ())

    def known(self, name: str) -> Array | None:
        """The array itself, where it is known while binding."""
        value = self.value(name)
        if isinstance(value, np.ndarray):
            return value
        number = self._number.get(name)
        if number is not None and self._inputs[number].size <= _BY_VALUE and self._inputs[number].dtype.kind in "iu":
            self.valued.add(number)
            self.memo.record.reusable = False
            return self._inputs[number]
        return None

    def maker(self, name: str) -> NodeView | None:
        """The node of the part that makes a value."""
        return self._makers.get(name)

    def integers(self, name: str) -> list[int]:
        """The elements of a value that must be known.

        Raises:
            UnbindableError: the value is not known.
        """
        array = self.known(name)
        if array is None:
            raise UnbindableError(f"{name!r} is known only when it has been computed")
        return [int(item) for item in array.reshape(-1)]

    def view(self, name: str) -> View:
        """The value in memory; a chain or product is emitted."""
        value = self.value(name)
        if isinstance(value, np.ndarray):
            return self.emit(value, name)
        if not isinstance(value, View):
            value = self._values[name] = self.emit(value, name)
        return value

    def operand(self, name: str) -> Operand:
        """The value for a chain: a number where it is a constant scalar.

        Raises:
            UnbindableError: chains do not take its dtype.
        """
        value = self.value(name)
        if isinstance(value, Chain):
            return value
        if isinstance(value, np.ndarray) and not value.shape and supports(value.dtype):
            return float(value)
        view = self.view(name)
        if not supports(view.dtype):
            raise UnbindableError(f"{name!r} is {view.dtype} in elementwise arithmetic")
        return view

    def floats(self, name: str) -> View:
        """A view of float32.

        Raises:
            UnbindableError: it has another dtype.
        """
        view = self.view(name)
        if view.dtype != np.float32:
            raise UnbindableError(f"{name!r} is {view.dtype}")
        return view

    def contiguous(self, name: str) -> View:
        """The value as float32 without gaps, copied where it has some."""
        return contiguous(self.builder, self.floats(name))

    def rows_of_channels(self, name: str) -> View:
        """[N, C, D1, …] with contiguous channels, copied if they are not."""
        return self.with_channels_last(self.floats(name))

    def with_channels_last(self, view: View) -> View:
        """A view [N, C, D1, …] with contiguous channels, copied if they are not."""
        if view.strides[1] == 4 or view.shape[1] == 1:
            return view
        return contiguous(self.builder, view, channels_last(view.shape))

    # -- writing ----------------------------------------------------------------------------------------------------

    def put(self, name: str, value: Value) -> None:
        """Name a result; it is emitted now if it has several readers or leaves the region."""
        if not name:
            return
        leaves = name in self._outputs
        if isinstance(value, Product) and leaves and value.target.contiguous and name not in self._halves:
            value.target = self._output(name, value.target.shape, value.target.dtype)
        self._values[name] = value
        if isinstance(value, (Chain, Product)) and (leaves or (self._uses.get(name) or 0) > 1):
            self.view(name)

    def offer(self, name: str, value: Value) -> None:
        """Name a result that costs no more to compute again than to read: it is emitted only when it is read."""
        if name:
            self._values[name] = value

    def combine(self, name: str, operation: str, operands: Sequence[Operand], truth: bool = False) -> None:
        """Name the result of an elementwise operation."""
        self.put(name, self.chain(operation, operands, truth=truth))

    def chain(
        self, operation: str, operands: Sequence[Operand], shape: tuple[int, ...] | None = None, truth: bool = False
    ) -> Chain:
        """An elementwise operation that is not emitted yet; operands that are chains join it while it stays small."""
        if shape is None:
            shape = np.broadcast_shapes(*(item.shape for item in operands if not isinstance(item, float)))
        chain = Chain(operation, tuple(operands), shape, truth)
        # an operand that is smaller than the result would be computed again for each place it is used in
        whole = all(item.shape == shape for item in operands if isinstance(item, Chain))
        if whole and chain.steps <= MAX_STEPS and len(chain.leaves()) <= MAX_OPERANDS:
            return chain
        settled = tuple([self.emit(item) if isinstance(item, Chain) else item for item in operands])
        return Chain(operation, settled, shape, truth)

    def allocate(self, name: str, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> View:
        """A place for a result: the caller's array if it leaves the region in this layout."""
        itemsize = np.dtype(dtype).itemsize
        plain = View(ArenaBuffer("", 0), 0, tuple(shape), tuple(strides or dense(shape, itemsize)), np.dtype(dtype))
        if name in self._outputs and plain.contiguous and name not in self._halves:
            return self._output(name, tuple(shape), dtype)
        return self.builder.allocate(shape, dtype, strides)

    def _output(self, name: str, shape: tuple[int, ...], dtype: Any) -> View:
        number = self._outputs[name]
        self._results[number] = (shape, np.dtype(dtype))
        return self.builder.output(number, shape, dtype)

    def emit_once(self, value: View | Chain) -> View:
        """Emit a value that has no name, unless it is a chain that was emitted before."""
        if isinstance(value, View):
            return value
        view = self._emitted.get(value)
        if view is None:
            view = self._emitted[value] = self.emit(value)
        return view

    def key_of(self, name: str) -> tuple[object, ...]:
        """The key of a known value, under which what is derived from it is remembered."""
        value = self.value(name)
        assert isinstance(value, np.ndarray)
        return self.packed.key_of(value, persistent=self._constants.get(name) is value)

    def emit(self, value: Value, name: str = "") -> View:
        """Emit a value, which has no name unless one is given."""
        if isinstance(value, View):
            return value
        if isinstance(value, Product):
            if isinstance(value, IntegerProduct):
                return emit_dot(self.builder, value, self.packed)
            window = value.window
            if window is not None and not self.precise:
                return emit_winograd(self.builder, value, window, self.packed)
            return emit_product(self.builder, value, self.packed)
        if isinstance(value, Chain):
            return emit_chain(self.builder, value, self.allocate(name, value.shape, value.dtype, _layout(value)))
        if self._constants.get(name) is not value:
            return constant_view(value)
        return self.packed.made(("plain", *self.packed.key_of(value, persistent=True)), value)

    def written_views(self, record: LoweringRecord) -> Iterator[tuple[str, View]]:
        """The values that a step of lowering brought to a place in memory, by name."""
        numbers = self._values.number, self._moved.number
        for (number, name), value in record.writes.items():
            if number in numbers and isinstance(value, View):
                yield name, value

    def layout(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype of a value, and the strides that it has or is going to have."""
        value = self.value(name)
        if isinstance(value, Product):
            return value.target.dtype, value.target.strides
        return value.dtype, _layout(value) if isinstance(value, Chain) else value.strides

    def write(self, name: str, target: View) -> None:
        """Write a value to a view: computed there if it is not emitted yet and has no other reader, else copied."""
        value = self.value(name)
        alone = self._uses.get(name) == 1 and name not in self._outputs
        if alone and isinstance(value, Chain):
            self._moved[name] = target
            emit_chain(self.builder, value, target)
        elif alone and type(value) is Product and value.movable and target.strides[value.axis] == 4:
            value.move(target)
            self._moved[name] = target
            self.emit(value)
        else:
            emit_copy(self.builder, self.view(name), target)


def _layout(chain: Chain) -> tuple[int, ...]:
    """Strides for a chain's result: in the order of the first operand that has its shape."""
    same = (view.strides for view in chain.leaves() if view.shape == chain.shape and view.size > 1)
    steps = next(same, None)
    order = None if steps is None else sorted(range(len(steps)), key=lambda axis: -steps[axis])
    return dense(chain.shape, chain.dtype.itemsize, order)
