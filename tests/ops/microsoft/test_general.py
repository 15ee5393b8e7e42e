import numpy as np
import pytest

from tests.ops.support.single_node import agree, floats, run

MS = {"opset": 1, "domain": "com.microsoft"}


def words(*items):
    return np.array(items, object)


def test_operators_that_ai_onnx_has_too():
    x = floats(2, 3, 4, 5)
    grid = np.clip(floats(2, 3, 2, 2, seed=1), -1, 1)
    agree("GridSample", x, grid, **MS)
    agree("GridSample", x, grid, mode="nearest", padding_mode="border", align_corners=1, **MS)
    agree("Trilu", floats(3, 4), np.array(1), upper=0, **MS)
    agree("GatherND", floats(3, 4), np.array([[0, 1], [2, 3]]), **MS)
    agree("Range", np.array(1, np.int32), np.array(9, np.int32), **MS)
    agree("Range", np.array(1.0, np.float32), np.array(0.0, np.float32), np.array(-0.25, np.float32), **MS)
    agree("Pad", floats(2, 3), np.array([1, 0, 0, 2]), np.array([7], np.float32), **MS)
    agree("Unique", np.array([3, 1, 3, 2, 1], np.float32), outputs=3, **MS)


def test_simplified_layer_normalization():
    agree("SimplifiedLayerNormalization", floats(2, 3, 8), floats(8, seed=1), opset=17, epsilon=1e-6)


@pytest.mark.parametrize(
    ("texts", "attributes"),
    [
        (words("a b c", "dd e"), {"separators": [" "], "mark": 0, "mincharnum": 1}),
        (words("a b, c", "dd,e"), {"separators": [" ", ","], "mark": 1, "mincharnum": 1}),
        (words("abc", "de"), {"separators": [""], "mark": 1, "mincharnum": 1}),
        (words("a bb ccc"), {"separators": [" "], "mark": 0, "mincharnum": 2}),
        (words("a1b22", "c"), {"tokenexp": "[a-z]", "mark": 0, "mincharnum": 1}),
        (words("a1b22", "ccc1"), {"tokenexp": "([a-z])+", "mark": 0, "mincharnum": 1}),
        (words("Ab1 c22 d", "c"), {"tokenexp": "[a-zA-Z0-9_]+", "mark": 0, "mincharnum": 2}),
        (words("a.b c", "d"), {"separators": ["[.]"], "mark": 0, "mincharnum": 1}),
        (words("a.b c", "d"), {"separators": ["."], "mark": 0, "mincharnum": 1}),
        (words("", "b"), {"separators": [" "], "mark": 0, "mincharnum": 1}),
    ],
)
def test_tokenizer(texts, attributes):
    agree("Tokenizer", texts, pad_value="#", **attributes, **MS)
    agree("Tokenizer", texts[None], pad_value="", **attributes, **MS)


def test_tokens_of_what_is_no_string():
    x = np.array([b"a b", 5, None], object)
    splitting = {"mark": 0, "mincharnum": 1, "pad_value": "", "separators": [" "]}
    tokens = run("Tokenizer", x, **splitting, **MS)
    expected = run("Tokenizer", words("b'a b'", "5", "None"), **splitting, **MS)
    np.testing.assert_array_equal(tokens, expected)


@pytest.mark.parametrize("zero", [False, True])
def test_gathering_from_a_quantized_table(zero):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (6, 32), np.uint8)
    scales = rng.uniform(0.1, 1, (6, 4)).astype(np.float32)
    points = rng.integers(0, 256, (6, 2), np.uint8) if zero else None
    agree("GatherBlockQuantized", data, np.array([[1, 5], [0, 2]]), scales, points, block_size=16, **MS)


def test_softmax_and_dropout_with_a_bias():
    x, bias = floats(2, 3, 4), floats(3, 4, seed=1)
    expected = np.exp(x + bias) / np.exp(x + bias).sum(-1, keepdims=True)
    np.testing.assert_allclose(run("BiasSoftmax", x, bias, axis=2, is_inner_broadcast=0, **MS)[0], expected, rtol=1e-5)
    y, mask = run("BiasDropout", x, bias, x, outputs=2, **MS)
    np.testing.assert_array_equal(y, x + bias + x)
    assert mask.all()


def test_embeddings_of_words_of_any_length():
    words = np.zeros((5, 8), np.int32)
    for row, length in enumerate((8, 3, 1, 5, 2)):
        words[row, :length] = np.random.default_rng(row).integers(1, 10, length)
    weights = floats(6, 1, 3, 4), floats(6, seed=1), floats(10, 4, seed=2)
    agree("WordConvEmbedding", words, *weights, **MS)
    empty = np.zeros((1, 8), np.int32)  # ONNX Runtime leaves what was in memory before
    assert not np.any(run("WordConvEmbedding", empty, *weights, **MS))
