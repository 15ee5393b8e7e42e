import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onnxlab import ops
from onnxlab.ops.onnx.nn import conv
from tests.ops.support.single_node import agree, floats, run


@pytest.fixture(scope="module", autouse=True, params=["small images by an index", "small images like large ones"])
def ways(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param.endswith("large ones"):
            patch.setattr(conv, "_LITTLE", 0)
        yield


@settings(max_examples=60, deadline=None)
@given(
    spatial=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    data=st.data(),
    group=st.sampled_from([1, 2, 4]),
    per_group=st.integers(1, 3),
    batch=st.integers(1, 2),
)
def test_convolution_of_any_geometry(spatial, data, group, per_group, batch):
    rank = len(spatial)
    draw = lambda low, high: data.draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))  # noqa: E731
    kernel, strides, dilations = draw(1, 3), draw(1, 3), draw(1, 2)
    pads = draw(0, 2) + draw(0, 2)
    padded = [dim + pads[i] + pads[i + rank] for i, dim in enumerate(spatial)]
    assume(all((k - 1) * d + 1 <= dim for k, d, dim in zip(kernel, dilations, padded, strict=True)))
    x, w = floats(batch, group * per_group, *spatial), floats(group * 2, per_group, *kernel, seed=1)
    geometry = {"strides": strides, "dilations": dilations, "pads": pads, "group": group}
    agree("Conv", x, w, floats(group * 2, seed=2), opset=11, **geometry)
    depthwise = floats(group * per_group, 1, *kernel, seed=3)
    agree("Conv", x, depthwise, opset=11, **{**geometry, "group": group * per_group})


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding(auto_pad):
    x, w = floats(1, 2, 7, 8), floats(3, 2, 3, 2, seed=1)
    agree("Conv", x, w, opset=11, auto_pad=auto_pad, strides=[2, 3])


def test_patches_of_a_large_image_are_gathered_in_parts(monkeypatch):
    monkeypatch.setattr(conv, "PATCHES", 500)
    x, b = floats(1, 4, 20, 17), floats(4)
    agree("Conv", x, floats(4, 4, 3, 3, seed=1), b, opset=11, pads=[1, 1, 1, 1])
    agree("Conv", x, floats(4, 1, 3, 3, seed=1), b, opset=11, pads=[1, 1, 1, 1], group=4)
    agree("Conv", x, floats(4, 2, 3, 3, seed=1), b, opset=11, pads=[2, 1, 2, 1], dilations=[2, 1], group=2)
    agree("Conv", x, floats(4, 4, 3, 3, seed=1), b, opset=11, pads=[1, 1, 1, 1], strides=[1, 2])


@pytest.mark.parametrize("size", [(40,), (9, 7), (5, 4, 3)])
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_windows_that_keep_the_size(size, dilation, auto_pad):
    """A tap that reads beyond the end of a line reads padding, not the line behind it."""
    rank = len(size)
    for kernel in ((3,) * rank, (2, 5, 1)[:rank]):
        x, w = floats(2, 4, *size), floats(4, 2, *kernel, seed=1)
        pads = [(k - 1) * dilation for k in kernel]
        small, large = [pad // 2 for pad in pads], [pad - pad // 2 for pad in pads]
        chosen = small + large if auto_pad == "SAME_UPPER" else large + small
        agree("Conv", x, w, floats(4), opset=11, group=2, dilations=[dilation] * rank, pads=chosen)


def test_a_depthwise_convolution_of_a_transposed_image():
    x, w = floats(2, 9, 8, 4).transpose(0, 3, 1, 2), floats(4, 1, 3, 3, seed=1)
    (y,), (contiguous,) = run("Conv", x, w, opset=11, group=4), run("Conv", x.copy(), w, opset=11, group=4)
    np.testing.assert_array_equal(y, contiguous)


def test_a_long_dilated_convolution_takes_little_memory():
    import tracemalloc

    x, w = floats(1, 1, 200_000), floats(8, 1, 64, seed=1)
    tracemalloc.start()
    run("Conv", x, w, opset=11, dilations=[512])
    assert tracemalloc.get_traced_memory()[1] < 4 * (x.nbytes + 8 * x.nbytes)
    tracemalloc.stop()


@settings(max_examples=30, deadline=None)
@given(size=st.integers(2, 6), kernel=st.integers(1, 4), stride=st.integers(1, 3), dilation=st.integers(1, 2),
       group=st.sampled_from([1, 2]), extra=st.integers(0, 1))  # fmt: skip
def test_transposed(size, kernel, stride, dilation, group, extra):
    assume(extra < stride)
    x, w = floats(2, 4, size, size + 1), floats(4, 3, kernel, kernel, seed=1)
    agree("ConvTranspose", x, w, floats(3 * group), opset=11, group=group, strides=[stride, stride],
          dilations=[dilation, dilation], output_padding=[extra, extra])  # fmt: skip


@pytest.mark.parametrize(
    "attributes",
    [{"output_padding": [-1, -1]}, {"output_padding": [0, -9]}, {"strides": [0, 1]}, {"strides": [1, -2]},
     {"dilations": [0, 1]}, {"dilations": [1, -1]}, {"strides": [-5, -5], "dilations": [-5, -5]}],
)  # fmt: skip
def test_nothing_is_written_beyond_a_transposed_convolution(attributes):
    with pytest.raises(ValueError, match=r"reach beyond the output|expected 1 at least"):
        run("ConvTranspose", floats(1, 2, 5, 5), floats(2, 2, 3, 3), opset=11, **attributes)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(0, 5), kernel=st.integers(1, 7), stride=st.integers(1, 4), more=st.integers(0, 3))
