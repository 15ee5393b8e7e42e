"""Loops that carry their weights: as good as constants of the body, until a feed says otherwise."""

from functools import partial

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import RunError
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.limits import Limits
from tests.execution.support.internals import plans_of, programs_of
from tests.execution.support.regions import Both
from tests.support.oracle import oracle

TEXT = """
<ir_version: 10, opset_import: ["" : 17]>
loop (float[2, 4] x, int64 n, float[4, 4] w) => (float[2, 4] y, float[2, 4] z)
<bool go = {1}, int64[1] zero = {0}>
{
    y, same, kept, other = Loop(n, go, x, w, v, v) <
        body = b (int64 i, bool c, float[2, 4] s, float[4, 4] wi, float[4, 4] vi, float[4, 4] oi)
            => (bool d, float[2, 4] t, float[4, 4] wo, float[4, 4] vi, float[4, 4] oo) {
            d = Identity(c)  wo = Identity(wi)  oo = Add(wi, oi)
            a = MatMul(s, wi)  e = MatMul(a, vi)  f = MatMul(e, oi)  t = Tanh(f)
        }
    >
    p = Unsqueeze(x, zero)
    u, k, scanned = Scan(x, w, p) <
        num_scan_inputs = 1,
        body = b2 (float[2, 4] s2, float[4, 4] w2, float[2, 4] x2)
            => (float[2, 4] t2, float[4, 4] w2, float[2, 4] o2) { t2 = MatMul(x2, w2)  o2 = Add(t2, s2) }
    >
    z = Squeeze(scanned, zero)
}
"""
FEEDS = {"x": np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32), "n": np.array(3)}


class Watching(Provider):
    """A provider that takes nothing, but remembers which products are by constants where they stand."""

    name = "watching"

    def __init__(self):
        self.seen = {}

    def get_capability(self, view):
        for node in view.nodes:
            if node.op_type == "MatMul":
                self.seen[node.inputs[1]] = view.constant(node.inputs[1]) is not None
        return []

    def compile(self, part, view):
        raise AssertionError(f"{part} was never asked for")


@pytest.fixture
def model():
    proto = onnx.parser.parse_model(TEXT)
    rng = np.random.default_rng(0)
    for name in ("w", "v"):
        array = rng.standard_normal((4, 4)).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return onnxlab.Model(proto)


def as_onnxruntime(model, feeds, **options):
    results = model.run(feeds, **options)
    for name, expected in oracle()(model.to_bytes(), feeds).items():
        np.testing.assert_allclose(results[name], expected, rtol=1e-5, atol=1e-6)


def test_what_no_iteration_changes_is_a_constant_of_the_body(model):
    watching = Watching()
    as_onnxruntime(model, FEEDS, providers=[watching])
    assert watching.seen == {"wi": True, "vi": True, "oi": False, "w2": True}


def test_it_is_none_where_it_is_fed(model):
    watching, feeds = Watching(), FEEDS | {"w": np.eye(4, dtype=np.float32)}
    as_onnxruntime(model, feeds, providers=[watching])
    assert watching.seen == {"wi": False, "vi": True, "oi": False, "w2": False}


@pytest.mark.parametrize("provider", ["numpy", NumbaProvider(background=False, least=0)], ids=["numpy", "numba"])
def test_an_edit_of_it_counts_in_the_next_run(model, provider):
    for scale in (1, 2, -1):
        for name in ("w", "v"):
            value = model.value_at("", name)
            value.array = value.array * np.float32(scale)
        as_onnxruntime(model, FEEDS, providers=[provider])
        as_onnxruntime(model, FEEDS | {"w": np.eye(4, dtype=np.float32)}, providers=[provider])
    while model.undo():
        as_onnxruntime(model, FEEDS, providers=[provider])


GROWING = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[2, 3] x, int64 n, float least, float[2, k] begin) => (float[2, 3] y, float[2, m] rows, float[l, 3] lines,
   float[q, 2, 3] all)
