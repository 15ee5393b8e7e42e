"""Views in other shapes, against NumPy's."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from onnxlab.execution.numba.plan.builder import PlanBuilder
from onnxlab.execution.numba.plan.copies import emit_copy
from onnxlab.execution.numba.plan.views import ArenaBuffer, View, dense


@given(st.data())
def test_reshaped_where_numpy_needs_no_copy(data):
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))
    array = np.arange(prod(sizes), dtype=np.int32).reshape(sizes)
    array = array.transpose(data.draw(st.permutations(range(len(sizes)))))
    array = array[tuple(slice(data.draw(st.integers(0, size - 1)), None) for size in array.shape)]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array[..., None, :], (*array.shape[:-1], 2, array.shape[-1]))
    left, shape = array.size, []
    while left > 1:
        size = data.draw(st.sampled_from([size for size in range(2, left + 1) if left % size == 0]))
        shape += [size, *[1] * data.draw(st.integers(0, 1))]
        left //= size
    view = View(ArenaBuffer("arena", array.nbytes), 0, array.shape, array.strides, array.dtype).reshaped(shape)
    ghost = array.view()
    try:
        ghost.shape = tuple(shape)
    except AttributeError:
        assert view is None
    else:
        assert view is not None
        assert view.shape == ghost.shape
        np.testing.assert_array_equal(as_strided(array, view.shape, view.strides), ghost)


def test_no_memory_is_looked_at():
    side = 1 << 20
    down, across = dense((side, side), 4)
    view = View(ArenaBuffer("arena", 4 * side * side), 0, (side, side), (across, down), np.dtype(np.float32))
    assert view.reshaped([side * side]) is None


def test_a_record_that_leaves_its_memory_is_refused():
    builder = PlanBuilder()
    view = builder.allocate((2, 3), np.float32)
    assert view.is_inside
    assert view.at(12, (3,), (4,)).is_inside
    assert view.at(20, (3,), (-8,)).is_inside
    assert view.at(400, (0,), (4,)).is_inside
    for beyond in (view.at(16, (3,), (4,)), view.at(0, (3, 3), (12, 4)), view.at(4, (2,), (-8,))):
        assert not beyond.is_inside
        with pytest.raises(OverflowError, match="would leave its memory"):
            builder.emit("copy", 1, {}, [view], [beyond])
    with pytest.raises(OverflowError, match="a copy of"):
        emit_copy(builder, view, builder.allocate((3, 2), np.float32))
