"""Concat whose inputs are made in their place, tiles, blocks and groups, and copies that threads share."""

import numpy as np
import pytest

from onnxlab.errors import RunError
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.plan.copies import _split
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, assert_close, check


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def records(model, feeds):
    both = Both(model)
    both.run(feeds)
    (plan,) = plans_of(both.regions()[0]).values()
    return plan.records


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("size", [7, 16])
def test_convolutions_write_into_their_part(size, precise):
    rng = np.random.default_rng(0)
    recipe = Recipe()
    x = normal(rng, 2, 33, size, size)
    name, parts = recipe.input("x", x), []
    for out_channels, kernel in ((17, 1), (40, 3), (1, 1)):
        w = recipe.constant(normal(rng, out_channels, 33, kernel, kernel) / 10)
        parts.append(recipe.node("Relu", recipe.node("Conv", name, w, pads=[kernel // 2] * 4)))
    parts.append(recipe.node("MaxPool", name, kernel_shape=[1, 1]))
    y = recipe.node("Concat", *parts, axis=1)
    check(recipe.model(recipe.node("GlobalAveragePool", y), y), {"x": x}, 1e-5, precise=precise)


def test_products_chains_and_what_others_read():
    rng = np.random.default_rng(1)
    x = normal(rng, 3, 5, 33)
    for axis in (-1, 0, 1):
        recipe = Recipe()
        name = recipe.input("x", x)
        product = recipe.node("MatMul", name, recipe.constant(normal(rng, 33, 33)))
        added = recipe.node("Add", recipe.node("MatMul", name, recipe.constant(normal(rng, 33, 33))), name)
        chain = recipe.node("Tanh", recipe.node("Neg", name))
        twice = recipe.node("MatMul", name, recipe.constant(normal(rng, 33, 33)))
        constant = recipe.constant(normal(rng, 3, 5, 33))
        y = recipe.node("Concat", product, added, chain, twice, twice, constant, name, axis=axis)
        check(recipe.model(recipe.node("Abs", y), twice), {"x": x}, 1e-5)


def test_a_column_of_a_wider_value_is_written_where_it_belongs():
    recipe, x = Recipe(), normal(np.random.default_rng(3), 3, 1)
    name = recipe.input("x", x)
    y = recipe.node("Concat", recipe.node("Abs", name), recipe.node("Tanh", recipe.node("Neg", name)), axis=1)
    check(recipe.model(recipe.node("Abs", y), y), {"x": x}, 1e-5)


def test_nothing_is_copied_that_can_be_made_in_place():
    rng = np.random.default_rng(2)
    recipe = Recipe()
    x = normal(rng, 1, 32, 5, 5)
    name = recipe.node("Transpose", recipe.input("x", x), perm=[0, 3, 1, 2])
    parts = [recipe.node("Conv", name, recipe.constant(normal(rng, 8, 5, 1, 1))) for _ in range(3)]
    model = recipe.model(recipe.node("GlobalMaxPool", recipe.node("Concat", *parts, axis=1)))
    assert records(model, {"x": x}) == 5  # three products, the pool, and its result to the caller
    check(model, {"x": x}, 1e-5)


def test_copies_are_cut_along_lines_and_not_into_crumbs():
    outer, inner = _split([(3025, 256, 512), (64, 4, 4)], 4)
    assert outer == [(25, 256 * 121, 512 * 121)]
    assert inner == [(121, 256, 512), (64, 4, 4)]
    assert _split([(1, 0, 0), (1 << 14, 4, 4)], 4)[1] == [(1, 0, 0), (2048, 4, 4)]
    assert _split([(17, 4, 4), (19, 4, 4)], 4) == ([], [(17, 4, 4), (19, 4, 4)])


@pytest.mark.parametrize("op_type", ["Split", "Concat"])
def test_parts_that_do_not_fit_are_refused_before_a_kernel_goes_beyond_them(op_type):
    recipe, x = Recipe(), normal(np.random.default_rng(4), 2, 6)
    names = [recipe.input(name, x, dims) for name, dims in (("x", ["n", "m"]), ("y", ["k", "l"]))]
    first, second = (recipe.node("Relu", name) for name in names)
    if op_type == "Split":
        outputs = recipe.nodes_of("Split", 2, first, recipe.constant(np.array([4, 40])), axis=1)
    else:
        outputs = [recipe.node("Concat", first, second, axis=1)]
    both = Both(recipe.model(*outputs, second))
    for runner in (both.hot, both.cold):
        with pytest.raises(RunError, match=r"add up|differ"):
            runner.run({"x": x, "y": normal(np.random.default_rng(5), 3, 6)}, keep=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8])
def test_tiles_and_blocks(dtype):
    rng = np.random.default_rng(7)
    x = rng.integers(0, 99, (2, 12, 4, 6)).astype(dtype)
    recipe = Recipe()
    source = recipe.input("x", x)
    turned = recipe.node("Transpose", source, perm=[0, 1, 3, 2])  # a view
    outputs = []
    for image_or_turned in (source, turned):
        spread = [recipe.node("DepthToSpace", image_or_turned, blocksize=2, mode=mode) for mode in ("DCR", "CRD")]
        outputs += [
            recipe.node("Tile", image_or_turned, recipe.constant(np.array([1, 2, 3, 1]))),
            *spread,
            *(recipe.node("SpaceToDepth", image, blocksize=2) for image in (image_or_turned, spread[0])),
        ]
    check(recipe.model(*outputs), {"x": x}, 0)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize(("shape", "groups"), [((2, 12, 5, 3), 3), ((1, 17, 9), 17), ((3, 6, 1, 1), 1)])
def test_normalized_groups(opset, shape, groups, ort_run):
    rng = np.random.default_rng(8)
    x = rng.standard_normal(shape, np.float32)
    recipe = Recipe(opset)
    parameters = [rng.standard_normal(groups if opset < 21 else shape[1], np.float32) for _ in range(2)]
    operands = [recipe.input("x", x), *map(recipe.constant, parameters)]
    y = recipe.node("GroupNormalization", *operands, num_groups=groups, epsilon=0.01)
    model = recipe.model(y, recipe.node("Relu", y))
    ours = check(model, {"x": x}, 3e-6)
    for name, expected in ort_run(model.SerializeToString(), {"x": x}).items():
        assert_close(ours[name], expected, 3e-6, name)


def test_normalizations_with_too_few_parameters_are_refused_as_numpy_does():
    x = np.ones((1, 6, 4), np.float32)
    recipe = Recipe()
    operands = [recipe.input("x", x), *(recipe.constant(np.ones(5, np.float32)) for _ in range(2))]
    both = Both(recipe.model(recipe.node("InstanceNormalization", *operands)))
    for runner in (both.cold, both.hot):
        with pytest.raises(RunError):
            runner.run({"x": x}, keep=False)


def test_transposes_are_cut_into_whole_squares():
    lanes = host().lanes
    for size in (196, 784, 49 * lanes):
        ((parts, _, _),), ((rows, _, _), (columns, _, _)) = _split([(size, 4, 4096), (1024, 4 * size, 4)], 4)
        assert parts > 1
        assert parts * rows * columns == size * 1024
        assert parts * (rows // lanes) * (columns // lanes) >= 0.9 * size * 1024 / lanes**2
