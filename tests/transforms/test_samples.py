"""Samples of users that do not fit the model: refused, since nothing would be verified with them."""

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import FeedError

IMAGE = np.zeros((2, 1, 8, 8), np.float32)


@pytest.mark.parametrize("job", ["simplify", "fold", "optimize"])
@pytest.mark.parametrize("sample", [
    {"imgae": IMAGE}, {"image": IMAGE[0]}, {"image": IMAGE.astype(np.float64)}, {}, {"image": IMAGE, "logits": IMAGE},
])  # fmt: skip
def test_samples_that_do_not_fit_are_refused(job: str, sample: dict[str, np.ndarray]) -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(FeedError, match=r"sample 1 (does not fit|has other names)"):
        getattr(model, job)(samples=[{"image": IMAGE}, sample])
    assert model.to_bytes() == before


def test_a_difference_needs_two_models() -> None:
    with pytest.raises(TypeError, match="given None"):
        onnxlab.diff(onnxlab.load(), None)  # type: ignore[arg-type]
