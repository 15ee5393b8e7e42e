"""Views in other shapes, against NumPy's."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from onnxlab.execution.numba.plan.views import Buffer, View, dense


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
    view = View(Buffer("arena", array.nbytes), 0, array.shape, array.strides, array.dtype).reshaped(shape)
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
    view = View(Buffer("arena", 4 * side * side), 0, (side, side), (across, down), np.dtype(np.float32))
    assert view.reshaped([side * side]) is None
