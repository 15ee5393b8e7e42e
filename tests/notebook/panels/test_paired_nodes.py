"""The distance of two stored tensors in words: every kind of element, and what is no number."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxlab.notebook.panels.paired_nodes import weight_text

F = np.float32


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        (np.array([1, 2], F), np.array([1, 2.5], F), "1 of 2 elements differ, by at most 0.5, 0.25 of the largest"),
        (np.zeros(2, F), np.ones(2, F), "2 of 2 elements differ, by at most 1"),
        (np.zeros(2, F), np.zeros(3, F), "the shapes differ: [2] and [3]"),
        (np.ones(2, F), np.ones(2, np.float16), "equal numbers"),
        (np.array([0.0], F), np.array([-0.0], F), "equal numbers in other bits"),
        (np.array([np.nan], F), np.array([1.0], F), "1 of 1 elements differ, by at most inf"),
        (np.array([np.inf], F), np.array([np.inf], np.float64), "equal numbers"),
        (np.array([2**53], np.int64), np.array([2**53 + 1], np.int64), "1 of 1 elements differ, by at most 0"),
        (np.array([True]), np.array([False]), "1 of 1 elements differ, by at most 1, 1 of the largest"),
        (np.array([1j]), np.array([2j]), "1 of 1 elements differ, by at most 1, 1 of the largest"),
        (np.array(["a"], object), np.array(["b"], object), "other texts"),
        (np.array(["a"], object), np.array(["a"], object), ""),
        (np.array([1], ml_dtypes.bfloat16), np.array([3], ml_dtypes.bfloat16), "differ, by at most 2"),
        (np.array([1], ml_dtypes.int4), np.array([-1], ml_dtypes.int4), "differ, by at most 2"),
        (np.zeros((0, 3), F), np.zeros((0, 3), F), ""),
        (None, np.ones(1, F), "too large to be compared here"),
    ],
)
def test_how_far_weights_are_apart(a: Any, b: Any, words: str) -> None:
    text = weight_text(*(array if array is None else np.asarray(array) for array in (a, b)))
    assert words in text if words else text == ""


def test_long_tensors_are_compared_to_the_end() -> None:
    long = np.zeros((3, 1 << 20), F)
    other = long.copy()
    other[2, -1] = 4
    assert weight_text(long, other) == "1 of 3,145,728 elements differ, by at most 4"
