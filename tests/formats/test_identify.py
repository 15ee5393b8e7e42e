"""Bytes that are no model are named; never an exception, whatever they are."""

import onnx
from hypothesis import given
from hypothesis import strategies as st

from onnxlab.formats import identify


@given(st.binary(max_size=200))
def test_any_bytes_get_a_sentence(data: bytes) -> None:
    assert identify.describe(data).startswith(("it is ", "it has ", "its "))


@given(st.binary(max_size=100))
def test_walk_never_goes_past_the_end(data: bytes) -> None:
    fields = list(identify.walk(data))
    assert all(field.state == "whole" for field in fields[:-1])
    assert sum(field.declared for field in fields if field.state == "whole") <= len(data)


def test_walk_tells_the_fields_of_a_model() -> None:
    model = onnx.ModelProto(ir_version=8, producer_name="x" * 300, graph=onnx.GraphProto(name="g"))
    fields = list(identify.walk(model.SerializeToString()))
    sizes = {field.name: field.declared for field in fields}
    assert sizes == {"ir_version": 1, "producer_name": 300, "graph": 3}
    assert all(field.fits and field.state == "whole" for field in fields)


def test_every_cut_of_a_model_is_called_cut_off_or_without_graph() -> None:
    graph = onnx.GraphProto(name="g" * 50)
    data = onnx.ModelProto(ir_version=8, producer_name="maker", graph=graph).SerializeToString()
    for length in range(1, len(data)):
        sentence = identify.describe(data[:length])
        assert "cut off" in sentence, (length, sentence)


def test_field_names_are_those_of_onnx_proto() -> None:
    fields = onnx.ModelProto.DESCRIPTOR.fields
    assert {field.number: field.name for field in fields} == {
        number: name for number, (name, _wire) in identify._FIELDS.items()
    }
