"""Made-up inputs of a comparison fit both models."""

import pytest

import onnxlab


@pytest.mark.parametrize("fixed_first", [False, True])
def test_a_batch_that_one_model_fixes(fixed_first: bool) -> None:
    model, fixed = onnxlab.load(), onnxlab.load()
    fixed.replace_dim("batch", 5)
    comparison = onnxlab.compare(*((fixed, model) if fixed_first else (model, fixed)))
    assert comparison.first is None
    assert comparison.arrays("logits")[0].shape == (5, 10)
