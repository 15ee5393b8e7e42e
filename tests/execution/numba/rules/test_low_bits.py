"""MatMulNBits against NumPy's and onnxruntime's."""

import numpy as np
import pytest

from tests.execution.support.integer_operands import normal, oracle
from tests.execution.support.regions import Recipe, assert_close, check


def product(rng, rows, depth, columns, bits, block, zeros=None, bias=False, dtype=np.float32):
    """(model, feeds); `zeros` are "packed", "float" or absent."""
    blocks = -(-depth // block)
    recipe = Recipe()
    x = normal(rng, *rows, depth).astype(dtype)
    b = rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    inputs = [recipe.input("x", x), recipe.constant(b)]
    inputs.append(recipe.constant((np.abs(normal(rng, columns * blocks)) / 10).astype(dtype)))
    packed = rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    points_by_kind = {"packed": packed.reshape(-1), "float": (normal(rng, columns * blocks) * 2).astype(dtype)}
    inputs.append(recipe.constant(points_by_kind[zeros]) if zeros else "")
    if bias:
        inputs += ["", recipe.constant(normal(rng, columns).astype(dtype))]
    y = recipe.node("MatMulNBits", *inputs, domain="com.microsoft", K=depth, N=columns, bits=bits, block_size=block)
    return recipe.model(y), {"x": x}


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [None, "packed", "float"])
def test_bits_and_zero_points(bits, zeros):
    rng = np.random.default_rng(0)
    for rows, depth, columns, block in (((1,), 33, 70, 16), ((2, 3), 300, 17, 32), ((7,), 64, 128, 64)):
        model, feeds = product(rng, rows, depth, columns, bits, block, zeros, bias=len(rows) == 1)
        check(model, feeds, 4e-6, threads=2)


@pytest.mark.parametrize("bits", [4, 8])
def test_as_onnxruntime(bits):
    rng = np.random.default_rng(1)
    for rows in ((1,), (13,)):
        model, feeds = product(rng, rows, 128, 96, bits, 32, "packed")
        ours = check(model, feeds, 4e-6)
        for name, expected in oracle(model, feeds).items():
            assert_close(ours[name], expected, 4e-6, name)


def test_halves():
    model, feeds = product(np.random.default_rng(2), (5,), 64, 48, 4, 32, dtype=np.float16)
    check(model, feeds, 2e-3)
