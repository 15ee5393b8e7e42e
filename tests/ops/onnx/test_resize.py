import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.support.single_node import agree, floats, i64, run

COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]


@settings(max_examples=60, deadline=None)
@given(mode=st.sampled_from(["nearest", "linear", "cubic"]), coordinates=st.sampled_from(COORDINATES),
       height=st.integers(1, 9), width=st.integers(1, 9))  # fmt: skip
def test_sizes(mode, coordinates, height, width):
    agree("Resize", floats(1, 2, 5, 4), None, None, i64(1, 2, height, width), opset=13, mode=mode, rtol=1e-4,
          coordinate_transformation_mode=coordinates)  # fmt: skip


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("scale", [0.5, 1.5, 2.0, 3.0])
def test_nearest_modes(nearest_mode, scale):
    scales = np.float32([1, 1, scale, scale])
    agree("Resize", floats(1, 1, 6, 4), None, scales, opset=13, nearest_mode=nearest_mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scale", [0.5, 2.0, 1.7])
def test_opset_10_and_upsample(mode, scale):
    scales = np.float32([1, 1, scale, scale])
    agree("Resize", floats(1, 2, 4, 6), scales, opset=10, mode=mode)
    if scale > 1:
        agree("Upsample", floats(1, 2, 4, 6), scales, opset=9, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scales", [(0.6, 1.7), (0.34, 0.5), (1.3, 0.7), (0.2, 2.2)])
@pytest.mark.parametrize("coordinates", sorted({*COORDINATES, "half_pixel_symmetric"} - {"align_corners"}))
def test_scales_that_give_no_whole_length(mode, scales, coordinates):
    opset = 19 if coordinates == "half_pixel_symmetric" else 18
    agree("Resize", floats(1, 1, 6, 7), None, np.float32([1, 1, *scales]), opset=opset, mode=mode, rtol=1e-4,
          coordinate_transformation_mode=coordinates)  # fmt: skip


@pytest.mark.parametrize("scales", [(0.6, 1.7), (1.2, 1.1), (0.7, 0.3)])
def test_a_region_of_interest_changes_no_length(scales):
    roi = np.float32([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.2])
    agree("Resize", floats(1, 1, 6, 7), roi, np.float32([1, 1, *scales]), opset=13, mode="linear", rtol=1e-4,
          coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip


def test_lengths_are_products_of_single_precision():
    """10 · float32(0.7) is 6.9999999 with more digits, and 7 in float32."""
    (y,) = agree("Resize", floats(1, 1, 10, 3), None, np.float32([1, 1, 0.7, 1]), opset=13)
    assert y.shape == (1, 1, 7, 3)


def test_cubic_parameters():
    agree("Resize", floats(1, 1, 5, 5), None, np.float32([1, 1, 1.6, 0.8]), opset=13, mode="cubic", cubic_coeff_a=-0.5,
          exclude_outside=1, rtol=1e-4)  # fmt: skip


def test_neither_sizes_nor_scales_is_an_error():
    with pytest.raises(ValueError, match="expected either scales or sizes"):
        run("Resize", floats(1, 1, 2, 2), opset=13)
