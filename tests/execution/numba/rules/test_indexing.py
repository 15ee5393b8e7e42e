"""Gather, Pad, Resize and GatherBlockQuantized with compiled kernels; float16 and bfloat16."""

import ml_dtypes
import numpy as np
import pytest

from onnxlab.errors import OnnxlabError
from tests.execution.support.regions import Both, Recipe, assert_close, check


def images(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16, np.bool_])
def test_gather_along_any_axis(dtype):
    rng = np.random.default_rng(0)
    x = (images(rng, 3, 17, 5) * 4).astype(dtype)
    for axis in range(-3, 3):
        size = x.shape[axis]
        long = rng.integers(-size, size, 33).astype(np.int32)
        for indices in (rng.integers(-size, size, (2, 3)), long, np.int64(-1)):
            recipe = Recipe()
            feeds = {"x": x, "i": np.asarray(indices)}
            names = [recipe.input(name, array) for name, array in feeds.items()]
            check(recipe.model(recipe.node("Gather", *names, axis=axis)), feeds)


def test_gather_by_what_is_known_and_of_a_transposed_table():
    rng = np.random.default_rng(1)
    recipe = Recipe()
    x = images(rng, 3, 5, 7)
    turned = recipe.node("Transpose", recipe.input("x", x), perm=[2, 0, 1])
    y = recipe.node("Gather", turned, recipe.constant(np.array([6, -1, 0])), axis=0)
    check(recipe.model(recipe.node("Gather", y, recipe.constant(np.array(-2)), axis=2)), {"x": x})


def test_an_index_beyond_the_axis_names_the_node():
    recipe = Recipe()
    feeds = {"x": np.zeros((4, 3), np.float32), "i": np.array([0, 4])}
    names = [recipe.input(name, array) for name, array in feeds.items()]
    model = recipe.model(recipe.node("Exp", recipe.node("Gather", *names)))
    model.graph.node[0].name = "the table"
    both = Both(model)
    for wrong in ([0, 4], [-5, 0]):
        with pytest.raises(OnnxlabError, match="the table"):
            both.hot.run(feeds | {"i": np.array(wrong)}, keep=False)
    ours, theirs = both.run(feeds | {"i": np.array([-4, 3])})  # and the plan still serves
    assert_close(ours["v1"], theirs["v1"], 1e-6)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode):
    rng = np.random.default_rng(2)
    x = images(rng, 2, 3, 5, 4)
    for amounts, axes in (([0, 0, 2, 1, 0, 0, 1, 2], None), ([1, -1, 0, 3], [1, -1]), ([0, 1, -2, -1], [1, 2])):
        for value in (None, 2.5):
            for turned in (False, True):
                recipe = Recipe()
                name = recipe.input("x", x)
                name = recipe.node("Transpose", name, perm=[0, 2, 3, 1]) if turned else name
                extra = [recipe.constant(np.float32(value))] if value else [""]
                extra += [recipe.constant(np.array(axes))] if axes else []
                y = recipe.node("Pad", name, recipe.constant(np.array(amounts)), *extra, mode=mode)
                check(recipe.model(recipe.node("Neg", y)), {"x": x})


@pytest.mark.parametrize("opset", [2, 10])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad_by_attributes(mode, opset, ort_run):
    x = images(np.random.default_rng(2), 2, 3, 5, 4)
    for amounts in ([0, 0, 2, 1, 0, 0, 1, 2], [0, -1, 0, 0, 0, 1, 0, 0]):
        for extra in ({}, {"value": 2.5}):
            recipe = Recipe(opset)
            y = recipe.node("Pad", recipe.input("x", x), pads=amounts, mode=mode, **extra)
            model = recipe.model(recipe.node("Relu", y))
            results = check(model, {"x": x})
            if opset > 6:  # onnxruntime's oldest
                for name, expected in ort_run(model.SerializeToString(), {"x": x}).items():
                    assert_close(results[name], expected, 1e-6)


@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                         "half_pixel_symmetric"])  # fmt: skip
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(mode, coordinates, ort_run):
    rng = np.random.default_rng(3)
    x = images(rng, 2, 3, 7, 5)
    for scales, options in (((1, 1, 2, 1.7), {}), ((1, 1, 0.6, 3), {}), ((1, 1, 0.4, 0.7), {"antialias": 1})):
        if mode == "nearest" and options:
            continue
        for conv in (False, True):  # which leaves channels last
            recipe = Recipe(19)
            y = recipe.input("x", x)
            y = recipe.node("Conv", y, recipe.constant(images(rng, 3, 3, 1, 1))) if conv else y
            y = recipe.node("Resize", y, "", recipe.constant(np.array(scales, np.float32)), mode=mode,
                            coordinate_transformation_mode=coordinates, **options)  # fmt: skip
            model = recipe.model(y)
            results = check(model, {"x": x}, 1e-5)
            if mode != "nearest" and coordinates != "align_corners" and not options:  # whose length it rounds
                expected = ort_run(model.SerializeToString(), {"x": x})
                assert_close(results[y], expected[y], 1e-4)


def test_resize_to_sizes_and_upsample():
    rng = np.random.default_rng(4)
    x = images(rng, 1, 2, 5, 6)
    recipe = Recipe(19)
    sizes = recipe.constant(np.array([9, 4]))
    model = recipe.model(recipe.node("Resize", recipe.input("x", x), "", "", sizes, mode="linear", axes=[2, 3]))
    check(model, {"x": x}, 1e-5)
    for mode in ("nearest", "linear"):
        recipe = Recipe(9)
        scales = recipe.constant(np.array([1, 1, 2, 3], np.float32))
        check(recipe.model(recipe.node("Upsample", recipe.input("x", x), scales, mode=mode)), {"x": x}, 1e-5)


@pytest.mark.parametrize(("bits", "offset"), [(4, False), (4, True), (8, True)])
def test_gather_block_quantized(bits, offset):
    rng = np.random.default_rng(5)
    rows, blocks, block = 11, 3, 16
    recipe = Recipe()
    data = rng.integers(0, 256, (rows, blocks * block * bits // 8), dtype=np.uint8)
    inputs = [recipe.constant(data), "", recipe.constant(images(rng, rows, blocks))]
    feeds = {"i": rng.integers(-rows, rows, (2, 5))}
    inputs[1] = recipe.input("i", feeds["i"])
    if offset:
        inputs.append(recipe.constant(rng.integers(0, 256, (rows, -(-blocks * bits // 8)), dtype=np.uint8)))
    y = recipe.node("GatherBlockQuantized", *inputs, domain="com.microsoft", bits=bits, block_size=block)
    recipe.opset = 21
    model = recipe.model(y)
    check(model, feeds, 1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_are_widened_inside(dtype):
    rng = np.random.default_rng(6)
    recipe = Recipe()
    x = images(rng, 3, 5, 33).astype(dtype)
    x[0, 0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    y = recipe.node("MatMul", recipe.input("x", x), recipe.constant((images(rng, 33, 17) / 6).astype(dtype)))
    y = recipe.node("Relu", recipe.node("Add", y, recipe.constant(images(rng, 17).astype(dtype))))
    model = recipe.model(y)
    both = Both(model)
    ours, theirs = both.run({"x": x})
    (region,) = both.regions()
    assert not region.reason
    assert ours[y].dtype == dtype
    finite = np.isfinite(theirs[y].astype(np.float32))
    np.testing.assert_array_equal(np.isfinite(ours[y].astype(np.float32)), finite)
    np.testing.assert_allclose(ours[y][finite].astype(np.float32), theirs[y][finite].astype(np.float32), atol=0.04)
