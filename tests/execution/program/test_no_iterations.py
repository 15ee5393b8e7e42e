"""Scan outputs of loops without an iteration: dims that inference does not know are those that the body declares."""

import numpy as np
import onnx
import pytest

import onnxlab
from tests.support.oracle import new_session

_BODY = """
    one = Constant <value = int64 {1}> ()
    end = Add(i, one)
    axes = Constant <value = int64[1] {0}> ()
    start = Unsqueeze(i, axes)
    stop = Unsqueeze(end, axes)
    part = Slice(x, start, stop)
    w = Add(v, part)
"""
LOOP = f"""
    <ir_version: 8, opset_import: ["" : 16]>
    g (int64 n, bool go, float[5] x, float[1] s) => (float[1] y, float[k, 1] all) {{
        y, all = Loop <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w, float[1] out) {{
            d = Identity(c)
            {_BODY}
            out = Identity(w)
        }}> (n, go, s)
    }}"""
SCAN = f"""
    <ir_version: 8, opset_import: ["" : 16]>
    g (int64[n] counts, float[5] x, float[1] s) => (float[1] y, float[n, 1] all) {{
        y, all = Scan <num_scan_inputs = 1, body = b (float[1] v, int64 i) => (float[1] w, float[1] out) {{
            {_BODY}
            out = Identity(w)
        }}> (s, counts)
    }}"""


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("trips", "go"), [(0, True), (-1, True), (3, False)])
def test_a_loop_without_an_iteration(trips: int, go: bool, exact: bool) -> None:
    proto = onnx.parser.parse_model(LOOP)
    feeds = {"n": np.array(trips), "go": np.array(go), "x": np.ones(5, np.float32), "s": np.ones(1, np.float32)}
    _, expected = new_session(proto.SerializeToString(), None).run(None, feeds)
    assert onnxlab.load(proto).run(feeds, exact=exact)["all"].shape == expected.shape == (0, 1)


def test_a_scan_of_nothing() -> None:
    feeds = {"counts": np.zeros(0, np.int64), "x": np.ones(5, np.float32), "s": np.ones(1, np.float32)}
    assert onnxlab.load(onnx.parser.parse_model(SCAN)).run(feeds)["all"].shape == (0, 1)


def test_what_the_body_declares_counts_only_where_inference_does_not_know() -> None:
    proto = onnx.parser.parse_model(LOOP.replace("out = Identity(w)", "out = Concat <axis = 0> (s, s, s)"))
    feeds = {"n": np.array(0), "go": np.array(True), "x": np.ones(5, np.float32), "s": np.ones(1, np.float32)}
    assert onnxlab.load(proto).run(feeds, strict=False)["all"].shape == (0, 3)
