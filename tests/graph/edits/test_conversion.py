"""Opset conversion: what did not change stays to the byte, what did computes the same, what cannot be is refused."""

import os
import re

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.model import Model
from tests.graph.edit.test_script import replayed
from tests.graph.edits.test_edits import check_undo
from tests.graph.support.models import branches, state
from tests.ops.base.test_node_cases import RANDOM, ROUNDED_EACH_STEP, array, cases
from tests.ops.support.interpreter import close
from tests.support.corpus import Corpus, inputs
from tests.support.oracle import new_session, oracle

BOTH = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
both (float[2, 3, 4] x, bool flag) => (float[2, 4] y) {
    axes = Constant<value_ints = [1]>()
    [squeezed] s = ReduceMean<axes = [1], keepdims = 0>(x)
    [choice] y = If (flag) <
        then_branch = then () => (float[2, 4] t) { [inner] t = local.Scaled<factor = 3.0>(s) },
        else_branch = else () => (float[2, 4] e) { [halves] a, b = Split<axis = 1>(s) e = Concat<axis = 1>(b, a) }
    >
}
<opset_import: ["" : 17], domain: "local">
Scaled <factor> (v) => (o) {
    [leak] l = LeakyRelu<alpha: float = @factor>(v)
    [most] m = ReduceMax<axes = [1], keepdims = 1>(l)
    o = Add(l, m)
}""")


def both() -> onnx.ModelProto:
    """A model whose nodes that change stand in the graph, in a branch and in a function."""
    model = onnx.ModelProto.FromString(BOTH.SerializeToString())
    model.graph.node[1].doc_string = "kept"
    model.graph.node[1].metadata_props.add(key="from", value="torch")
    return model


FEEDS = {"x": np.random.default_rng(0).standard_normal((2, 3, 4), np.float32), "flag": np.array(False)}


def test_nodes_in_the_graph_in_bodies_and_in_functions_become_what_they_are_later() -> None:
    model = Model(both())
    before, index = model.to_bytes(), state(model.graph)
    expected = [Model(both()).run({**FEEDS, "flag": np.array(flag)})["y"] for flag in (True, False)]
    mean = model.nodes["squeezed"]
    assert model.convert_opset(18) == 3
    assert model.opsets == {"": 18, "local": 1}
    assert model.proto.functions[0].opset_import[0].version == 18
    assert mean == model.nodes["squeezed"], "still the same node"
    assert (mean.doc_string, dict(mean.metadata)) == ("kept", {"from": "torch"})
    assert [value.name for value in mean.inputs] == ["x", "squeezed/Constant"]
    assert model.nodes["choice/else/halves"].attributes["num_outputs"] == 2
    assert model.nodes["local::Scaled/leak"].proto == both().functions[0].node[0], "LeakyRelu is the same in both"
    onnx.checker.check_model(model.proto, full_check=True)
    for flag, expected_array in zip((True, False), expected, strict=True):
        np.testing.assert_array_equal(
            oracle()(model.to_bytes(), {**FEEDS, "flag": np.array(flag)})["y"], expected_array
        )
    assert model.history.labels == ["convert to ai.onnx 18"]
    assert replayed(model, before) == model.to_bytes()
    check_undo(model.graph, before, index)


def test_there_and_back_again() -> None:
    model = Model(both())
    model.convert_opset(18)
    assert model.convert_opset(17) == 3
    assert dict(model.nodes["squeezed"].attributes) == {"axes": [1], "keepdims": 0}
    assert "num_outputs" not in model.nodes["choice/else/halves"].attributes
    onnx.checker.check_model(model.proto, full_check=True)
    np.testing.assert_array_equal(oracle()(model.to_bytes(), FEEDS)["y"], Model(both()).run(FEEDS)["y"])


def test_an_operator_that_is_too_new_becomes_its_body() -> None:
    text = '<ir_version: 9, opset_import: ["" : 20]> g (float[N, 6] x) => (float[N, 6] y) { [act] y = Gelu(x) }'
    model = Model(onnx.parser.parse_model(text))
    assert model.convert_opset(13) == 1
    assert "Gelu" not in {node.op_type for node in model.nodes}
    assert all(node.name.startswith("act") for node in model.nodes)
    onnx.checker.check_model(model.proto, full_check=True)
    x = np.linspace(-4, 4, 12, dtype=np.float32).reshape(2, 6)
    expected = oracle()(onnx.parser.parse_model(text).SerializeToString(), {"x": x})["y"]
    np.testing.assert_allclose(oracle()(model.to_bytes(), {"x": x})["y"], expected, atol=1e-6)


GIVEN = {
    "low": "float {-0.5}", "high": "float {0.75}",
    "one": "int64[1] {1}", "two": "int64[1] {2}", "last": "int64[1] {-1}",
    "pads": "int64[4] {0, 1, 0, 2}", "no": "bool {0}", "third": "double {0.333}",
}  # fmt: skip


def with_constants(line: str, old: int) -> Model:
    """A model of one node, y of x, and the constants that it reads."""
    read = re.findall(r"\w+", line)
    named = " ".join(f"{name} = Constant<value = {value}>()" for name, value in GIVEN.items() if name in read)
    kind = "double" if "third" in line else "float"
    values = f"({kind}[2, 4] x) => ({kind}[N, M] y)"
    text = f'<ir_version: 8, opset_import: ["" : {old}]> g {values} {{ {named} {line} }}'
    return Model(onnx.parser.parse_model(text))


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("y = Clip(x, low, high)", 13, 6),
        ("y = Clip(x, low)", 11, 9),
        ("y = Clip(x, , high)", 12, 10),
        ("y = Pad(x, pads, high)", 11, 9),
        ('y = Pad<mode = "reflect">(x, pads)', 13, 10),
        ("y = Slice(x, one, two, last)", 11, 9),
        ("y = Slice(x, one, two, last, one)", 10, 9),
        ("y, indices = TopK(x, two)", 11, 9),
        ("y = Dropout(x, high, no)", 13, 10),
    ],
)
def test_constant_inputs_become_the_attributes_that_they_were(line: str, old: int, new: int) -> None:
    model = with_constants(line, old)
    before = model.to_bytes()
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    expected = oracle()(before, {"x": x})["y"]
    model.convert_opset(new)
    onnx.checker.check_model(model.proto, full_check=True)
    assert len(model.nodes[-1].inputs) == 1
    np.testing.assert_array_equal(oracle()(model.to_bytes(), {"x": x})["y"], expected)
    model.convert_opset(old)
    np.testing.assert_array_equal(oracle()(model.to_bytes(), {"x": x})["y"], expected)
    model.undo(to=0)
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    "line", ["y = Clip(x, x)", "y = Slice(x, one, two, one, two)", "y = Clip(x, third)", "y = TopK(x, x)"]
)
def test_inputs_that_are_no_such_attributes_are_refused(line: str) -> None:
    model = with_constants(line, 11)
    with pytest.raises(EditError, match="does not have"):
        model.convert_opset(9)


@pytest.mark.parametrize(
    ("line", "old", "new", "says"),
    [
        ("y = GridSample(x, x)", 20, 15, r"y \(GridSample\): "),
        ("y = Hardmax<axis = 1>(x)", 12, 13, "Hardmax flattens all dims"),
        ("y = Hardmax<axis = 1>(x)", 13, 12, "Hardmax flattens all dims"),
        ("y = Cast<to = 16>(x)", 13, 12, "Cast of ai.onnx 12 does not take tensor.bfloat16. as output"),
        (
            "y = AveragePool<dilations = [2, 2], kernel_shape = [1, 1]>(x)", 19, 18,
            "AveragePool of ai.onnx 18: it has no attribute 'dilations'",
        ),
        ("y = Relu(x)", 20, 99, "there are versions 1 to"),
        ("y = Relu(x)", 20, "21", "version is '21', a str: expected a whole number"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_by_name(line: str, old: int, new: int, says: str) -> None:
    kind = "bfloat16" if "Cast" in line else "float"
    model = Model(onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : {old}]> g (float[1, 2, 3, 2] x) => ({kind} y) {{ [y] {line} }}'
    ))  # fmt: skip
    before = model.to_bytes()
    with pytest.raises(EditError, match=says):
        model.convert_opset(new)
    assert model.to_bytes() == before


def test_a_reference_to_an_attribute_that_decides_is_refused() -> None:
    model = both()
    node = model.functions[0].node[0]
    node.op_type = "Softmax"
    node.attribute[0].name, node.attribute[0].type = "axis", onnx.AttributeProto.INT
    model.functions[0].opset_import[0].version = model.opset_import[0].version = 12
    model.graph.node[0].CopyFrom(onnx.helper.make_node("Constant", [], ["axes"], value_ints=[1]))
    with pytest.raises(EditError, match=r"leak \(Softmax\): what it becomes depends on an attribute of its function"):
        Model(model).convert_opset(13)


LONG = bool(os.environ.get("ONNXLAB_LONG"))
REAL = {"silero_vad_if": (13, 18), "functions_ts": (21,), "script_control": (13, 21), "resnet101_qdq": (18,)}
if LONG:
    REAL = dict.fromkeys((*REAL, "rapidocr_cls", "lstm_gru", "gpt2_kv", "minilm_int8", "whisper_encoder"), (15, 18, 21))


@pytest.mark.parametrize(("name", "versions"), REAL.items())
def test_real_models_compute_the_same(corpus: Corpus, name: str, versions: tuple[int, ...]) -> None:
    model = onnxlab.load(corpus[name])
    before, feeds = model.to_bytes(), inputs(name, corpus[name])
    expected = oracle()(corpus[name], feeds)
    same = ["Add", "MatMul", "Relu", "Sigmoid", "Gather", "Concat"]  # they take more types later, nothing else
    untouched = [node.proto.SerializeToString() for node in model.find(same, where=lambda node: node.name)]
    for version in versions:
        model.convert_opset(version)
        assert set(untouched) <= {node.proto.SerializeToString() for node in model.find(same)}
        assert not [problem for problem in model.check() if problem.severity == "error"]
        arrays = oracle()(model.to_bytes(), feeds)
        for output, expected_array in expected.items():
            np.testing.assert_allclose(arrays[output], expected_array, rtol=1e-4, atol=1e-5)
        model.undo()
        assert model.to_bytes() == before


@pytest.mark.parametrize("spelled", ["", "start = 1", "end = -1", "start = -9, end = 2", "start = 2, end = 99"])
def test_a_part_of_a_shape_is_a_slice_of_it(spelled: str) -> None:
    text = (
        f'<ir_version: 9, opset_import: ["" : 15]> g (float[2, 3, 4] x) => (int64[N] y) {{ y = Shape<{spelled}>(x) }}'
    )
    proto = onnx.parser.parse_model(text.replace("<>", ""))
    model = Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    model.convert_opset(13)
    onnx.checker.check_model(model.proto, full_check=True)
    x = np.zeros((2, 3, 4), np.float32)
    expected = oracle()(proto.SerializeToString(), {"x": x})["y"]
    np.testing.assert_array_equal(oracle()(model.to_bytes(), {"x": x})["y"], expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_what_means_something_else_is_written_out(op_type: str, axis: int) -> None:
    text = f'<ir_version: 9, opset_import: ["" : 13]> g (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ y = {op_type}'
    proto = onnx.parser.parse_model(text + f"<axis = {axis}>(x) }}")
    model = Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    model.convert_opset(12)
    assert [node.op_type for node in model.nodes].count(op_type) == (axis in (2, -1)), "the last one is the same"
    x = np.random.default_rng(0).standard_normal((2, 3, 4), np.float32)
    expected = oracle()(proto.SerializeToString(), {"x": x})["y"]
    np.testing.assert_allclose(oracle()(model.to_bytes(), {"x": x})["y"], expected, rtol=1e-5)


def test_inputs_that_are_left_out_go_where_there_were_none() -> None:
    text = '<ir_version: 9, opset_import: ["" : 13]> g (float[2] x) => (float[2] y) { [clip] y = Clip(x) }'
    proto = onnx.parser.parse_model(text)
    proto.graph.node[0].input[:] = ["x", "", ""]
    model = Model(proto)
    assert model.convert_opset(9) == 1
    assert list(model.nodes["clip"].proto.input) == ["x"]
    onnx.checker.check_model(model.proto, full_check=True)


def test_bodies_are_left_to_their_own_nodes() -> None:
    model = Model(branches())
    assert model.convert_opset(21) == 0
    assert model.convert_opset(13) == 0
    assert model.nodes["if/then/inner"].op_type == "If"
    onnx.checker.check_model(model.proto, full_check=True)


@pytest.mark.skipif(not LONG, reason="an hour: ONNXLAB_LONG=1")
@pytest.mark.parametrize("version", [9, 13, 17, 20, 26])
def test_every_node_case_that_can_be_said_in_another_version_gives_the_same(version: int) -> None:
    refused = 0
    for case in [case for group in cases().values() for case in group]:
        model = Model(onnx.ModelProto.FromString(case.model.SerializeToString()))
        if "" not in model.opsets or case.name in ROUNDED_EACH_STEP or case.name.startswith(RANDOM):
            continue
        try:
            model.convert_opset(version)
        except EditError:
            refused += 1
            continue
        for input_tensors, expected in case.data_sets:
            feeds = dict(
                zip([value.name for value in model.proto.graph.input], map(array, input_tensors), strict=False)
            )
            for expected_array, actual in zip(map(array, expected), model.run(feeds).values(), strict=True):
                assert not close(expected_array, actual, max(case.rtol, 1e-3)), case.name
    assert refused < 1400


@pytest.mark.parametrize(("new", "axis"), [(9, -2), (9, 1), (11, -2)])
def test_an_axis_of_the_output_is_counted_along_the_output(new: int, axis: int) -> None:
    text = '<ir_version: 9, opset_import: ["" : 13]> g (float[2, 2] i, float d, float[2] v) => (float[2, 10, 2] y) {'
    proto = onnx.parser.parse_model(f"{text} y = OneHot<axis = {axis}>(i, d, v) }}")
    feeds = {"i": np.array([[1, 9], [2, 4]], np.float32), "d": np.float32(10), "v": np.array([1, 3], np.float32)}
    model = Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    model.convert_opset(new)
    np.testing.assert_array_equal(model.run(feeds)["y"], Model(proto).run(feeds)["y"])


@pytest.mark.parametrize(
    ("shape", "parts", "says"), [("7", 4, ""), ("8", 4, ""), ("N", 4, "a size"), ("5", 4, "5 elem")]
)
def test_parts_of_which_the_last_is_smaller_get_sizes(shape: str, parts: int, says: str) -> None:
    outputs = [f"y{number}" for number in range(parts)]
    declared = ", ".join(f"float[M] {name}" for name in outputs)
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[{shape}] x) => ({declared})'
    proto = onnx.parser.parse_model(f"{text} {{ {', '.join(outputs)} = Split<num_outputs = {parts}>(x) }}")
    model = Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    if says:
        with pytest.raises(EditError, match=f"equal parts, and {says}.* not split into {parts}"):
            model.convert_opset(17)
        return
    for version in (17, 12):
        model.convert_opset(version)
        feeds = {"x": np.arange(int(shape), dtype=np.float32)}
        actual, expected = model.run(feeds), Model(proto).run(feeds)
        assert all(np.array_equal(actual[name], expected[name]) for name in outputs)
        model.undo()


def test_nodes_in_the_bodies_of_what_is_written_out_are_converted_too() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (seq(float[N, 4]) x) => (seq(float[M, 4]) y) {
        y = SequenceMap(x) <body = each (float[N, 4] a) => (float[K, 2] b) {
            s, t = Split<axis = 1, num_outputs = 2>(a)
            b = Add(s, t)
        }>
    }"""
    proto = onnx.parser.parse_model(text)
    feeds = {"x": [np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((1, 4), np.float32)]}
    model = Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    assert model.convert_opset(13) == 2, "the node in the body too"
    actual, expected = model.run(feeds)["y"], Model(proto).run(feeds)["y"]
    assert all(np.array_equal(*pair) for pair in zip(actual, expected, strict=True))


