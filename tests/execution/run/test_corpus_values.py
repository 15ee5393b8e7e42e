"""Every model of the corpus, value for value what onnxruntime makes of it with its optimizations off."""

import numpy as np
import onnx
import pytest

from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.support import corpus as models

# Of each output's largest magnitude; float32 elsewhere.
TOLERANCE = {
    "mobilenet_fp16": 2e-3,
    "minilm_int8": 2e-3,
    "tashkeel_ensemble_int8": 2e-3,
    # Three recurrent layers quantize their state at every step: onnxruntime differs from itself by 2.4e-2 between
    # one thread and four, and by 2.2e-2 when the first layer's input changes by a hundred-thousandth.
    "tashkeel_bilstm_int8": 3e-2,
}

# Its weights are constants, so that thousands of values are ties; Softmax then turns the last bit of 7e9 into 0 or 1.
BEFORE_SOFTMAX = {"light_squeezenet": ["r65"]}


@pytest.mark.parametrize("name", models.Corpus())
def test_equal_to_onnxruntime(name, corpus, feeds, ort_run):
    path = corpus[name]
    outputs = BEFORE_SOFTMAX.get(name)
    run = Runner(ModelGraph(onnx.load(path, load_external_data=False), path.parent))
    expected = ort_run(path, feeds(name), outputs)
    for keep in (False, True):
        results = run.run(feeds(name), outputs, keep=keep)
        assert list(results) == list(expected)
        for output, array in expected.items():
            compare(output, array, results[output], TOLERANCE.get(name, 1e-4))


def compare(name, expected, actual, tolerance):
    """AssertionError where two values differ by more than `tolerance` of the largest magnitude, or a rounding tie."""
    if isinstance(expected, list):
        assert isinstance(actual, list)
        assert len(actual) == len(expected)
        for index, (element, other) in enumerate(zip(expected, actual, strict=True)):
            compare(f"{name}[{index}]", element, other, tolerance)
    elif isinstance(expected, dict):
        assert expected.keys() == actual.keys(), name
        for key, element in expected.items():
            compare(f"{name}[{key!r}]", np.asarray(element), np.asarray(actual[key]), tolerance)
    elif expected.dtype.kind in "OU":
        assert expected.tolist() == actual.tolist(), name
    else:
        assert actual.shape == expected.shape, name
        assert actual.dtype.kind == expected.dtype.kind, name
        allowed = 1 if expected.dtype.kind in "iu" else tolerance * np.abs(expected).max(initial=0)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=allowed, err_msg=name)
