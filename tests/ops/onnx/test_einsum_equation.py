"""One reading of an Einsum's equation: shapes, sizes and values against NumPy."""

import numpy as np
import pytest

from onnxlab.execution.base import output_sizes
from tests.ops.support.single_node import check_facts, floats, model, run

CASES = {
    "ij,jk": [(2, 3), (3, 4)],
    "...ij,...jk": [(5, 2, 3), (5, 3, 4)],
    "b...i -> b...": [(2, 3, 4)],
    "ii->i": [(3, 3)],
    " a b , b -> a ": [(2, 3), (3,)],
    "...i,...i": [(4, 3), (4, 3)],
    "Zb,bA": [(2, 3), (3, 4)],
    "i,i->": [(3,), (3,)],
    "ij...->...ij": [(2, 3, 7, 5)],
}


@pytest.mark.parametrize(("equation", "shapes"), CASES.items())
def test_as_numpy_reads_it(equation, shapes):
    inputs = [floats(*shape) for shape in shapes]
    expected = np.einsum(equation, *inputs)
    np.testing.assert_allclose(run("Einsum", *inputs, opset=12, equation=equation)[0], expected, rtol=1e-5)
    feeds = {f"x{slot}": array for slot, array in enumerate(inputs)}
    check_facts(model("Einsum", inputs, {"equation": equation}, 12, "", 1), feeds, [expected])
    estimate = output_sizes.find("", "Einsum", 12, {"equation": equation})
    assert estimate(*inputs) >= expected.nbytes
