"""`simplify` against onnxruntime: what each pass takes out, what it must leave, and what is taken back."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxlab
from onnxlab.cli import main
from onnxlab.errors import EditError
from onnxlab.transforms.metadata_transfer import MetadataLoss
from onnxlab.transforms.rules import built_in_rules, no_ops

Array = np.ndarray[Any, np.dtype[Any]]


def parsed(body: str, inputs: str = "float[b,4] x", outputs: str = "float y", opset: int = 18) -> onnx.ModelProto:
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def by_onnxruntime(proto: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds))


def simplified(proto: onnx.ModelProto, shape: tuple[int, ...] = (3, 4)) -> onnxlab.Model:
    """The model after `simplify`, which gave onnxruntime the same numbers for two sizes of the first dim."""
    before, model = onnx.ModelProto.FromString(proto.SerializeToString()), onnxlab.load(proto)
    receipt = model.simplify()
    assert receipt.verdict in ("bit equal", "equal within noise"), receipt
    assert not receipt.refused, receipt
    for size in (shape[0], 1):
        feeds = {"x": np.random.default_rng(size).normal(size=(size, *shape[1:])).astype(np.float32)}
        for old, new in zip(by_onnxruntime(before, feeds), by_onnxruntime(model.proto, feeds), strict=True):
            np.testing.assert_allclose(new, old, rtol=2e-5, atol=1e-6)
    assert not [problem for problem in model.check() if problem.severity == "error" and problem.code != "value-type"]
    return model


def operators(model: onnxlab.Model) -> list[str]:
    return [node.op_type for node in model.nodes]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("a = Identity(x) y = Relu(a)", ["Relu"]),
        ("a = Relu(x) y = Identity(a)", ["Relu"]),
        ("y = Identity(x)", ["Identity"]),  # an output that is an input needs a node
        ("a = Dropout(x) y = Relu(a)", ["Relu"]),
        ("a = Cast<to = 1>(x) y = Relu(a)", ["Relu"]),
        ("a = Cast<to = 7>(x) b = Cast<to = 1>(a) y = Relu(b)", ["Cast", "Cast", "Relu"]),
        ("a = Cast<to = 11>(x) b = Cast<to = 1>(a) y = Relu(b)", ["Relu"]),
        ("a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Relu(b)", ["Relu"]),
        ("a = Transpose<perm = [0, 1]>(x) y = Relu(a)", ["Relu"]),
        ("a = Transpose(x) y = Relu(a)", ["Transpose", "Relu"]),
        ("a = Concat<axis = 0>(x) b = Sum(a) y = Relu(b)", ["Relu"]),
        ("o = Constant<value = float {1}>() a = Mul(x, o) b = Div(a, o) y = Relu(b)", ["Relu"]),
        ("o = Constant<value = float {0}>() a = Sub(x, o) b = Add(a, o) y = Relu(b)", ["Relu"]),
        ("o = Constant<value = float {0}>() a = Add(x, o) y = Reciprocal(a)", ["Constant", "Add", "Reciprocal"]),
        ("o = Constant<value = float {0}>() a = Add(x, o) y = Div(x, a)", ["Constant", "Add", "Div"]),
        ("o = Constant<value = float {2}>() a = Mul(x, o) y = Relu(a)", ["Constant", "Mul", "Relu"]),
        ("s = Shape(x) a = Reshape(x, s) y = Relu(a)", ["Relu"]),
        ("z = Constant<value_ints = [0, 0]>() a = Pad(x, z, ) y = Relu(a)", None),
        ("p = Constant<value_ints = [0]>() a = Unsqueeze(x, p) b = Squeeze(a, p) y = Relu(b)", ["Relu"]),
        ("a = Relu(x) b = Relu(x) y = Add(a, b)", ["Relu", "Add"]),
        ("a = RandomNormalLike(x) b = RandomNormalLike(x) c = Sub(a, b) z = Sub(c, c) y = Add(z, x)", None),
        ("a = Relu(x) d = Exp(x) y = Neg(a)", ["Relu", "Neg"]),
    ],
)  # fmt: skip
def test_what_is_left(body: str, left: list[str] | None) -> None:
    if left is None:
        onnxlab.load(parsed(body)).simplify(verify=False)  # random or invalid models must only not crash
        return
    assert operators(simplified(parsed(body))) == left


def test_a_zero_stays_whose_sign_a_body_may_see() -> None:
    body = """
        z = Constant<value = float {0}>() c = Constant<value = bool {1}>() a = Add(x, z)
        y = If (c) <then_branch = t () => (float[b,4] p) { p = Reciprocal(a) },
                    else_branch = e () => (float[b,4] q) { q = Neg(a) }>
    """
    model = onnxlab.load(parsed(body))
    model.simplify()
    assert "Add" in operators(model)


def test_shape_arithmetic_becomes_a_target() -> None:
    body = """
        s = Shape(x) i = Constant<value_int = 0>() n = Gather(s, i) p = Constant<value_ints = [0]>()
        m = Unsqueeze(n, p) two = Constant<value_ints = [2, 2]>() t = Concat<axis = 0>(m, two) a = Reshape(x, t)
        y = Relu(a)
    """
    model = simplified(parsed(body))
    assert operators(model) == ["Reshape", "Relu"]
    assert np.asarray(model.tensor(model.nodes[0].inputs[1].name)).tolist() == [0, 2, 2]


def test_an_expand_keeps_dims_that_stay() -> None:
    body = """
        s = Shape(x) p = Constant<value_ints = [3]>() t = Concat<axis = 0>(p, s) a = Expand(x, t) y = Relu(a)
    """
    model = simplified(parsed(body))
    assert operators(model) == ["Expand", "Relu"]


def test_constants_are_computed_within_a_budget() -> None:
    small = "a = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() b = Exp(a) y = Mul(x, b)"
    assert operators(simplified(parsed(small))) == ["Mul"]
    large = """
        n = Constant<value_ints = [9000, 4]>() a = ConstantOfShape(n) e = Exp(a) r = ReduceSum<keepdims = 0>(e)
        m = Mul(x, r) k = ReduceMax<keepdims = 0>(e) z = Add(m, k) q = MatMul(z, t) y = Add(q, e)
    """
    proto = parsed(large.replace("q = MatMul(z, t) y = Add(q, e)", "w = ReduceMax<keepdims = 0>(z) y = Add(e, w)"))
    model = onnxlab.load(proto)
    size = len(model.to_bytes())
    model.simplify(budget=0)
    assert len(model.to_bytes()) < size + (1 << 14)
    assert "Exp" in operators(model)
    model.undo()
    model.simplify(budget=1 << 20)
    assert "Exp" not in operators(model)


def weights(*shape: int, seed: int = 0) -> str:
    numbers = np.random.default_rng(seed).uniform(0.5, 1.5, int(np.prod(shape)))
    return f"float[{','.join(map(str, shape))}] {{{', '.join(f'{number:.6f}' for number in numbers)}}}"


CONV = f"w = Constant<value = {weights(2, 3, 3, 3)}>() b = Constant<value = {weights(2, seed=1)}>() c = Conv(x, w, b)"
CHANNELS = f"s = Constant<value = {weights(2, 1, 1, seed=2)}>()"
NORM = "".join(f"n{place} = Constant<value = {weights(2, seed=3 + place)}>() " for place in range(4))


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (f"{CONV} {NORM} y = BatchNormalization(c, n0, n1, n2, n3)", ["Conv"]),
        (f"{CONV} {CHANNELS} y = Mul(s, c)", ["Conv"]),
        (f"{CONV} {CHANNELS} y = Add(c, s)", ["Conv"]),
        (f"{CONV} {CHANNELS} {NORM} a = Mul(c, s) d = Add(a, s) y = BatchNormalization(d, n0, n1, n2, n3)", ["Conv"]),
        (f"{CONV.replace(', b)', ')')} {CHANNELS} y = Add(c, s)", ["Conv"]),
        (f"{CONV} {CHANNELS} a = Mul(c, s) y = Add(a, c)", ["Conv", "Mul", "Add"]),
    ],
)
def test_linear_layers_go_into_a_convolution(body: str, left: list[str]) -> None:
    model = simplified(parsed(body, "float[b,3,8,8] x"), (2, 3, 8, 8))
    assert [name for name in operators(model) if name != "Constant"] == left
    assert model.outputs[0].name == "y"


def test_a_product_with_a_bias_is_a_gemm_for_matrices_alone() -> None:
    body = (
        f"w = Constant<value = {weights(4, 5)}>() b = Constant<value = {weights(5)}>() m = MatMul(x, w) y = Add(b, m)"
    )
    assert [name for name in operators(simplified(parsed(body))) if name != "Constant"] == ["Gemm"]
    model = simplified(parsed(body, "float[b,2,4] x"), (2, 2, 4))
    assert [name for name in operators(model) if name != "Constant"] == ["MatMul", "Add"]


def test_slices_of_different_axes_are_one() -> None:
    body = """
        z = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() t = Constant<value_ints = [3]>()
        a = Slice(x, z, t, o) c = Slice(a, z, o, z) y = Relu(c)
    """
    model = simplified(parsed(body))
    assert [name for name in operators(model) if name != "Constant"] == ["Slice", "Relu"]


def test_equal_initializers_are_one() -> None:
    proto = parsed("a = Mul(x, v) y = Mul(a, w)")
    for name in "vw":
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.full(4, 2, np.float32), name))
    assert len(simplified(proto).proto.graph.initializer) == 1


def test_it_is_one_step_and_can_be_looked_at_first() -> None:
    model = onnxlab.load(parsed("a = Identity(x) b = Identity(a) y = Relu(b)"))
    before = model.to_bytes()
    receipt = model.simplify(dry_run=True)
    assert receipt.counts == {"identity": 2}
    assert receipt.nodes == (3, 1)
    assert model.to_bytes() == before
    assert model.version == 0
    assert model.simplify().nodes == (3, 1)
    assert len(model.files.unsaved) == 1
    model.undo()
    assert model.to_bytes() == before
    model.redo()
    assert operators(model) == ["Relu"]


def test_protected_names_stay() -> None:
    model = onnxlab.load(parsed("a = Identity(x) b = Identity(a) y = Relu(b)"))
    model.simplify(protect=["b"])
    assert operators(model) == ["Identity", "Relu"]


def wrong(monkeypatch: pytest.MonkeyPatch, op_type: str, slot: int) -> None:
    """Let `simplify` take nodes of an operator out, which is wrong."""
    rule = no_ops.removal("wrong", lambda rewriting, node: rewriting.input(node, slot), (op_type,))
    standard = built_in_rules.up_to("basic")
    monkeypatch.setattr(built_in_rules, "up_to", lambda level: (*standard, rule))


def test_an_application_that_changes_an_output_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, "Clip", 0)
    body = "h = Constant<value = float {100}>() c = Clip(x, , h) a = Relu(c) b = Relu(c) y = Add(a, b)"
    model = onnxlab.load(parsed(body))
    receipt = model.simplify()
    assert [refusal.rule for refusal in receipt.refused] == ["wrong"]
    assert "differs on large inputs" in receipt.refused[0].why
    assert operators(model) == ["Constant", "Clip", "Relu", "Add"]
    assert receipt.verdict == "bit equal"
    assert "taken back: wrong at " in str(receipt)
    assert model.history.redo_labels == []


def test_what_differs_for_nan_alone_needs_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, "Where", 2)
    body = "z = Constant<value = float {0}>() n = IsNaN(x) c = Where(n, z, x) y = Relu(c)"
    model = onnxlab.load(parsed(body))
    assert [refusal.rule for refusal in model.simplify().refused] == ["wrong"]
    assert model.simplify(finite_only=True).verdict == "finite inputs only"


def test_documentation_of_removed_nodes_is_counted() -> None:
    proto = parsed("a = Identity(x) y = Relu(a)")
    proto.graph.node[0].doc_string = "said"
    proto.graph.node[0].name = "first"
    receipt = onnxlab.load(proto).simplify()
    assert receipt.lost == (MetadataLoss("first", "", "said"),)
    assert "lost: first: documentation 'said'" in str(receipt)


def test_samples_take_the_place_of_made_up_inputs() -> None:
    model = onnxlab.load(parsed("a = Identity(x) y = Relu(a)"))
    assert model.simplify(samples=[{"x": np.ones((7, 4), np.float32)}]).verdict == "bit equal"


def test_a_dump_that_must_not_be_edited_is_refused() -> None:
    model = onnxlab.load(parsed("a = Identity(x) y = Relu(a)"))
    model.graph.read_only = "it is only shown"
    with pytest.raises(EditError, match="only shown"):
        model.simplify()


STEPS = st.sampled_from([
    "Identity({})", "Transpose<perm = [1, 0]>({})", "Relu({})", "Neg({})", "Add({}, zero)", "Mul({}, one)",
    "Cast<to = 1>({})", "Cast<to = 11>({})|Cast<to = 1>({})", "Unsqueeze({}, p)|Squeeze({}, p)", "Reshape({}, s)",
    "Exp({})", "Mul({}, k)",
])  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 9)), min_size=1, max_size=9), st.integers(0, 2**30))
def test_random_graphs_compute_the_same(steps: list[tuple[str, int]], seed: int) -> None:
    names, lines = ["x"], []
    for text, source in steps:
        value = names[source % len(names)]
        for part in text.split("|"):
            name = f"v{len(lines)}"
            lines.append(f"{name} = {part.format(value)}")
            value = name
        names.append(value)
    body = " ".join(
        [
            "zero = Constant<value = float {0}>() one = Constant<value = float {1}>() p = Constant<value_ints = [0]>()",
            "k = Constant<value = float {0.5}>() s = Shape(x)",
            *lines,
            f"y = Neg({names[-1]})",
        ]
    )
    proto = parsed(body, "float[4,4] x")
    before = onnx.ModelProto.FromString(proto.SerializeToString())
    model = onnxlab.load(proto)
    assert model.simplify().verdict in ("bit equal", "equal within noise")
    feeds = {"x": np.random.default_rng(seed).normal(size=(4, 4)).astype(np.float32)}
    for old, new in zip(by_onnxruntime(before, feeds), by_onnxruntime(model.proto, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "m.onnx", tmp_path / "small.onnx"
    onnx.save(parsed("a = Identity(x) y = Relu(a)"), path)
    before = path.read_bytes()
    assert main(["simplify", str(path)]) == 0
    assert "2 nodes before, 1 now; outputs: not run" in capsys.readouterr().out
    assert main(["simplify", str(path), "-o", str(target), "--json"]) == 0
    assert '"verdict": "bit equal"' in capsys.readouterr().out
    assert len(onnx.load(target).graph.node) == 1
    assert main(["simplify", str(path), "-o", str(path)]) == 5
    assert path.read_bytes() == before


def test_a_node_without_outputs_is_no_reason_to_fail() -> None:
    nodes = [onnx.helper.make_node(op_type, ["x"], []) for op_type in ("Cast", "Reshape", "Transpose", "Dropout")]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    graph = onnx.helper.make_graph([*nodes, onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = onnxlab.load(onnx.helper.make_model(graph))
    model.simplify(verify=False)
    assert [node.op_type for node in model.nodes][-1] == "Relu"


@pytest.mark.parametrize("text", ["Reshape (x, k)", "Expand (x, k)"])
def test_nodes_without_outputs_are_passed_by(text: str) -> None:
    """Found by damaged nodes: folding of shapes asked for the first output."""
    model = parsed(f"k = Shape (x) z = {text} y = Neg (x)")
    del model.graph.node[1].output[:]
    edited = onnxlab.load(model)
    edited.simplify()
    assert "Neg" in [node.op_type for node in edited.nodes]
