"""Operators that several graphs share: never one that means something else, and not for ever."""

from collections.abc import Iterator

import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab import ops, schemas
from onnxlab.infer.rules import operator_cache
from onnxlab.infer.rules.operators import REMEMBERED
from onnxlab.schemas import FormalParameter, Schema

MODEL = '<ir_version: 10, opset_import: ["" : {}]> g (float[2, 3, 4] x) => (y) {{ {} }}'


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    operator_cache.forget()
    yield
    operator_cache.forget()


def shape(opset: int, nodes: str) -> list[int]:
    (value,) = onnxlab.infer_shapes(onnx.parser.parse_model(MODEL.format(opset, nodes)), data_prop=True).graph.output
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_a_second_graph_asks_no_rule() -> None:
    nodes = "s = Constant <value = int64[2] {6, 4}> () mid = Reshape (x, s) y = Transpose (mid)"
    assert shape(17, nodes) == [4, 6]
    before = REMEMBERED.count
    assert shape(17, nodes.replace("mid", "another")) == [4, 6]
    assert REMEMBERED.count == before
    assert shape(17, nodes.replace("{6, 4}", "{4, 6}")) == [6, 4]
    assert REMEMBERED.count > before


def test_another_opset_is_another_operator() -> None:
    assert shape(11, "y = ReduceSum <axes = [1], keepdims = 0> (x)") == [2, 4]
    assert shape(13, "y = ReduceSum <axes = [1], keepdims = 0> (x)") == []  # no such attribute: all of them
    assert shape(11, "y = ReduceSum <axes = [1], keepdims = 0> (x)") == [2, 4]


def test_a_custom_operator_takes_the_place_of_a_known_one() -> None:
    def first_dim(ctx: object, attributes: object, x: onnxlab.shapes.TensorFact) -> onnxlab.shapes.TensorFact:
        return onnxlab.shapes.TensorFact(x.elem_type, x.shape and x.shape[:1])

    formals = (FormalParameter("x", "single", "T"),), (FormalParameter("y", "single", "T"),)
    assert shape(17, "y = Relu (x)") == [2, 3, 4]
    ops.register(Schema("", "Relu", 14, *formals, {}, {"T": ("tensor(float)",)}), infer=first_dim)
    try:
        assert shape(17, "y = Relu (x)") == [2]
    finally:
        ops.unregister("", "Relu")
    assert schemas.custom("", "Relu", 17) is None
    assert shape(17, "y = Relu (x)") == [2, 3, 4]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_cache, "OUTCOMES", 20)
    for size in range(1, 60):
        nodes = f"s = Constant <value_ints = [-1, {size}]> () z = Reshape (x, s) y = Concat <axis = {size % 3}> (x, x)"
        shape(17, nodes)
        assert REMEMBERED.count < 30


def test_no_operator_that_is_kept_holds_a_field_of_a_models_message() -> None:
    nodes = "s = Shape (x) filled = ConstantOfShape <value = float {2.5}> (s) y = Identity (filled)"
    proto = onnx.parser.parse_model(MODEL.format(17, nodes))
    onnxlab.Model(proto)
    (stored,) = (entry.t for node in proto.graph.node for entry in node.attribute if node.op_type == "ConstantOfShape")
    stored.float_data[0] = 7.5
    operators = [
        entry
        for among in operator_cache._tables.values()
        for entry in among.values()
        if entry.op_type == "ConstantOfShape"
    ]
    assert [entry.attributes["value"].float_data[0] for entry in operators] == [2.5]
