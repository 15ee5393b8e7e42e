"""Nodes that ONNX Runtime's optimizer fuses run compiled, as ONNX Runtime runs them."""

import numpy as np
import pytest

from tests.execution.support.regions import Recipe, assert_close, check

DOMAIN = "com.microsoft"
ACTIVATIONS = {
    "": (), "Relu": (), "Tanh": (), "Sigmoid": (), "LeakyRelu": (0.3,), "HardSigmoid": (0.25, 0.4), "Clip": (-0.5, 0.7),
}  # fmt: skip


def agree(recipe, outputs, feeds, ort_run):
    model = recipe.model(*outputs)
    ours = check(model, feeds, 4e-6)
    for name, expected in ort_run(model.SerializeToString(), feeds).items():
        assert_close(ours[name], expected, 4e-6, name)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("added", [False, True])
def test_convolutions(activation, added, ort_run):
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, 6, 9, 7), np.float32), "z": rng.standard_normal((2, 10, 9, 7), np.float32)}
    for group in (1, 2):
        recipe = Recipe(17)
        x, z = (recipe.input(name, array) for name, array in feeds.items())
        w, b = (rng.standard_normal(shape, np.float32) for shape in ((10, 6 // group, 3, 3), 10))
        operands = [x, recipe.constant(w / 5), recipe.constant(b), *([z] if added else [])]
        options = {"activation": activation, "activation_params": ACTIVATIONS[activation]}
        options = {name: value for name, value in options.items() if value}
        y = recipe.node("FusedConv", *operands, domain=DOMAIN, group=group, pads=[1, 1, 1, 1], **options)
        agree(recipe, [y, recipe.node("Neg", z)], feeds, ort_run)


@pytest.mark.parametrize("activation", [*ACTIVATIONS][1:-1])  # ONNX Runtime's has no Clip
def test_gemm(activation, ort_run):
    rng = np.random.default_rng(1)
    feeds = {"a": rng.standard_normal((5, 12), np.float32)}
    recipe = Recipe(17)
    constants = [rng.standard_normal(shape, np.float32) for shape in ((7, 12), 7)]
    operands = [recipe.input("a", feeds["a"]), *map(recipe.constant, constants)]
    names = ("activation_alpha", "activation_beta")
    options = dict(zip(names, ACTIVATIONS[activation], strict=False))
    y = recipe.node(
        "FusedGemm", *operands, domain=DOMAIN, transB=1, alpha=0.7, beta=1.5, activation=activation, **options
    )
    agree(recipe, [y], feeds, ort_run)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_products(constant, turned, lead, ort_run):
    rng = np.random.default_rng(2)
    left = (*lead, 5, 9)
    right = (9, 4) if constant else (*lead, 9, 4)
    pairs = zip((left, right), turned, strict=True)
    a, b = ((*shape[:-2], shape[-1], shape[-2]) if turn else shape for shape, turn in pairs)
    feeds = {"a": rng.standard_normal(a, np.float32)}
    matrix = rng.standard_normal(b, np.float32)
    recipe = Recipe(17)
    source = recipe.input("a", feeds["a"])
    if constant:
        other = recipe.constant(matrix)
    else:
        feeds["b"] = matrix
        other = recipe.input("b", matrix)
    y = recipe.node("FusedMatMul", source, other, domain=DOMAIN, transA=turned[0], transB=turned[1], alpha=0.125)
    agree(recipe, [recipe.node("Softmax", y), y], feeds, ort_run)


@pytest.mark.parametrize("batches", [(1, 0), (0, 1), (1, 1)])
def test_products_over_an_axis_before_the_batch(batches, ort_run):
    rng = np.random.default_rng(3)
    shapes = {"a": (3, 2, 4, 5), "b": (3, 2, 5, 6)}
    recipe, feeds, names = Recipe(17), {}, []
    for (name, shape), batch in zip(shapes.items(), batches, strict=True):
        fed_shape = (shape[-2], *shape[:-2], shape[-1]) if batch else shape
        feeds[name] = rng.standard_normal(fed_shape, np.float32)
        names.append(recipe.input(name, feeds[name]))
    y = recipe.node("FusedMatMul", *names, domain=DOMAIN, transBatchA=batches[0], transBatchB=batches[1])
    agree(recipe, [y], feeds, ort_run)


def test_gelus_of_a_product_and_alone(ort_run):
    rng = np.random.default_rng(4)
    feeds = {"x": 2 * rng.standard_normal((2, 5, 16), np.float32)}
    recipe = Recipe(17)
    x = recipe.input("x", feeds["x"])
    bias = recipe.constant(rng.standard_normal(16, np.float32))
    w = recipe.constant(rng.standard_normal((16, 16), np.float32) / 4)
    outputs = []
    for source in (x, recipe.node("MatMul", x, w)):
        outputs += [
            recipe.node("BiasGelu", source, bias, domain=DOMAIN),
            recipe.node("FastGelu", source, bias, domain=DOMAIN),
            recipe.node("FastGelu", source, domain=DOMAIN),
            recipe.node("QuickGelu", source, domain=DOMAIN),
            recipe.node("QuickGelu", source, domain=DOMAIN, alpha=1.0),
        ]
    agree(recipe, outputs, feeds, ort_run)
