"""Whether protobuf writes a file as it stands, with its weights left out of the question."""

import io
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxlab.formats import canonical
from onnxlab.formats.canonical import is_canonical
from onnxlab.graph.protos.name_bytes import varint
from tests.graph.support import lossless
from tests.graph.support.models import chain


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def swapped(data: bytes) -> bytes:
    """The graph before everything else."""
    model = onnx.ModelProto.FromString(data)
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    return field(7, graph) + model.SerializeToString()


def loose_length(data: bytes) -> bytes:
    """The length of the graph in a byte more than it needs."""
    graph = onnx.ModelProto.FromString(data).graph.SerializeToString()
    size = varint(len(graph))
    loose = size[:-1] + bytes([size[-1] | 0x80, 0])
    return data.replace(b"\x3a" + size + graph, b"\x3a" + loose + graph)


def twice(data: bytes) -> bytes:
    """A graph in two pieces, each with a weight."""
    return data + field(7, field(5, onnx.TensorProto(name="more", raw_data=b"12345678").SerializeToString()))


@pytest.mark.parametrize("change", [bytes, swapped, loose_length, twice, lambda data: data + field(4000, b"unknown"),
                                    lambda data: data[:-3], lambda data: data + b"\x0b"])  # fmt: skip
def test_it_agrees_with_protobuf(monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes], bytes]) -> None:
    monkeypatch.setattr(canonical, "SMALL", 0)
    data = change(chain().SerializeToString())
    try:
        same = onnx.ModelProto.FromString(data).SerializeToString() == data
    except Exception:
        same = False
    assert is_canonical(io.BytesIO(data), len(data)) == same


def test_models_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "SMALL", 0)
    counts = {True: 0, False: 0}
    for label, _, data in lossless.tortures():
        same = onnx.ModelProto.FromString(data).SerializeToString() == data
        verdict = is_canonical(io.BytesIO(data), len(data))
        assert not verdict or same, label
        counts[verdict] += 1
    assert all(counts.values())


def test_weights_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = numpy_helper.from_array(np.zeros(1 << 20, "uint8"), "w")
    graph = helper.make_graph([], "g", [], [], [weights])
    data = helper.make_model(graph).SerializeToString()
    monkeypatch.setattr(canonical, "SMALL", 0)
    read: list[int] = []

    class Counted(io.BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            chunk = super().read(count)
            read.append(len(chunk))
            return chunk

    assert is_canonical(Counted(data), len(data))
    assert sum(read) < 1000
