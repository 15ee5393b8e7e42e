"""ONNX's own node and model cases through `onnxlab.backend`, all of those that the wheel carries."""

import zlib
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
import pytest

from onnxlab.backend import Backend, run_node
from onnxlab.errors import FeedError

CHUNKS = 8  # so that several workers share the cases

RANDOM = "the expected output is one draw of a random operator"
KNOWN_FAILURES = {
    "test_attention_4d_causal_fp16_expanded_cpu": "float16 rounds differently when the last sum is made in float32",
    "test_bernoulli_cpu": RANDOM,
    "test_bernoulli_double_cpu": RANDOM,
    "test_bernoulli_double_expanded_cpu": RANDOM,
    "test_bernoulli_expanded_cpu": RANDOM,
    "test_bernoulli_seed_cpu": RANDOM,
    "test_bernoulli_seed_expanded_cpu": RANDOM,
    "test_loop16_seq_none_cpu": "onnx's comparison fails on a scalar inside a sequence; the output is right",
}

# Models of the zoo, which would have to be downloaded, and devices that are not there.
NOT_HERE = (
    "(test_bvlc_alexnet|test_densenet121|test_inception_v1|test_inception_v2|test_resnet50|test_shufflenet"
    "|test_squeezenet|test_vgg19|test_zfnet512|_cuda)"
)


def cases() -> dict[str, Any]:
    """{name: test} of every case that counts here."""
    suite = onnx.backend.test.BackendTest(Backend, __name__)
    suite.exclude(NOT_HERE)
    by_name = {}
    for case_class in suite.test_cases.values():
        for name in dir(case_class):
            test = getattr(case_class, name)
            if name.startswith("test_") and not getattr(test, "__unittest_skip__", False):
                by_name[name] = (case_class, test)
    return by_name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.slow
def test_cases_of_the_onnx_wheel(chunk: int) -> None:
    passed, failed = [], {}
    for name, (case_class, test) in cases().items():
        if zlib.crc32(name.encode()) % CHUNKS != chunk:
            continue
        try:
            test(case_class(name))
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
        else:
            passed.append(name)
    unexpected = {name: why for name, why in failed.items() if name not in KNOWN_FAILURES}
    assert unexpected == {}
    assert [name for name in passed if name in KNOWN_FAILURES] == [], "these pass now: take them off the list"
    assert len(passed) > 200


def test_one_node() -> None:
    node = onnx.helper.make_node("Sub", ["a", "b"], ["c"])
    (output,) = run_node(node, [np.array([3.0]), np.array([1.0])])
    assert output.tolist() == [2.0]


def test_inputs_by_position_by_name_and_alone() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[1] x, float[1] w) => (float[1] y)'
        " <float[1] w = {2}> { y = Mul (x, w) }"
    )
    ready = Backend.prepare(model)
    first, three = np.ones(1, np.float32), np.full(1, 3, np.float32)
    assert ready.run(three) == ready.run([three]) == ready.run({"x": three}) == ([6],)
    assert ready.run([three, first]) == ([3],)
    with pytest.raises(FeedError, match=r"takes 1 inputs \(x\), given 3"):
        ready.run([first, first, first])


def test_only_the_cpu_is_supported() -> None:
    assert Backend.supports_device("CPU:0")
    assert not Backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="use 'CPU'"):
        Backend.prepare(onnx.ModelProto(), "CUDA")
