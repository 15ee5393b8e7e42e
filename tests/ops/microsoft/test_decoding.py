"""Attention of decoders against ONNX Runtime; where it writes to a cache in place, present is bound to past."""

import numpy as np
import onnxruntime
import pytest

from tests.ops.support.single_node import agree, floats, ints, model, run
from tests.support.oracle import new_session

MS = {"opset": 1, "domain": "com.microsoft"}
OP = "DecoderMaskedMultiHeadAttention"
HEADS, SIZE = 2, 4
WIDTH = HEADS * SIZE


def test_the_keys_of_another_attention():
    keys, values = floats(3, HEADS, 5, SIZE, seed=4), floats(3, HEADS, 5, SIZE, seed=5)
    agree(OP, floats(3, 1, WIDTH), keys, values, num_heads=HEADS, scale=0.3, rtol=1e-4, **MS)


def bound(op_type, inputs, shared, **attributes):
    """The outputs of ONNX Runtime where each present output is its past input's memory."""
    proto = model(op_type, inputs, attributes, 1, "com.microsoft", 3)
    session = new_session(proto.SerializeToString(), None)
    binding = session.io_binding()
    values = {f"x{slot}": onnxruntime.OrtValue.ortvalue_from_numpy(array) for slot, array in enumerate(inputs)
              if array is not None}  # fmt: skip
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    for output, source in shared.items():
        binding.bind_ortvalue_output(output, values[source])
    session.run_with_iobinding(binding)
    return [value.numpy().copy() for value in binding.get_outputs()]


def same(actual, expected, length):
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(actual[1:], expected[1:], strict=True):
        np.testing.assert_allclose(ours[:, :, :length], theirs[:, :, :length], rtol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("beams", [1, 2])
def test_one_token_after_others(masked, beams):
    token = [floats(4, 1, WIDTH, seed=seed) for seed in range(3)]
    mask = ints(4, 6, low=0, high=2, dtype=np.int32) if masked else None
    added = floats(1, HEADS, 1, 6, seed=6) if masked else None
    keys, values = floats(4, HEADS, 8, SIZE, seed=4), floats(4, HEADS, 8, SIZE, seed=5)
    inputs = [*token, mask, added, keys, values, np.array([5], np.int32)]
    come = [np.array([beams], np.int32), ints(2, beams, 8, low=0, high=beams, dtype=np.int32)]
    inputs += [*(come if beams > 1 else [None, None]), floats(3 * WIDTH, seed=7)]
    options = {"num_heads": HEADS, "past_present_share_buffer": 1}
    expected = bound(OP, [item if item is None else item.copy() for item in inputs],
                     {"y1": "x5", "y2": "x6"}, **options)  # fmt: skip
    results = run(OP, *inputs, outputs=3, **options, **MS)
    same(results, expected, 6)
    apart = [*inputs[:5], keys[:, :, :5].copy(), values[:, :, :5].copy(), None, *inputs[8:]]
    same(run(OP, *apart, num_heads=HEADS, outputs=3, **MS), expected, 6)
    packed = [np.concatenate(token, axis=2), None, None, *apart[3:]]  # ONNX Runtime's CPU kernel does not take this
    same(run(OP, *packed, num_heads=HEADS, outputs=3, **MS), expected, 6)


@pytest.mark.parametrize("steps", [40, 1])
@pytest.mark.parametrize("rotary", [0, 1])
def test_sparse_blocks_of_keys(steps, rotary):
    heads, groups, size, block, longest = 4, 2, 16, 16, 64
    layouts = [[[0], [0, 1], [0, 2], [0, 3]], [[0], [1], [0, 1, 2], [2, 3]]]
    rows = np.array([np.cumsum([0, *map(len, layout)]) for layout in layouts], np.int32)
    most = max(map(int, rows[:, -1]))
    columns = np.array([[c for row in layout for c in row] + [-1] * (most - int(ends[-1]))
                        for layout, ends in zip(layouts, rows, strict=True)], np.int32)  # fmt: skip
    total = 40  # of every entry: where lengths differ, ONNX Runtime 1.31 reads scores that it did not write
    keys, values = floats(2, groups, longest, size, seed=4), floats(2, groups, longest, size, seed=5)
    new = [floats(2, steps, count * size, seed=seed) for seed, count in enumerate((heads, groups, groups))]
    turns = [floats(longest, size // 2, seed=seed) for seed in (6, 7)]
    inputs = [*new, keys, values, rows, columns, np.array(total, np.int32), np.array([total, total], np.int32), *turns]
    options = {"num_heads": heads, "kv_num_heads": groups, "sparse_block_size": block, "do_rotary": rotary}
    inputs = inputs if rotary else inputs[:9]
    expected = bound("SparseAttention", [item.copy() for item in inputs], {"y1": "x3", "y2": "x4"}, **options)
    results = run("SparseAttention", *inputs, outputs=3, **options, **MS)
    same(results, expected, total)