<bool go = {1}, float[1, 3] first = {7.0, 8.0, 9.0}, int64[1] zero = {0}>
{
    y, rows, last, lines, all = Loop(n, go, x, begin, first, first) <
        body = b (int64 i, bool c, float[2, 3] s, float[2, h] listed, float[1, 3] line, float[j, 3] lined)
            => (bool d, float[2, 3] t, float[2, e] longer, float[1, 3] next, float[o, 3] more, float[2, 3] u) {
            t = Tanh(s)  u = Neg(t)
            longer = Concat<axis = AXIS>(listed, t)
            next = ReduceSum(t, zero)
            more = Concat<axis = 0>(lined, next)
            total = ReduceMax<keepdims = 0>(t)
            d = Greater(total, least)
        }
    >
}
"""


def growing(text=GROWING, axis=1):
    return onnx.parser.parse_model(text.replace("AXIS", str(axis)))


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize(("steps", "least"), [(0, 0), (1, 0), (7, 0), (30, 0), (9, 0.55), (9, 2)])
def test_loops_that_append_make_the_lists_of_their_iterations(ort_run, steps, least, axis):
    proto = growing(axis=axis)
    both = Both(proto)
    feeds = {"x": np.array([[0.5, -1, 2], [0, 3, 1]], np.float32), "n": np.array(steps),
             "least": np.array(least, np.float32), "begin": np.zeros((2, 2), np.float32)}  # fmt: skip
    for fed in (feeds, feeds, feeds | {"begin": np.ones((2, 0), np.float32)}, feeds, feeds):
        expected = ort_run(proto.SerializeToString(), fed)
        for results in both.run(fed):
            for name in expected:
                np.testing.assert_allclose(results[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
                assert results[name].flags.writeable


def test_a_loop_that_appends_runs_as_a_whole_with_one_plan():
    both = Both(growing())
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(40), "least": np.array(0, np.float32),
             "begin": np.zeros((2, 2), np.float32)}  # fmt: skip
    for _ in range(5):
        assert both.run(feeds)[0]["rows"].shape == (2, 122)
    (loop,) = [i for program in programs_of(both.hot) for i in program.instructions if i.step.op == "Loop"]
    assert isinstance(loop.call, partial)
    body = loop.call.keywords["body"]
    assert [(item.place, item.output) for item in body.growth] == [(3, 2), (5, 4)]
    regions = [i.call for i in body.program.instructions if i.step.part is not None]
    assert len(regions) == 1
    assert [bool(plan.loops) for plan in plans_of(regions[0]).values()] == [True]


def test_items_that_do_not_fit_are_refused_by_the_concat():
    text = GROWING.replace("float[2, k] begin", "float[r, k] begin")
    model = onnxlab.Model(growing(text))
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(3), "least": np.array(0, np.float32)}
    for _ in range(4):
        with pytest.raises(RunError, match=r"Concat.*inside Loop"):
            model.run(feeds | {"begin": np.zeros((4, 2), np.float32)})
        assert model.run(feeds | {"begin": np.zeros((2, 2), np.float32)})["rows"].shape == (2, 11)


def test_the_refusal_of_an_item_gives_the_shape_of_one():
    both = Both(growing(GROWING.replace("float[2, k] begin", "float[r, k] begin")))
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(5), "least": np.array(0, np.float32)}
    for _ in range(3):  # the first runs iteration by iteration
        both.hot.run(feeds | {"begin": np.zeros((2, 2), np.float32)}, keep=False)
        with pytest.raises(RunError, match=r"shapes \(4, 2\), \(2, 3\) differ outside axis 1"):
            both.hot.run(feeds | {"begin": np.zeros((4, 2), np.float32)}, keep=False)


IN_A_FUNCTION = """
<ir_version: 9, opset_import: ["" : 17, "l" : 1]>
g (float[1, 8] x, int64 n) => (float[1, 8] y, float[a, b] z) { y, z = l.f <ax = AXIS> (x, n) }
<domain: "l", opset_import: ["" : 17]>
f <ax> (x, n) => (y, z) {
    go = Constant <value = bool {1}> ()
    y, z = Loop(n, go, x, x) <
        body = b (int64 i, bool c, float[1, 8] s, float[p, q] listed) => (bool d, float[1, 8] t, float[r, u] longer) {
            d = Identity(c)
            e = Exp(s)
            lower = Neg(e)
            t = Softmax(lower)
            longer = Concat <axis: int = @ax> (listed, t)
        }
    >
}
"""


@pytest.mark.parametrize(("axis", "shape"), [(0, (5, 8)), (-1, (1, 40))])
def test_the_axis_of_what_a_loop_appends_may_be_an_attribute_of_its_function(axis, shape, ort_run):
    proto = onnx.parser.parse_model(IN_A_FUNCTION.replace("AXIS", str(axis)))
    feeds = {"x": np.full((1, 8), 0.5, np.float32), "n": np.array(4)}
    expected = ort_run(proto.SerializeToString(), feeds)
    both = Both(proto)
    for _ in range(3):
        for results in both.run(feeds):
            assert results["z"].shape == shape
            np.testing.assert_allclose(results["z"], expected["z"], rtol=1e-6)


OLD = """
<ir_version: 3, opset_import: ["" : 3]>
g (float[1, 2] x, int64 n, bool go) => (float[1, 2] y, float[1, b] z) {
    y, z = Loop(n, go, x, x) <
        body = b (int64 i, bool c, float[1, 2] s, float[1, q] listed) => (bool c, float[1, 2] t, float[1, u] longer)
            <float[2, 2] w = {0, 1, 2, 0}> { t = MatMul(s, w)  longer = Concat(listed, t) }
    >
}
"""


def test_opsets_before_4_append_along_axis_1_by_default():
    both = Both(onnx.parser.parse_model(OLD))
    feeds = {"x": np.array([[1, 2]], np.float32), "n": np.array(3), "go": np.array(True)}
    for _ in range(3):
        for results in both.run(feeds):
            assert results["z"].tolist() == [[1, 2, 4, 1, 2, 4, 8, 2]]


@pytest.mark.parametrize(
    "change",
    [
        ("u = Neg(t)", "u = Neg(t)  v = Shape(listed)"),
        ("u = Neg(t)", "w = ReduceSum<keepdims = 0>(listed)  u = Add(t, w)"),
        ("(listed, t)", "(t, listed)"),
    ],
    ids=["shape", "read", "in front"],
)  # fmt: skip
def test_lists_that_are_read_or_begin_with_the_item_stay_values_of_the_body(change, ort_run):
    text = GROWING.replace(*change)
    proto = growing(text)
    both = Both(proto)
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(4), "least": np.array(0, np.float32),
             "begin": np.zeros((2, 2), np.float32)}  # fmt: skip
    expected = ort_run(proto.SerializeToString(), feeds)
    for results in both.run(feeds):
        for name in expected:
            np.testing.assert_allclose(results[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_lists_of_loops_are_seen_inside_of_them():
    model = onnxlab.Model(growing())
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(3), "least": np.array(0, np.float32),
             "begin": np.zeros((2, 2), np.float32)}  # fmt: skip
    for _ in range(3):
        plain = model.run(feeds)
    (loop,) = [node for node in model.nodes if node.op_type == "Loop"]
    path = f"{loop.name or loop.label}/body"
    shown = model.run(feeds, outputs=[name for name in (f"{path}/longer", f"{path}/t") if name])
    lists, rows = (shown[f"{path}/{name}"] for name in ("longer", "t"))
    assert [item.shape[1] for item in lists] == [5, 8, 11]
    assert len(rows) == 3
    np.testing.assert_allclose(lists[-1], plain["rows"], rtol=1e-6)
    np.testing.assert_allclose(model.run(feeds, exact=True)["rows"], plain["rows"], rtol=1e-6)


def test_what_is_appended_to_an_empty_value_takes_no_second_array():
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[N] x, int64 n, float[B] begin) => (float[M] y) {
      c = Constant<value = bool {1}> ()
      y = Loop (n, c, begin) <body = b (int64 i, bool d, float[K] a) => (bool e, float[L] r) {
        e = Identity(d) t = Exp(x) q = Add(t, t) r = Concat<axis = 0>(a, q) }> }"""
    both = Both(onnx.parser.parse_model(text))
    rng = np.random.default_rng(2)
    feeds = {"x": rng.standard_normal(1000, np.float32), "n": np.array(500), "begin": np.zeros(0, np.float32)}
    for _ in range(3):
        expected, _ = both.run(feeds)
    limits = Limits(bytes=int(1.1 * expected["y"].nbytes))
    np.testing.assert_array_equal(both.hot.run(feeds, keep=False, limits=limits)["y"], expected["y"])
    with pytest.raises(RunError, match="the values that the loop carries needs"):
        both.hot.run(feeds | {"begin": np.zeros(9, np.float32)}, keep=False, limits=limits)
