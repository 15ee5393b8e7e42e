import numpy as np
import pytest

from onnxlab.ops.onnx.nn.attention import soft_capped
from tests.ops.support.single_node import agree, floats, i64, ints

MS = {"opset": 1, "domain": "com.microsoft", "rtol": 1e-4}


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", [None, "lengths", "keys", "pairs"])
def test_attention(unidirectional, mask):
    x, weights, bias = floats(2, 5, 8), floats(8, 24, seed=1), floats(24, seed=2)
    masks = {
        None: None,
        "lengths": np.array([5, 3], np.int32),
        "keys": ints(2, 5, low=0, high=2, dtype=np.int32) | np.int32([1, 0, 0, 0, 0]),
        "pairs": np.tril(np.ones((2, 5, 5), np.int32)),
    }
    agree("Attention", x, weights, bias, masks[mask], num_heads=2, unidirectional=unidirectional, **MS)


def test_attention_with_a_past():
    x, weights, bias, past = floats(2, 3, 8), floats(8, 24, seed=1), floats(24, seed=2), floats(2, 2, 2, 4, 4, seed=3)
    agree("Attention", x, weights, bias, None, past, num_heads=2, unidirectional=1, outputs=2, **MS)


@pytest.mark.parametrize("past", [False, True])
def test_multi_head_attention(past):
    query, key, value = floats(2, 3, 8), floats(2, 5, 8, seed=1), floats(2, 5, 8, seed=2)
    extra = [None, floats(1, 2, 3, 9 if past else 5, seed=7)]
    extra += [floats(2, 2, 4, 4, seed=5), floats(2, 2, 4, 4, seed=6)] if past else []
    agree("MultiHeadAttention", query, key, value, floats(24, seed=3), *extra, num_heads=2, outputs=3, **MS)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    positions = i64(0, 1, 2, 4, 5, 6).reshape(2, 3)
    agree("RotaryEmbedding", floats(2, 3, 16), positions, floats(10, 4, seed=1), floats(10, 4, seed=2),
          interleaved=interleaved, **MS)  # fmt: skip


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("window", [-1, 2])
def test_group_query_attention_first_and_next_call(rotary, window):
    caches = [floats(16, 8, seed=8), floats(16, 8, seed=9)] if rotary else []
    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": rotary, "local_window_size": window, "outputs": 3}
    prompt = floats(1, 5, 64), floats(1, 5, 32, seed=1), floats(1, 5, 32, seed=2)
    last, total = np.int32([4]), np.array([5], np.int32)
    empty = np.zeros((1, 2, 0, 16), np.float32)
    _, keys, values = agree("GroupQueryAttention", *prompt, empty, empty, last, total, *caches, **attributes, **MS)
    step = floats(1, 1, 64, seed=3), floats(1, 1, 32, seed=4), floats(1, 1, 32, seed=5)
    agree(
        "GroupQueryAttention", *step, keys, values, np.int32([5]), np.array([6], np.int32), *caches, **attributes, **MS
    )


@pytest.mark.parametrize("cap", [0.0, -1.0])
def test_only_a_positive_cap_caps(cap):
    scores = np.array([[0.5, -3.0]], np.float32)
    np.testing.assert_array_equal(soft_capped(scores.copy(), cap), scores)
    np.testing.assert_allclose(soft_capped(scores.copy(), 2.0), 2 * np.tanh(scores / 2), rtol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_heads_are_computed_one_by_one_where_their_scores_are_large(masked):
    inputs = [floats(2, 520, 16, seed=seed) for seed in range(3)]
    bias = [None, None, floats(1, 4, 520, 520, seed=3)] if masked else []
    agree("MultiHeadAttention", *inputs, *bias, num_heads=4, **MS)
