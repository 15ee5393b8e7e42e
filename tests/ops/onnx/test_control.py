import numpy as np
import onnx
import pytest

from tests.ops.support.interpreter import Interpreter, close
from tests.ops.support.single_node import i64, run
from tests.support.oracle import new_session

MODELS = {
    "counting": """
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, float[2] x) => (float[2] y, float[k, 2] all) {
            go = Constant <value = bool {1}> ()
            y, all = Loop <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] out) {
                d = Identity(c)
                w = Add(v, x)
                out = Mul(w, v)
            }> (n, go, x)
        }""",
    "stopping": """
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, float[2] x) => (int64 y) {
            zero = Constant <value = int64 {0}> ()
            y = Loop <body = b (int64 i, bool c, int64 v) => (bool d, int64 w) {
                one = Constant <value = int64 {1}> ()
                w = Add(v, one)
                d = Less(w, n)
            }> (, , zero)
        }""",
    "branches": """
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, float[2] x) => (float[2] y) {
            three = Constant <value = int64 {3}> ()
            small = Less(n, three)
            y = If (small) <
                then_branch = t () => (float[2] a) { a = Neg(x) },
                else_branch = e () => (float[2] b) { b = Abs(x) }
            >
        }""",
    "scanning": """
        <ir_version: 8, opset_import: ["" : 16]>
        g (int64 n, float[2] x) => (float total, float[2] sums) {
            zero = Constant <value = float {0}> ()
            total, sums = Scan <
                num_scan_inputs = 1, scan_input_directions = [1], body = b (float s, float item) => (float t, float u) {
                t = Add(s, item)
                u = Identity(t)
            }> (zero, x)
        }""",
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_against_onnxruntime(name, n):
    model = onnx.parser.parse_model(MODELS[name])
    feeds = {"n": np.array(n, np.int64), "x": np.float32([1.5, -2])}
    expected = new_session(model.SerializeToString(), None).run(None, feeds)
    for reference, ours in zip(expected, Interpreter(model).run(feeds).values(), strict=True):
        assert close(reference, ours) is None


def test_loops_claim_memory_for_what_they_collect():
    interpreter = Interpreter(onnx.parser.parse_model(MODELS["counting"]))
    interpreter.run({"n": np.array(100, np.int64), "x": np.ones(2, np.float32)})
    assert interpreter.reserved >= 100 * 8


def test_sequences():
    (parts,) = run("SplitToSequence", np.arange(5.0), np.array(2, np.int64), opset=11)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3], [4]]
    (single,) = run("SplitToSequence", np.arange(4.0).reshape(2, 2), opset=11, keepdims=0)
    assert [part.tolist() for part in single] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="does not add up"):
        run("SplitToSequence", np.arange(5.0), i64(2, 2), opset=11)


def test_positions_outside_a_sequence_are_refused():
    from onnxlab.ops.onnx.control.sequence import sequence_at, sequence_insert

    assert sequence_insert([1, 2], 3, np.array(-1)) == [1, 3, 2]
    with pytest.raises(IndexError, match="position is 2: the sequence has 2 elements"):
        sequence_at([1, 2], np.array(2))
