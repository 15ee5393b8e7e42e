"""Bad input of every kind on the main path: a clear error, and nothing lost. Bad files: tests/formats."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import EditError, FeedError, LoadError, NameLookupError, RunError, UnsupportedOperatorError
from onnxlab.render import text


def unknown_operator() -> onnxlab.Model:
    """x -> Relu -> my.domain::Mystery -> Neg -> y."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Mystery", ["r"], ["m"], name="what", domain="my.domain"),
        helper.make_node("Neg", ["m"], ["y"], name="neg"),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my.domain", 1)]
    return onnxlab.Model(helper.make_model(graph, opset_imports=opsets, ir_version=9))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs|Git LFS"),
        (b"# a text file\n", "text"),
        (bytes(range(256)) * 8, "not|no ONNX|cannot"),
    ],
)
def test_bytes_that_are_no_model(data: bytes, says: str) -> None:
    with pytest.raises(LoadError, match=says):
        onnxlab.load(data)


def test_a_truncated_file_and_a_missing_one(tmp_path: Path) -> None:
    whole = onnxlab.load().to_bytes()
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LoadError, match="it is cut off"):
        onnxlab.load(cut)
    with pytest.raises(LoadError, match=r"no such file; did you mean cut\.onnx"):
        onnxlab.load(tmp_path / "cat.onnx")


def test_an_unknown_operator_shows_edits_and_saves(tmp_path: Path) -> None:
    model = unknown_operator()
    assert str(model.fact("r")) == "float32[2,3]"
    model.nodes["what"].attributes["alpha"] = 0.5
    model.nodes["relu"].name = "first"
    saved = onnx.load(model.save(tmp_path / "m.onnx"))
    assert saved.graph.node[1].attribute[0].f == 0.5
    with pytest.raises(UnsupportedOperatorError, match=r"what.*Mystery|Mystery.*what") as error:
        model.run({"x": np.zeros((2, 3), np.float32)})
    assert error.value.node == "what"
    assert list(model.run({"x": np.zeros((2, 3), np.float32)}, outputs=["r"])) == ["r"], "the rest still runs"


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ({}, "image"),
        ({"img": np.zeros((1, 1, 8, 8), np.float32)}, "image"),
        ({"image": np.zeros((1, 1, 8, 8), np.int64)}, "float32.*int64|int64.*float32"),
        ({"image": np.zeros((1, 1, 9, 8), np.float32)}, "8"),
        ({"image": np.zeros((1, 8, 8), np.float32)}, "image"),
        ({"image": "no array"}, "image"),
    ],
)
def test_wrong_feeds(feeds: dict[str, object], says: str) -> None:
    model = onnxlab.load()
    with pytest.raises(FeedError, match=says):
        model.run(feeds)
    assert model.run({"image": np.zeros((1, 1, 8, 8), np.float32)})["probabilities"].shape == (1, 10)


def test_edits_that_would_break_the_graph() -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(EditError, match="depend on itself"):
        model.nodes["/stem/conv/Conv"].set_input(0, "logits")
    with pytest.raises(EditError, match="one producer"):
        model.add_node("Relu", ["image"], ["logits"])
    with pytest.raises(EditError, match="no value is called"):
        model.add_node("Relu", ["imag"], ["new"])
    with pytest.raises(EditError, match="nothing makes it"):
        model.nodes["/stem/bn/BatchNormalization"].remove()
    assert model.to_bytes() == before
    assert not model.history.labels


def test_an_attribute_of_the_wrong_type_in_the_file_is_a_diagnostic_not_an_obstacle() -> None:
    proto = onnx.ModelProto.FromString(onnxlab.load().to_bytes())
    strides = next(attribute for attribute in proto.graph.node[0].attribute if attribute.name == "strides")
    strides.CopyFrom(helper.make_attribute("strides", "two"))
    model = onnxlab.Model(proto)
    conv = model.nodes[0]
    assert any(problem.node == conv.id for problem in model.diagnostics)
    model.nodes["/stem/relu/Relu"].name = "still editable"
    with pytest.raises(RunError, match="/stem/conv/Conv"):
        model.run({"image": np.zeros((1, 1, 8, 8), np.float32)})
    conv.attributes["strides"] = [1, 1]
    assert not model.diagnostics
    assert model.run({"image": np.zeros((1, 1, 8, 8), np.float32)})


