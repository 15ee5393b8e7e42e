"""Messages of a run about input that breaks a rule: node, operator, name, type and shape of inputs, and the rule."""

import numpy as np
import pytest

from onnxlab.errors import RunError
from tests.execution.support.models import runner


def ones(*shape):
    return np.ones(shape, np.float32)


def ints(*values):
    return np.array(values, np.int64)


def of(*values):
    return np.array(values, np.int32)


PAIR = "int32[n] a, int32[n] b"
DATA = "float[a, b] a, int64[n] s"
TWO = "float[a, b] a, float[c, d] b"
IMAGE = "float[n, c, h, w] a, float[m, c2, k, l] w"

# operator: (inputs, nodes, feeds, the rule)
CASES = {
    "Div": (PAIR, "y = Div (a, b)", {"a": of(1, 2), "b": of(1, 0)}, "input B holds a 0"),
    "Mod": (PAIR, "y = Mod (a, b)", {"a": of(1, 2), "b": of(1, 0)}, "input B holds a 0"),
    "Gather": (DATA, "y = Gather (a, s)", {"a": ones(3, 2), "s": ints(0, 3)}, r"indices run from 0 to 3: axis 0 has 3"),
    "GatherND": (DATA, "y = GatherND (a, s)", {"a": ones(3, 2), "s": ints(0, 3)},
                 "index 3 is out of bounds for axis 1"),
    "ScatterND": ("float[a, b] a, int64[n, m] i, float[n, b] u", "y = ScatterND (a, i, u)",
                  {"a": ones(3, 2), "i": ints(5)[None], "u": ones(1, 2)}, "index 5 is out of bounds for axis 0"),
    "SequenceAt": ("seq(float[n]) s, int64 i", "y = SequenceAt (s, i)", {"s": [ones(2)], "i": ints(3)[0]},
                   "the sequence has 1 elements"),
    "Add": (TWO, "y = Add (a, b)", {"a": ones(2, 3), "b": ones(4, 5)},
            r"shapes \(2,3\) and \(4,5\) do not broadcast: along each axis sizes must be equal or 1"),
    "Where": ("bool[n] c, float[2] a, float[3] b", "y = Where (c, a, b)",
              {"c": np.array([True]), "a": ones(2), "b": ones(3)},
              r"shapes \(1,\), \(2,\) and \(3,\) do not broadcast"),
    "Expand": (DATA, "y = Expand (a, s)", {"a": ones(2, 3), "s": ints(4, 3)},
               r"shapes \(2, 3\) and \(4, 3\) do not broadcast"),
    "Reshape": (DATA, "y = Reshape (a, s)", {"a": ones(2, 3), "s": ints(4, 2)},
                r"6 elements\) does not fit shape \[4, 2\]"),
    "MatMul": (TWO, "y = MatMul (a, b)", {"a": ones(2, 3), "b": ones(4, 5)}, "the inner sizes 3 and 4 differ"),
    "Concat": (TWO, "y = Concat <axis = 0> (a, b)", {"a": ones(2, 3), "b": ones(2, 4)}, "differ outside axis 0"),
    "Conv": (IMAGE, "y = Conv (a, w)", {"a": ones(1, 3, 4, 4), "w": ones(2, 2, 3, 3)}, "X has 3 channels"),
    "LSTM": ("float[t, b, i] x, float[d, g, i2] w, float[d, g, h] r", "y = LSTM <hidden_size = 2> (x, w, r)",
             {"x": ones(2, 1, 3), "w": ones(1, 8, 4), "r": ones(1, 8, 2)},
             "is 4: expected 3, since it is I"),
    "DepthToSpace": ("float[a, b] a", "y = DepthToSpace <blocksize = 2> (a)", {"a": ones(2, 3)},
                     r"input 0 \(input\) has 2 axes: expected \[N, C, H, W\]"),
    "Softmax": ("float[a, b] a", "y = Softmax <axis = 5> (a)", {"a": ones(2, 3)}, "axis 5 is out of range for rank 2"),
    "ConstantOfShape": ("int64[n] s", "y = ConstantOfShape (s)", {"s": ints(-4)}, "dimensions are at least 0"),
    "Tile": (DATA, "y = Tile (a, s)", {"a": ones(2, 3), "s": ints(-1, 2)}, "counts of at least 0"),
    "Pad": (DATA, "y = Pad (a, s)", {"a": ones(2, 3), "s": ints(-3, 0, 0, 0)}, "leave less than nothing of axis 0"),
    "Resize": ("float[a, b] a, int64[n] s", "y = Resize (a, , , s)", {"a": ones(1, 3), "s": ints(1, -1)},
               "expected 2 positive numbers"),
    "TopK": (DATA, "y, i = TopK (a, s)", {"a": ones(2, 3), "s": ints(-1)}, "K is -1"),
    "OneHot": ("int64[n] s, int64 d, float[2] v", "y = OneHot (s, d, v)",
               {"s": ints(1), "d": ints(-2)[0], "v": ones(2)},
               "depth is -2"),
    "Range": ("int64 a, int64 b, int64 c", "y = Range (a, b, c)", {"a": ints(0)[0], "b": ints(5)[0], "c": ints(0)[0]},
              "delta is 0: the range would never end"),
    "Slice": ("float[n] a, int64[1] s, int64[1] e, int64[1] x, int64[1] t", "y = Slice (a, s, e, x, t)",
              {"a": ones(2), "s": ints(0), "e": ints(1), "x": ints(0), "t": ints(0)}, "a step is 0"),
    "InstanceNormalization": ("float[n, c, h] a, float[c2] w, float[c2] b", "y = InstanceNormalization (a, w, b)",
                              {"a": ones(1, 3, 4), "w": ones(2), "b": ones(2)},
                              r"axis 0 of input 1 \(scale\) is 2: expected 3, since it is C, and C is 3 by input 0"),
    "GRU": ("float[t, b, i] x, float[d, g, i2] w, float[d, g2, h] r", "y = GRU <hidden_size = 2> (x, w, r)",
            {"x": ones(2, 1, 3), "w": ones(1, 6, 3), "r": ones(1, 8, 2)},
            r"axis 1 of input 2 \(R\) is 8: expected 6, since it is 3H, and H is 2 by input 1"),
    "RoiAlign": ("float[n, c, h, w] a, float[r, f] r, int64[k] b", "y = RoiAlign (a, r, b)",
                 {"a": ones(1, 1, 4, 4), "r": ones(2, 3), "b": ints(0, 0)},
                 r"axis 1 of input 1 \(rois\) is 3: expected 4"),
    "GlobalMaxPool": ("float[n, c, h] a", "y = GlobalMaxPool (a)", {"a": ones(1, 2, 0)},
                      "an input has no elements where at least one is needed"),
    "If": ("bool[n] c, float[2] x", "y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) }, "
           "else_branch = e () => (float[2] q) { q = Abs (x) }>", {"c": np.ones(2, bool), "x": ones(2)},
           "expected one element"),
}  # fmt: skip


@pytest.mark.parametrize("operator", CASES)
@pytest.mark.parametrize("keep", [True, False])
def test_a_rule_that_is_broken(operator, keep):
    inputs, nodes, feeds, rule = CASES[operator]
    run = runner(f"g ({inputs}) => (y) {{ {nodes} }}")
    with pytest.raises(RunError, match=rf"^{operator}#0 \({operator}\): .*{rule}") as caught:
        run.run(feeds, keep=keep)
    assert caught.value.node == f"{operator}#0"
    for name, value in feeds.items():
        if operator == "If" and name == "x":  # a capture, no input
            continue
        kind = (
            f"sequence of {len(value)}"
            if isinstance(value, list)
            else (f"{value.dtype}[{','.join(map(str, value.shape))}]")
        )
        assert f"{name} {kind}" in str(caught.value)
    assert len(run.store) == 0
