"""onnx's per-node rule behind facts: the private method, the public function and the whole model agree."""

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from onnxlab.infer.rules import native
from onnxlab.shapes import Expr, FactError, TensorFact, known, symbol

BATCH = symbol("batch")
OPSETS = {"": 20}


class Public:
    """A schema without the private method, as an older or newer onnx might have it."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self.has_function = False

    def __getattr__(self, name: str) -> Any:
        if name == "_infer_node_outputs":
            raise AttributeError(name)
        return getattr(self._schema, name)


@pytest.mark.parametrize("public", [False, True])
def test_symbols_pass_through_and_unknown_sizes_are_holes(public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = onnx.defs.get_schema("MaxPool", 12)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
    if public:
        called = []
        original = native.infer_node_outputs
        monkeypatch.setattr(native, "infer_node_outputs", lambda s, *a: (called.append(s), original(s._schema, *a))[1])
        schema = Public(schema)
    (fact,) = native.infer(schema, node, [TensorFact(1, (BATCH * 2, 3, BATCH, 8))], OPSETS, 10)
    assert fact.shape is not None
    assert fact.shape[0] is BATCH * 2
    assert fact.shape[1:2] + fact.shape[3:] == (3, 7)
    assert isinstance(fact.shape[2], Expr)
    assert fact.shape[2] is native.hole(0, 2)
    assert not public or called


def test_known_elements_are_passed() -> None:
    import numpy as np

    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    shape = TensorFact(7, (2,), known(np.array([-1, 3])))
    (fact,) = native.infer(onnx.defs.get_schema("Reshape", 20), node, [TensorFact(1, (2, 6)), shape], OPSETS, 10)
    assert fact.shape == (4, 3)


def test_an_operator_with_only_a_function_body_is_inferred_through_it() -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2, 3])
    schema = onnx.defs.get_schema("MeanVarianceNormalization", 13)
    (fact,) = native.infer(schema, node, [TensorFact(1, (2, 3, 4, 5))], OPSETS, 10)
    assert (fact.elem_type if isinstance(fact, TensorFact) else 0) == TensorProto.FLOAT


def test_a_refusal_is_a_fact_error_without_the_prefix() -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=5)
    with pytest.raises(FactError) as caught:
        native.infer(onnx.defs.get_schema("Concat", 13), node, [TensorFact(1, (2,)), TensorFact(1, (2,))], OPSETS, 10)
    assert not str(caught.value).startswith("[")
    assert caught.value.code == "onnx-inference"


@pytest.mark.parametrize(("opset", "ir_version"), [(2**62, 9), (20, 2**40)])
def test_versions_beyond_what_onnx_counts_are_refused(opset: int, ir_version: int) -> None:
    node = helper.make_node("CenterCropPad", ["x", "s"], ["y"])
    inputs = [TensorFact(1, (2,)), TensorFact(7, (1,))]
    with pytest.raises(FactError, match="onnx has no rule for version"):
        native.infer(onnx.defs.get_schema("CenterCropPad"), node, inputs, {"": opset}, ir_version)
