"""Einsum of two operands against NumPy: products of stacks of matrices, whatever the order of their axes."""

import numpy as np
import pytest

from onnxlab.execution.numba.rules.onnx.einsum import terms
from tests.execution.support.regions import Both, Recipe, assert_close, check

SIZES = {"b": 2, "h": 3, "i": 7, "j": 17, "k": 5, "c": 1}


def model(equation, *letters):
    rng, recipe = np.random.default_rng(0), Recipe()
    feeds = {f"x{n}": rng.standard_normal([SIZES[x] for x in part], dtype=np.float32) for n, part in enumerate(letters)}
    inputs = [recipe.input(name, array) for name, array in feeds.items()]
    return recipe.model(recipe.node("Einsum", *inputs, equation=equation)), feeds


@pytest.mark.parametrize(
    "equation",
    ["ij,jk->ik", "bij,bkj->bik", "bhij,bhkj->bhik", "bihj,bkhj->bhik", "bij,jk", "ij,kj->ki", "i,j->ij", "ij,ij->i",
     "bi,bj->bij", "bhi,hij->bjh", "bij,bij->", "ihj,hjk->ik", "ij , jc -> ic", "cij,cjk->ikc"],
)  # fmt: skip
def test_products_of_stacks(equation):
    left, right = equation.split("->")[0].replace(" ", "").split(",")
    check(*model(equation, left, right))


def test_both_sides_the_same():
    rng, recipe = np.random.default_rng(1), Recipe()
    x = rng.standard_normal((2, 33, 17), dtype=np.float32)
    name = recipe.node("Transpose", recipe.input("x", x), perm=[0, 2, 1])
    check(recipe.model(recipe.node("Einsum", name, name, equation="bij,bkj->bik")), {"x": x})


@pytest.mark.parametrize(
    "equation", ["ii,ij->j", "ij,jk->k", "ij->ji", "...ij,jk->...ik", "ij,jk,kb->ib", "ij,jk->iik"]
)
def test_what_is_no_product_is_left_to_numpy(equation):
    assert terms(equation) is None


def test_axes_that_are_repeated_are_left_to_numpy():
    recipe, rng = Recipe(), np.random.default_rng(2)
    feeds = {"x0": rng.standard_normal((3, 1), dtype=np.float32), "x1": rng.standard_normal((4, 5), dtype=np.float32)}
    inputs = [recipe.input(name, array, ["a", "b"] if name == "x0" else ["c", "d"]) for name, array in feeds.items()]
    both = Both(recipe.model(recipe.node("Einsum", *inputs, equation="ij,jk->ik")))
    try:
        expected = both.cold.run(feeds)
    except Exception as error:
        with pytest.raises(type(error)):
            both.hot.run(feeds, keep=False)
    else:
        for name, array in both.hot.run(feeds, keep=False).items():
            assert_close(array, expected[name], 2e-6, name)