def test_transposed_signals(size, kernel, stride, more):
    x, w = floats(1, 2, size), floats(2, 3, kernel, seed=1)
    (y,) = run("ConvTranspose", x, w, opset=11, strides=[stride], output_padding=[more])
    expected = np.zeros((3, max(0, (size - 1) * stride + kernel + more)), np.float32)
    for place in range(size):
        expected[:, place * stride : place * stride + kernel] += np.einsum("c,cmk->mk", x[0, :, place], w)
    np.testing.assert_allclose(y[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("batch", "channels"), [(0, 4), (2, 0), (0, 0)])
def test_transposed_without_elements(batch, channels):
    (y,) = run("ConvTranspose", floats(batch, channels, 3, 4), floats(channels, 5, 3, 3), opset=11)
    assert y.shape == (batch, 5, 5, 6)
    assert not y.any()


def test_half_precision():
    x, w = floats(1, 8, 9, 9, dtype=np.float16), floats(8, 8, 3, 3, seed=1, dtype=np.float16)
    (y,) = run("Conv", x, w, opset=11)
    (wide,) = run("Conv", x.astype(np.float32), w.astype(np.float32), opset=11)
    np.testing.assert_array_equal(y, wide.astype(np.float16))


def test_errors_say_what_does_not_fit():
    with pytest.raises(ValueError, match=r"X has 3 channels; W of shape \(4, 2, 3, 3\) in 1 groups takes 2"):
        run("Conv", floats(1, 3, 8, 8), floats(4, 2, 3, 3), opset=11)
    with pytest.raises(ValueError, match="a window of 9 does not fit"):
        run("Conv", floats(1, 3, 8, 8), floats(4, 3, 9, 9), opset=11)


@pytest.mark.parametrize("spatial", [(1,), (3,), (40,), (2, 20), (17, 5), (3, 2, 18)])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 17])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_transposed_convolution_of_long_and_of_short_lines(spatial, size, stride):
    rank = len(spatial)
    x, w = floats(1, 4, *spatial), floats(4, 3, *(2,) * (rank - 1), size, seed=1)
    x.flat[0], x.flat[-1] = np.inf, -np.inf
    agree("ConvTranspose", x, w, floats(3, seed=2), opset=11, strides=[1] * (rank - 1) + [stride])


def test_one_node_convolves_inputs_of_many_shapes_and_types():
    """Shapes and types that a node gets by turns: nothing that is kept for one meets another."""
    attributes = {"pads": [1, 1, 1, 1], "strides": [1, 2], "group": 2}
    w, b = floats(6, 2, 3, 3, seed=1), floats(6, seed=2)
    call = ops.find_kernel("", "Conv", 11).of(attributes)
    shapes = [(1, 4, 5, 5), (1, 4, 40, 40), (3, 4, 5, 5), (1, 4, 1, 1), (0, 4, 5, 5), (2, 4, 30, 7), (1, 4, 6, 5)]
    for _ in range(2):
        for shape in shapes:
            x = floats(*shape)
            for dtype, rtol in ((np.float32, 1e-5), (np.float64, 1e-5), (np.float16, 1e-2)):
                y = call(Unlimited(), *(array.astype(dtype) for array in (x, w, b)))
                assert y.dtype == dtype
                expected = run("Conv", *(array.astype(dtype) for array in (x, w, b)), opset=11, **attributes)[0]
                np.testing.assert_array_equal(y, expected)
                wide = run("Conv", x, w, b, opset=11, **attributes)[0]
                np.testing.assert_allclose(y, wide, rtol=rtol, atol=rtol)
    with pytest.raises(ValueError, match="takes 4"):
        call(Unlimited(), floats(1, 5, 5, 5), w, b)
    with pytest.raises(ValueError, match="equal ranks"):
        call(Unlimited(), floats(1, 4, 5), w, b)


@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
def test_kernels_of_one_element_read_any_layout(batch, bias, strides):
    x, w = floats(8, 7, 5, batch).transpose(3, 2, 0, 1), floats(3, 5, 1, 1, seed=1)
    inputs = [x, w, *([floats(3, seed=2)] if bias else [])]
    agree("Conv", *inputs, opset=11, strides=[strides, strides])
    call = ops.find_kernel("", "Conv", 11).of({"strides": [strides, strides]})
    np.testing.assert_array_equal(call(Unlimited(), *inputs), call(Unlimited(), np.ascontiguousarray(x), *inputs[1:]))


class Unlimited:
    """A RunContext that nothing stops."""

    def check(self):
        pass
