"""Quotients of integers and choices between them, compiled: odd values, shapes that broadcast, divisions by 0."""

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import RunError
from onnxlab.execution.numba.provider import NumbaProvider
from tests.support.oracle import new_session

TEXT = """
<ir_version: 9, opset_import: ["" : 18]>
g (TYPE[n,m] a, TYPE[n,m] b, TYPE[1,m] c, bool[n,1] k) => (TYPE[n,m] q, TYPE[n,m] w, TYPE[n,m] v) {
    q = Div (a, b)
    w = Where (k, a, c)
    s = Add (a, c)
    v = Div (s, c)
}
"""
COMPILED = [NumbaProvider(background=False, least=0), "numpy"]


def model_of(text):
    parsed = onnx.parser.parse_model(text)
    return onnxlab.load(parsed), new_session(parsed.SerializeToString(), None)


def feeds_of(rng, dtype, pool):
    rows, columns = rng.integers(1, 5), rng.integers(1, 40)
    a = rng.choice(np.append(pool, 0), (rows, columns)).astype(dtype)
    b, c = (rng.choice(pool, shape).astype(dtype) for shape in ((rows, columns), (1, columns)))
    return {"a": a, "b": b, "c": c, "k": rng.integers(0, 2, (rows, 1)).astype(bool)}


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_quotients_and_choices(dtype: str) -> None:
    ours, session = model_of(TEXT.replace("TYPE", dtype))
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    usual = [1, -1, 2, -2, 3, -7, 100, 1 << 20]
    for number in range(24):
        is_odd = number % 2 == 1  # of the least number by -1 C leaves open what becomes
        feeds = feeds_of(rng, dtype, np.array([*usual, info.min, info.min + 1, info.max] if is_odd else usual))
        expected = ours.run(feeds, providers=["numpy"])
        results = ours.run(feeds, providers=COMPILED)
        others = zip("qwv", session.run(None, feeds), strict=True) if not is_odd else expected.items()
        for name, array in others:
            assert results[name].dtype == dtype
            np.testing.assert_array_equal(results[name], expected[name])
            np.testing.assert_array_equal(results[name], array)
    assert [part.provider for part in ours.partition(providers=COMPILED).parts] == ["numba"]


@pytest.mark.parametrize("providers", [["numpy"], COMPILED, None])
def test_a_division_by_0_is_refused_and_the_next_run_is_right(providers) -> None:
    ours, _ = model_of(TEXT.replace("TYPE", "int64"))
    feeds = feeds_of(np.random.default_rng(1), "int64", np.array([2, -3, 5]))
    for _ in range(4):
        expected = ours.run(feeds, providers=["numpy"])
        zeros = feeds | {"b": feeds["b"].copy()}
        zeros["b"].flat[-1] = 0
        with pytest.raises(RunError, match="input B holds a 0"):
            ours.run(zeros, providers=providers)
        results = ours.run(feeds, providers=providers)
        for name, array in expected.items():
            np.testing.assert_array_equal(results[name], array)


SIZES = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[n] x, int64[2] size) => (float[p,q] y) <int64[2] two = {2, 1}, int64[2] ones = {-1, 1}> {
    half = Div (size, two)
    is_one = Equal (half, ones)
    shape = Where (is_one, ones, half)
    e = Exp (x)
    y = Reshape (e, shape)
}
"""


def test_numbers_that_say_a_shape_are_left_to_numpy() -> None:
    ours, session = model_of(SIZES)
    for size in ([4, 3], [6, 2], [-2, 6], [4, 3]):
        feeds = {"x": np.arange(6, dtype=np.float32), "size": np.array(size)}
        (expected,) = session.run(None, feeds)
        np.testing.assert_allclose(ours.run(feeds, providers=COMPILED)["y"], expected, 1e-5)
    compiled = [node.op_type for part in ours.partition(providers=COMPILED).parts if part.provider == "numba"
                for node in part.nodes]  # fmt: skip
    assert "Reshape" in compiled
    assert not {"Div", "Where"} & {*compiled}
