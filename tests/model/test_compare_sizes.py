"""Made-up inputs of a comparison fit both models."""

from pathlib import Path

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import FeedError, RunError


@pytest.mark.parametrize("fixed_first", [False, True])
def test_a_batch_that_one_model_fixes(fixed_first: bool) -> None:
    model, fixed = onnxlab.load(), onnxlab.load()
    fixed.replace_dim("batch", 5)
    comparison = onnxlab.compare(*((fixed, model) if fixed_first else (model, fixed)))
    assert comparison.first is None
    assert comparison.arrays("logits")[0].shape == (5, 10)


def test_the_model_that_does_not_take_the_inputs_is_named(tmp_path: Path) -> None:
    first, second = onnxlab.load(), onnxlab.load()
    first.replace_dim("batch", 2)
    second.replace_dim("batch", 3)
    path = second.save(tmp_path / "other.onnx")
    with pytest.raises(FeedError, match=r"the second model \('other.onnx'\) does not take .*must be 3, not 2"):
        onnxlab.compare(first, path)
    with pytest.raises(FeedError, match=r"the first model .* must be 2, not 3"):
        onnxlab.compare(first, path, {"image": np.zeros((3, 1, 8, 8), np.float32)})
    with pytest.raises(FeedError, match=r"the second model .* must be 3, not 2"):
        onnxlab.diff(first, second, inputs={"image": np.zeros((2, 1, 8, 8), np.float32)})
    with pytest.raises(RunError, match="the second model does not take these inputs"):
        onnxlab.evaluate(first, second, [{"image": np.zeros((2, 1, 8, 8), np.float32)}], progress=False)
