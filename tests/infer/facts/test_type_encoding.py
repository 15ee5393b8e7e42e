"""Facts as serialized TypeProtos, against messages that protobuf fills and reads."""

import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from onnxlab import dtypes
from onnxlab.infer.facts.type_encoding import encode
from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.shapes import Expr, MapFact, OptionalFact, SequenceFact, SparseTensorFact, TensorFact, symbol

dims = st.one_of(st.integers(0, 2**63 - 1), st.sampled_from(["n", "höhe", "2*seq + 1", "x" * 200]))
shapes = st.none() | st.lists(dims, max_size=40)
elem_types = st.sampled_from([*dtypes.ELEM_TYPES, 1000, -7])


@given(elem_types, shapes)
def test_facts_are_encoded_as_protobuf_does(elem_type: int, shape: list[int | str] | None) -> None:
    dims = None if shape is None else tuple(symbol(dim) if isinstance(dim, str) else dim for dim in shape)
    tensor = helper.make_tensor_type_proto(elem_type, shape)
    sparse = helper.make_sparse_tensor_type_proto(elem_type, shape)
    held = TensorFact(elem_type, dims)
    for fact, proto in (
        (held, tensor),
        (SparseTensorFact(elem_type, dims), sparse),
        (SequenceFact(held), helper.make_sequence_type_proto(tensor)),
        (OptionalFact(SequenceFact(held)), helper.make_optional_type_proto(helper.make_sequence_type_proto(tensor))),
        (MapFact(dtypes.INT64, held), helper.make_map_type_proto(dtypes.INT64, tensor)),
    ):
        assert onnx.TypeProto.FromString(encode(fact)) == proto
        assert encode(fact) == proto.SerializeToString()


def test_a_dim_that_no_message_can_hold_stays_empty() -> None:
    fact = TensorFact(dtypes.FLOAT, (2**63, symbol("n"), 3))
    dims = onnx.TypeProto.FromString(encode(fact, lambda _: None)).tensor_type.shape.dim
    assert [dim.WhichOneof("value") for dim in dims] == [None, None, "dim_value"]
    assert str(fact_of_type(onnx.TypeProto.FromString(encode(fact)), symbol_of)) == "float32[?,n,3]"


def symbol_of(axis: int) -> Expr:
    return symbol("?", key=("test", axis))
