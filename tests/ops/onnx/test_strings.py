"""Operators on strings whose tables are made once: later calls, other nodes and odd texts get their own answers."""

import itertools

import numpy as np
import pytest

from onnxlab.ops import find_kernel


def call(op_type, *inputs, version=20, domain="", **attributes):
    return find_kernel(domain, op_type, version).function(*inputs, **attributes)


def counted(items, pool, bounds, indexes, lengths, skip):
    """TfIdfVectorizer's counts by their definition: every start, length and distance."""
    grams = {}
    for length, (start, stop) in enumerate(itertools.pairwise([*bounds, len(pool)]), 1):
        for place in range(start, stop, length):
            grams.setdefault(tuple(pool[place : place + length]), len(grams))
    counts = np.zeros(max(indexes) + 1, np.float32)
    for distance, length in itertools.product(range(1, skip + 2), lengths):
        if length == 1 and distance > 1:
            continue
        for start in range(len(items) - (length - 1) * distance):
            gram = tuple(items[start : start + length * distance : distance])
            if gram in grams:
                counts[indexes[grams[gram]]] += 1
    return counts


@pytest.mark.parametrize("skip", [0, 1, 5])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("shape", [(4, 9), (40, 5), (3, 1), (2, 0)])
def test_counts_of_ngrams(skip, lengths, shape):
    rng = np.random.default_rng(0)
    pool = [1, 2, 3, 4, 1, 2, 2, 3, 3, 3, 1, 2, 3, 2, 2, 2]
    bounds, indexes = [0, 4, 10], [3, 1, 0, 2, 4, 5, 6, 8, 7]
    rows = rng.integers(0, 5, shape)
    for _ in range(2):  # with the table given
        counts = call("TfIdfVectorizer", rows, min_gram_length=lengths[0], max_gram_length=lengths[1], mode="TF",
                      max_skip_count=skip, ngram_counts=bounds, ngram_indexes=indexes, pool_int64s=pool)  # fmt: skip
        for row, items in zip(counts, rows.tolist(), strict=True):
            np.testing.assert_array_equal(
                row, counted(items, pool, bounds, indexes, range(lengths[0], lengths[1] + 1), skip)
            )


@pytest.mark.parametrize("kind", [np.int64, np.int32, str])
@pytest.mark.parametrize("spread", [1, 1 << 20])
def test_counts_of_many_ngrams(kind, spread):
    """More pairs of items than a table has room for, and numbers too far apart for one."""
    rng = np.random.default_rng(0)
    items = rng.permutation(400) * spread - 5
    pool = [*items.tolist(), *rng.choice(items, 1200).tolist(), *rng.choice(items, 60).tolist()]
    bounds = [0, 400, 1600]
    count = len({tuple(pool[place : place + 2]) for place in range(400, 1600, 2)})
    indexes = rng.permutation(400 + count + 20).tolist()
    ends = [-5 - 1, np.iinfo(np.int32).max, np.iinfo(np.int32).min, *pool[400:404]]
    rows = np.array([rng.choice(pool, 40), [*ends, *pool[-33:]]])
    if kind is str:
        rows, pool = rows.astype(str).astype(object), [*map(str, pool)]
    else:
        rows = rows.astype(kind)
    counts = call("TfIdfVectorizer", rows, min_gram_length=1, max_gram_length=3, mode="TF", max_skip_count=1,
                  ngram_counts=bounds, ngram_indexes=indexes,
                  **{"pool_strings" if kind is str else "pool_int64s": pool})  # fmt: skip
    for row, items in zip(counts, rows.tolist(), strict=True):
        np.testing.assert_array_equal(row, counted(items, pool, bounds, indexes, range(1, 4), 1))


def test_numbers_at_the_ends_of_their_type_are_no_items():
    rows = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 3, -2, 3])
    counts = call("TfIdfVectorizer", rows, min_gram_length=1, max_gram_length=1, mode="TFIDF", max_skip_count=0,
                  ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[3, -2], weights=[0.5, 2.0])  # fmt: skip
    np.testing.assert_array_equal(counts, np.float32([1, 2]))


@pytest.mark.parametrize("y", [np.array(["x", 2], object), np.array("x", object), np.array([3, 4], object)])
def test_what_is_no_string_is_joined_as_one(y):
    joined = call("StringConcat", np.array([1, "b"], object), y)
    np.testing.assert_array_equal(joined, [f"1{y.flat[0]}", f"b{y.flat[-1]}"])


def test_labels_of_two_nodes_stay_apart():
    x = np.array([["a", "b"], ["c", "a"]], object)
    keys, first, second = ["a", "b"], [1, 2], [7, 8]
    for _ in range(2):
        for values in (first, second):
            result = call("LabelEncoder", x, version=4, domain="ai.onnx.ml", keys_strings=keys, values_int64s=values)
            np.testing.assert_array_equal(result, [[values[0], values[1]], [-1, values[0]]])


def test_not_a_number_is_a_key():
    x, keys, values = np.float32([np.nan, 1, 2]), [float("nan"), 1.0], ["none", "one"]
    result = call("LabelEncoder", x, version=4, domain="ai.onnx.ml", keys_floats=keys, values_strings=values)
    assert result.tolist() == ["none", "one", "_Unused"]


@pytest.mark.parametrize("shape", [(5,), (5, 1), (1, 5), (0,)])
def test_one_hot(shape):
    x = np.array(["a", "c", "b", "a", "z"][: int(np.prod(shape))], object).reshape(shape)
    hot = call("OneHotEncoder", x, domain="ai.onnx.ml", version=1, cats_strings=["a", "b", "a"])
    places = {"a": 2, "b": 1}  # of a category that is listed twice, the last
    expected = [[float(places.get(item) == column) for column in range(3)] for item in x.reshape(-1)]
    np.testing.assert_array_equal(hot, np.array(expected, np.float32).reshape(*shape, 3))
    if x.size:
        with pytest.raises(ValueError, match="in no list"):
            call("OneHotEncoder", x, domain="ai.onnx.ml", version=1, cats_strings=["a", "b"], zeros=0)


def test_answers_of_a_pattern_are_remembered_for_it_alone():
    x = np.array(["node", "edges", "n" * 5000, "\ud800", "node"], object)
    for _ in range(2):
        assert call("RegexFullMatch", x, pattern="n.*").tolist() == [True, False, True, False, True]
        assert call("RegexFullMatch", x, pattern="e.*").tolist() == [False, True, False, False, False]
    many = np.array([f"n{number}" for number in range(9000)], object)
    assert call("RegexFullMatch", many, pattern="n.*").all()


def test_patterns_answer_texts_that_were_seen_and_new_ones_alike():
    match = find_kernel("", "RegexFullMatch", 20).function
    first, second = np.array(["ab", "b", "ab"], object), np.array([["b", "abb"], ["", "ab"]], object)
    assert match(first, pattern="a+b+").tolist() == [True, False, True]
    assert match(second, pattern="a+b+").tolist() == [[False, True], [False, True]]


def test_what_is_no_string_becomes_one():
    joined = find_kernel("", "StringConcat", 20).function(
        np.array([1, "a"], object), np.array(["b", np.str_("c")], object)
    )
    assert joined.tolist() == ["1b", "ac"]
