import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.support.single_node import agree, floats, run

SIZES = st.lists(st.integers(3, 9), min_size=1, max_size=2)


@settings(max_examples=50, deadline=None)
@given(spatial=SIZES, kernel=st.integers(1, 3), stride=st.integers(1, 3), pad=st.integers(0, 1),
       ceil=st.integers(0, 1), include=st.integers(0, 1), dilation=st.integers(1, 2))  # fmt: skip
def test_pools(spatial, kernel, stride, pad, ceil, include, dilation):
    rank = len(spatial)
    assume(pad < kernel and all((kernel - 1) * dilation + 1 <= dim + 2 * pad for dim in spatial))
    x = floats(2, 3, *spatial)
    geometry = {
        "kernel_shape": [kernel] * rank,
        "strides": [stride] * rank,
        "pads": [pad] * 2 * rank,
        "ceil_mode": ceil,
    }
    agree("MaxPool", x, opset=12, dilations=[dilation] * rank, **geometry)
    agree("AveragePool", x, opset=19, count_include_pad=include, dilations=[dilation] * rank, **geometry)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_indices_of_maxima(storage_order):
    agree("MaxPool", floats(2, 3, 6, 7), opset=12, outputs=2, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1],
          storage_order=storage_order)  # fmt: skip


def test_integers_have_no_minus_infinity():
    x = np.random.default_rng(0).integers(-128, 127, (1, 2, 5, 5)).astype(np.int8)
    agree("MaxPool", x, opset=12, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5)])
def test_global_pools_of_any_rank(op_type, shape):
    agree(op_type, floats(*shape), opset=11)


def test_unpooling_is_the_inverse():
    x = floats(1, 2, 6, 6)
    pooled, indices = run("MaxPool", x, opset=12, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    agree("MaxUnpool", pooled, indices, opset=11, kernel_shape=[2, 2], strides=[2, 2])
