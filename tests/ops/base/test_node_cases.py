"""The node cases that the onnx wheel generates, straight through the kernels."""

import functools
import warnings
from collections import defaultdict

import numpy as np
import onnx
import pytest

from onnxlab import schemas
from tests.ops.support.interpreter import Interpreter, close

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
OPERATORS = [(domain, op_type) for domain in DOMAINS for op_type in schemas.operators(domain)]

# Expected values that were rounded to bfloat16 after every step; ours are rounded once, and differ in the last bit.
ROUNDED_EACH_STEP = {
    f"test_attention_{case}_bf16{form}"
    for case in ("4d_causal", "4d_padded_kv", "4d_causal_padded_kv", "4d_attn_mask_causal", "3d_causal")
    for form in ("", "_expanded")
}


@functools.cache
def cases():
    """{(domain, operator of the first node): [case, …]}, the expanded ones by what they were expanded from."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow and divide by zero on purpose
        loaded = load_model_tests(kind="node")
    plain = {case.name: case.model.graph.node[0] for case in loaded}
    grouped = defaultdict(list)
    for case in loaded:
        node = plain.get(case.name.split("_expanded")[0], case.model.graph.node[0])
        grouped[node.domain, node.op_type].append(case)
    return grouped


def array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


# Their numbers are random by design: shape and type count.
RANDOM = ("test_bernoulli", "test_randomuniform", "test_randomnormal", "test_multinomial")


def problem(case):
    """The difference of our outputs, or None."""
    names = [value.name for value in case.model.graph.input]
    for inputs, expected in case.data_sets:
        outputs = Interpreter(case.model).run(dict(zip(names, map(array, inputs), strict=False)))
        for reference, (name, ours) in zip(map(array, expected), outputs.items(), strict=True):
            if case.name.startswith(RANDOM):
                reference, ours = np.zeros_like(reference), np.zeros_like(ours)
            text = close(reference, ours, max(case.rtol, 1e-3))
            if text:
                return f"{case.name}: {name}: {text}"
    return None


@pytest.mark.parametrize(("domain", "op_type"), OPERATORS)
def test_node_cases(domain, op_type):
    wrong = {case.name: text for case in cases()[domain, op_type] if (text := problem(case))}
    expected = {case.name for case in cases()[domain, op_type]} & ROUNDED_EACH_STEP
    assert set(wrong) == expected, wrong


def test_every_case_belongs_to_an_operator():
    assert sum(map(len, cases().values())) == 1884
    assert set(cases()) <= set(OPERATORS)


def test_kernels_leave_their_inputs_alone():
    """Every case again with read-only inputs: a kernel that wrote to one would raise."""
    for group in cases().values():
        for case in group[:3]:
            feeds = {}
            for value, item in zip(case.model.graph.input, case.data_sets[0][0], strict=False):
                feeds[value.name] = array(item)
                if isinstance(feeds[value.name], np.ndarray):
                    feeds[value.name] = feeds[value.name].copy()
                    feeds[value.name].setflags(write=False)
            Interpreter(case.model).run(feeds)
