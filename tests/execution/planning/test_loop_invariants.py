"""Loops that carry their weights: as good as constants of the body, until a feed says otherwise."""

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.numba.provider import NumbaProvider
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