def test_a_body_for_types_that_are_not_known_is_refused() -> None:
    body = onnx.parser.parse_graph("each (float[N] a) => (float[N] b) { b = Abs(a) }")
    node = onnx.helper.make_node("SequenceMap", ["x"], ["y"], name="map", body=body)
    graph = onnx.helper.make_graph([node], "g", [onnx.ValueInfoProto(name="x")], [onnx.ValueInfoProto(name="y")])
    model = Model(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8))
    with pytest.raises(EditError, match="map"):
        model.convert_opset(13)


INTEGERS = """<ir_version: 3, opset_import: ["" : 13]> g (float[2, 3] x, bool go) => (float[3, 2] y, int64[2] z) {
    shape = Constant <value = int64[2] {3, 2}> ()
    y = Reshape (x, shape)
    z = If (go) <
        then_branch = t () => (int64[2] a) { a = Constant <value = int64[2] {3, -2}> () },
        else_branch = e () => (int64[2] b) { b = Constant <value = int64[2] {0, 9}> () }
    >
}"""


@pytest.mark.parametrize("ways", [(5,), (6, 5), (8, 5)])
def test_integer_constants_of_old_versions_are_initializers(ways: tuple[int, ...]) -> None:
    model = Model(onnx.parser.parse_model(INTEGERS))
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "go": np.array(True)}
    expected = model.run(feeds)
    for version in ways:
        model.convert_opset(version)
    assert not [node for node in model.graph.nodes.values() if node.op_type in ("Cast", "Constant")]
    results = new_session(model.to_bytes(), None).run(list(expected), feeds)
    for before, result in zip(expected.values(), results, strict=True):
        np.testing.assert_array_equal(result, before)
    model.undo(to=0)
    assert model.to_bytes() == Model(onnx.parser.parse_model(INTEGERS)).to_bytes()


def test_axes_that_unsqueeze_counts_from_the_end_are_counted_from_the_front() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2, 3] x) => (float[2, 1, 3, 1] y) <int64[2] k = {-1, -3}> { r = Relu(x) y = Unsqueeze(r, k) }"""
    model = Model(onnx.parser.parse_model(text))
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    (expected,) = new_session(model.to_bytes(), None).run(None, feeds)
    model.convert_opset(10)
    (node,) = [node for node in model.nodes if node.op_type == "Unsqueeze"]
    assert list(node.proto.attribute[0].ints) == [3, 1]
    np.testing.assert_array_equal(new_session(model.to_bytes(), None).run(None, feeds)[0], expected)
    unknown = onnx.parser.parse_model(text)
    unknown.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(EditError, match="the rank of its input is not known"):
        Model(unknown).convert_opset(10)