def test_newer_versions_than_onnx_knows_open(tmp_path: Path) -> None:
    proto = onnx.ModelProto.FromString(onnxlab.load().to_bytes())
    proto.ir_version = 99
    proto.opset_import[0].version = 999
    path = tmp_path / "future.onnx"
    path.write_bytes(proto.SerializeToString())
    model = onnxlab.load(path)
    assert str(model.fact("stem/conv_out")) == "float32[batch,8,8,8]"
    model.nodes[0].name = "renamed"
    model.undo()
    assert model.to_bytes() == path.read_bytes()


def test_a_file_with_a_cycle_and_a_second_producer_opens_and_can_be_mended() -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
        helper.make_node("Neg", ["x"], ["a"], name="third"),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "b")]
    proto = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), ir_version=9)
    model = onnxlab.Model(proto)
    with pytest.raises(RunError):
        model.run({"x": np.ones(2, np.float32)})
    model.nodes["first"].set_input(1, "x")
    model.remove(["third"])
    assert model.run({"x": np.ones(2, np.float32)})["b"].tolist() == [2, 2]
    assert str(model.fact("b")) == "float32[2]"


def test_names_that_mean_nothing() -> None:
    model = onnxlab.load()
    for key in ("", "nope", 99, -99):
        with pytest.raises(NameLookupError):
            model.nodes[key]


def one_node(node: onnx.NodeProto) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_errors_of_a_run_stay_readable() -> None:
    feeds = {"x": np.zeros((2, 3), np.float32)}
    with pytest.raises(onnxlab.OnnxlabError, match=r"Constant#0 \(Constant\): none of the attributes value"):
        onnxlab.run(one_node(helper.make_node("Constant", [], ["y"])), feeds)
    endless = one_node(helper.make_node("Neg", ["x"], ["y"]))
    body = [helper.make_node("Neg", ["i"], ["o"])]
    endless.functions.append(helper.make_function("", "Neg", ["i"], ["o"], body, [helper.make_opsetid("", 20)]))
    with pytest.raises(onnxlab.OnnxlabError, match="calls itself") as failure:
        onnxlab.run(endless, feeds)
    assert len(str(failure.value)) < 500
    model = onnxlab.load(one_node(helper.make_node("R" * 10_000_000, ["x"], ["y"])))
    with pytest.raises(onnxlab.OnnxlabError, match=r"RRR … .*R") as failure:
        model.run(feeds)
    assert len(str(failure.value)) < 30_000
    assert len(model.to_svg()) < 100_000


def test_an_initializer_without_a_name() -> None:
    proto = one_node(helper.make_node("Neg", ["x"], ["y"]))
    proto.graph.initializer.add(dims=[0], data_type=TensorProto.FLOAT)
    model = onnxlab.load(proto)
    (nameless,) = (value for value in model.graph.values.values() if not value.name)
    with pytest.raises(EditError, match="has no name, so nothing can read it"):
        model.value(nameless.id).name = "given"


def test_an_empty_tensor_with_dims_that_overflow() -> None:
    proto = one_node(helper.make_node("Neg", ["w"], ["y"]))
    proto.graph.initializer.add(name="w", dims=[0, 2**62, 2**62], data_type=TensorProto.FLOAT)
    assert str(onnxlab.load(proto).fact("y")) == f"float32[0,{2**62},{2**62}]"
    proto.graph.initializer[0].dims[:] = [-2, -3]
    proto.graph.initializer[0].float_data[:] = range(6)
    assert "tensor-shape" in {problem.code for problem in onnxlab.load(proto).check()}


@pytest.mark.parametrize("dims", [[2**62] * 3, [0, 2**62, 2**62], [f"d{axis}" for axis in range(100)]], ids=str)
def test_shapes_that_numpy_has_not_are_drawn_and_exported(dims: list[int | str], tmp_path: Path) -> None:
    proto = one_node(helper.make_node("Neg", ["x"], ["y"]))
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    if 0 in dims:
        proto.graph.initializer.add(name="x", dims=dims, data_type=TensorProto.FLOAT)
    model = onnxlab.load(proto)
    assert model.to_html(tmp_path / "model.html").stat().st_size > 1000
    assert "</svg>" in model.to_svg()
    assert str(model.fact("y").dtype) == "float32"


def test_an_initializer_of_an_element_type_that_does_not_exist_is_summarized() -> None:
    proto = one_node(helper.make_node("Neg", ["x"], ["y"]))
    proto.graph.initializer.add(name="w", dims=[3], data_type=-(2**31))
    assert "3 parameters (0 B)" in text.summary(onnxlab.load(proto))
