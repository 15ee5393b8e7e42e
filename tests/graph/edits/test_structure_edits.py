"""Extract, insert, inline, make functions, find copies: onnxruntime computes the same of the results."""

import warnings

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.handles.handles import Node
from onnxlab.model import Model
from tests.graph.edits.test_edits import check_undo
from tests.graph.support.models import branches, chain, nameless, state, tensor
from tests.support.corpus import Corpus
from tests.support.oracle import oracle

FEEDS = {"x": np.array([0.5, -2.0], np.float32), "flag": np.array(True)}


def same(left: Model | bytes, right: bytes, feeds: dict[str, np.ndarray]) -> None:
    """Two models give the same outputs for the inputs that they take."""
    run = oracle()
    first = run(left.to_bytes() if isinstance(left, Model) else left, feeds)
    second = run(right, feeds)
    for name in second:
        np.testing.assert_array_equal(first[name], second[name])


# -- extract ---------------------------------------------------------------------------------------------------------


def test_extract_takes_what_only_a_branch_captures() -> None:
    model = Model(branches())
    part = model.extract(["chosen"])
    assert [node.name for node in part.nodes] == ["t1", "if"], "t1 makes h, which only the branches read"
    assert [function.name for function in part.proto.functions] == ["Twice"]
    onnx.checker.check_model(part.proto, full_check=True)
    whole = Model(branches())
    whole.add_output("chosen")
    chosen = oracle()(part.to_bytes(), FEEDS)["chosen"]
    np.testing.assert_array_equal(chosen, oracle()(whole.to_bytes(), FEEDS, ["chosen"])["chosen"])


def test_one_node_or_value_needs_no_list() -> None:
    model = Model(branches())
    assert [node.name for node in model.extract("chosen").nodes] == ["t1", "if"]
    assert [value.name for value in model.extract(model.value("y"), "chosen").inputs] == ["chosen"]
    assert [node.name for node in model.duplicate("if")] == ["if_copy"]
    assert model.structure.copies("t1") == [[model.nodes["t2"]]]
    model.remove(model.nodes["if_copy"])
    assert [call.op_type for call in model.make_function("if", "Chosen")] == ["Chosen"]


def test_extract_stops_where_values_are_given() -> None:
    part = Model(branches()).extract(["y"], ["h"])
    assert {value.name for value in part.inputs} == {"h", "flag"}
    assert [node.name for node in part.nodes] == ["if", "t2"]
    part = Model(chain()).extract(["y"], ["c_out"])
    assert [value.name for value in part.inputs] == ["c_out"]
    assert str(part.fact("c_out")) == "float32[N,4,4,4]", "declared by inference"
    assert [info.name for info in part.proto.graph.value_info] == ["r_out"]
    assert not part.proto.graph.initializer


def test_extract_from_a_body_and_a_function() -> None:
    model = Model(branches())
    part = model.extract(["if/else/exp_out"])
    assert [value.name for value in part.inputs] == ["h"]
    assert [node.name for node in part.nodes] == ["exp"]
    assert [node.name for node in model.extract(["local::Twice/out"]).nodes] == ["add"]
    with pytest.raises(EditError, match="'y' and 'exp_out' are in different graphs"):
        model.extract(["y", "if/else/exp_out"])


def test_a_producer_of_a_given_value_is_not_its_producer_any_more() -> None:
    nodes = [helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2), helper.make_node("Add", ["a", "b"], ["y"])]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", [tensor("x", [4])], [tensor("y", [2])]),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=9,
    )
    part = Model(proto).extract(["y"], ["a"])
    onnx.checker.check_model(part.proto, full_check=True)
    feeds = {"a": np.ones(2, np.float32), "x": np.arange(4, dtype=np.float32)}
    np.testing.assert_array_equal(oracle()(part.to_bytes(), feeds)["y"], [3, 4])


def test_extract_keeps_annotations_with_their_scales() -> None:
    proto = chain()
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "scale"))
    annotation = proto.graph.quantization_annotation.add(tensor_name="c_out")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    proto.metadata_props.add(key="k", value="v")
    part = Model(proto).extract(["r_out"])
    assert {tensor.name for tensor in part.proto.graph.initializer} == {"w", "scale"}
    assert part.proto.graph.quantization_annotation[0] == annotation
    assert part.proto.metadata_props[0].value == "v"


@pytest.mark.parametrize("name", ["mobilenet_fp16", "script_control", "functions_ts"])
def test_halves_of_real_models_are_models(corpus: Corpus, name: str) -> None:
    model = onnxlab.load(corpus[name])
    middle = model.nodes[len(model.nodes) // 2]
    cut_names = [value.name for value in middle.outputs if value]
    upper = model.extract(cut_names)
    lower = model.extract([value.name for value in model.outputs], cut_names)
    for part in (upper, lower):
        onnx.checker.check_model(part.proto)
        assert not part.graph.index.undefined
    assert len(upper.nodes) + len(lower.nodes) >= len(model.nodes) - len(model.find("Constant"))


# -- insert ----------------------------------------------------------------------------------------------------------


def test_insert_a_model_behind_a_value() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    names = model.insert(branches(), {"x": "y", "flag": "flag"}, prefix="again_")
    assert names["y"] == "again_y"
    assert len(model.proto.functions) == 1, "equal functions are shared"
    assert model.nodes["again_if/else/exp"].inputs[0].name == "again_h"
    onnx.checker.check_model(model.proto, full_check=True)
    once = oracle()(before, FEEDS)["y"]
    twice = oracle()(before, {**FEEDS, "x": once})["y"]
    np.testing.assert_array_equal(oracle()(model.to_bytes(), FEEDS)["again_y"], twice)
    check_undo(model.graph, before, index)


def test_insert_renames_a_function_that_differs() -> None:
    other = branches()
    other.functions[0].node[0].op_type = "Mul"
    model = Model(branches())
    names = model.insert(other)
    assert [function.name for function in model.proto.functions] == ["Twice", "Twice_1"]
    assert names["x"] == "x_1"
    assert [value.name for value in model.inputs] == ["x", "flag", "x_1", "flag_1"]
    arrays = oracle()(model.to_bytes(), {**FEEDS, "x_1": FEEDS["x"], "flag_1": FEEDS["flag"]})
    np.testing.assert_array_equal(arrays["y_1"], oracle()(other.SerializeToString(), FEEDS)["y"])


def test_insert_reconciles_opsets_or_says_what_differs() -> None:
    other = chain()
    other.opset_import[0].version = 19
    other.opset_import.add(domain="ai.onnx.ml", version=3)
    Model(chain()).insert(other)  # Conv, Relu and Add are the same in 19 and 20
    softmax = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["y"])], "s", [tensor("x", [2])], [tensor("y", [2])]
    )
    old = helper.make_model(softmax, opset_imports=[helper.make_opsetid("", 12)])
    model = Model(chain())
    before = model.to_bytes()
    with pytest.raises(EditError, match=r"uses ai.onnx 12, the model 20, and Softmax differ"):
        model.insert(old)
    with pytest.raises(EditError, match="has no input 'z'"):
        model.insert(chain(), {"z": "x"})
    assert model.to_bytes() == before


# -- functions -------------------------------------------------------------------------------------------------------


def nested() -> onnx.ModelProto:
    """Outer(x; alpha) calls Leaky(v; slope=0.25) twice, once with a slope from its own attribute, in a branch too."""
    leak = helper.make_node("LeakyRelu", ["v"], ["o"], name="leak")
    leak.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    leaky = helper.make_function("f", "Leaky", ["v", "unused"], ["o", "v"], [leak], [helper.make_opsetid("", 20)])
    leaky.attribute_proto.append(helper.make_attribute("slope", 0.25))
    call = helper.make_node("Leaky", ["p"], ["q"], name="inner", domain="f")
    call.attribute.add(name="slope", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    then = helper.make_graph(
        [helper.make_node("Leaky", ["q"], ["b"], domain="f", name="in_then")], "t", [], [tensor("b")]
    )
    other = helper.make_graph([helper.make_node("Neg", ["q"], ["b"])], "e", [], [tensor("b")])
    choose = helper.make_node("If", ["flag"], ["out"], name="choose", then_branch=then, else_branch=other)
    outer = helper.make_function(
        "f", "Outer", ["p", "flag"], ["out"], [call, choose],
        [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)], attributes=["alpha"],
    )  # fmt: skip
    nodes = [
        helper.make_node("Outer", ["x", "flag"], ["o1"], name="o", domain="f", alpha=0.5),
        helper.make_node("Outer", ["o1", "flag"], ["y"], domain="f", alpha=0.125),
        helper.make_node("Leaky", ["x"], ["z", "same"], name="both", domain="f"),
    ]
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    outputs = [tensor(name, [2]) for name in ("y", "z", "same")]
    graph = helper.make_graph(nodes, "g", [tensor("x", [2]), flag], outputs)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, functions=[leaky, outer], opset_imports=opsets, ir_version=10)


@pytest.mark.slow
def test_inline_one_call_nested_all_of_one_and_all() -> None:
    for edit, left in (
        (lambda model: model.inline("o"), 2),
        (lambda model: model.inline("o", nested=True), 2),
        (lambda model: model.inline(function="f::Leaky"), 1),
        (lambda model: model.inline(function="f::Outer"), 1),
        (lambda model: model.inline(), 0),
    ):
        model = Model(nested())
        before, index = model.to_bytes(), state(model.graph)
        assert edit(model) >= 1
        assert len(model.proto.functions) == left
        onnx.checker.check_model(model.proto)
        for flag in (True, False):
            feeds = {"x": FEEDS["x"], "flag": np.array(flag)}
            expected = Model(nested()).run(feeds)  # onnxruntime refuses functions that return an input as it is
            arrays = model.run(feeds) if left else oracle()(model.to_bytes(), feeds)
            for name in expected:
                np.testing.assert_array_equal(arrays[name], expected[name])
        check_undo(model.graph, before, index)


def test_inlined_names_are_unique_and_lead_back() -> None:
    model = Model(nested())
    model.inline()
    names = [(node.scope, node.name) for node in model.graph.nodes.values() if node.name]
    assert len(names) == len(set(names))
    assert (model.graph.main.id, "o/inner/leak") in names
    assert model.find("LeakyRelu", alpha=0.5)[0].name == "o/inner/leak", "what the call gave"
    assert model.find("LeakyRelu", name="both*")[0].attributes["alpha"] == 0.25, "the default"


def test_inlining_agrees_with_onnx_on_a_real_model(corpus: Corpus) -> None:
    model = onnxlab.load(corpus["functions_ts"])
    before = model.to_bytes()
    model.inline()
    assert not model.proto.functions
    assert not model.graph.index.undefined
    inlined = onnx.inliner.inline_local_functions(onnx.ModelProto.FromString(before))
    ours = sorted(node.op_type for node in model.graph.nodes.values())
    theirs = sorted(node.op_type for node in Model(inlined).graph.nodes.values())
    assert [op for op in ours if op != "Identity"] == [op for op in theirs if op != "Identity"]
    model.undo()
    assert model.to_bytes() == before


def test_what_cannot_be_inlined_says_why() -> None:
    model = Model(branches())
    with pytest.raises(EditError, match=r"if \(If\) calls no function of this model"):
        model.inline("if")
    proto = branches()
    proto.functions[0].opset_import[0].version = 12
    proto.functions[0].node[0].op_type = "Neg"
    proto.functions[0].node[0].input.pop()
    with pytest.raises(EditError, match=r"the function Twice uses ai.onnx 12, the model 20, and Neg differ"):
        Model(proto).inline("t1")


def blocks(count: int = 4) -> onnx.ModelProto:
    """x -> [MatMul w_i -> Add b_i -> Relu, plus a skip] × count -> y."""
    nodes, stored = [], []
    for number in range(count):
        source = f"s{number - 1}" if number else "x"
        nodes += [
            helper.make_node("MatMul", [source, f"w{number}"], [f"m{number}"], name=f"mm{number}"),
            helper.make_node("Add", [f"m{number}", f"b{number}"], [f"a{number}"], name=f"add{number}"),
            helper.make_node("Relu", [f"a{number}"], [f"r{number}"], name=f"relu{number}"),
            helper.make_node("Add", [f"r{number}", source], [f"s{number}"], name=f"skip{number}"),
        ]
        rng = np.random.default_rng(number)
        stored.append(numpy_helper.from_array(rng.standard_normal((3, 3)).astype(np.float32), f"w{number}"))
        stored.append(numpy_helper.from_array(rng.standard_normal(3).astype(np.float32), f"b{number}"))
    last = tensor(f"s{count - 1}", [2, 3])
    return helper.make_model(
        helper.make_graph(nodes, "blocks", [tensor("x", [2, 3])], [last], stored),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=7,
    )  # fmt: skip


BLOCK = ["mm1", "add1", "relu1", "skip1"]
INPUT = {"x": np.random.default_rng(9).standard_normal((2, 3)).astype(np.float32)}


def test_a_selection_becomes_a_function_and_comes_back() -> None:
    expected = blocks().SerializeToString()
    for copies, calls in ((False, 1), (True, 4)):
        model = Model(blocks())
        before, index = model.to_bytes(), state(model.graph)
        calls_made = model.make_function(BLOCK, "Block", copies=copies)
        assert [call.op_type for call in calls_made] == ["Block"] * calls
        assert model.proto.ir_version == 8, "functions came with IR 8"
        assert len(model.nodes) == 16 - 3 * calls
        onnx.checker.check_model(model.proto, full_check=True)
        same(model, expected, INPUT)
        model.inline()
        same(model, expected, INPUT)
        check_undo(model.graph, before, index)


def test_a_function_holds_sparse_initializers_of_bodies_with_their_zeros() -> None:
    """ONNX Runtime refused what came: in functions it knows no sparse initializers."""
    proto = branches()
    branch = next(node for node in proto.graph.node if node.op_type == "If").attribute[0].g
    values = numpy_helper.from_array(np.array([3], np.float32), "sparse")
    indices = numpy_helper.from_array(np.array([1], np.int64))
    branch.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    branch.node.append(helper.make_node("Add", [branch.output[0].name, "sparse"], ["shifted"]))
    branch.output[0].name = "shifted"
    model, expected = Model(proto), proto.SerializeToString()
    model.make_function("if", "Choice")
    for flag in (True, False):
        same(model, expected, {"x": FEEDS["x"], "flag": np.array(flag)})
    model.undo()
    assert model.to_bytes() == expected


def test_a_function_of_nodes_with_bodies() -> None:
    model = Model(branches())
    model.make_function(["t1", "if"], "Choice")
    onnx.checker.check_model(model.proto, full_check=True)
    same(model, branches().SerializeToString(), FEEDS)


def test_a_selection_with_a_hole_is_refused_by_its_path() -> None:
    model = Model(blocks())
    with pytest.raises(EditError, match="mm1 → add1 → relu1 → skip1 leaves it and comes back"):
        model.make_function(["mm1", "skip1"], "F")
    with pytest.raises(EditError, match="a domain of its own"):
        model.make_function(BLOCK, "F", domain="")
    model.make_function(BLOCK, "F")
    with pytest.raises(EditError, match="there is a function local::F already"):
        model.make_function(["mm2"], "F")


# -- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "domain"), [("Gelu", "com.microsoft"), ("Own", "custom")])
def test_a_function_named_like_an_operator_is_refused(name: str, domain: str) -> None:
    model = Model(chain())
    model.opsets[domain] = 1
    model.add_node(name if domain == "custom" else "FastGelu", ["x"], ["other"], domain=domain)
    with pytest.raises(EditError, match=f"there is an operator {domain}::{name} already; choose another name"):
        model.make_function([0], name, domain)


def test_copies_are_verified() -> None:
    proto = blocks(6)
    proto.graph.node[8].op_type = "MatMul"  # block 2 as it is
    proto.graph.node[14].op_type = "Sigmoid"  # block 3 has another activation
    proto.graph.node[17].input[1] = "x"  # block 4 adds no initializer
    model = Model(proto)
    copies = [[node.name for node in copy] for copy in model.structure.copies(BLOCK)]
    assert copies == [
        ["mm0", "add0", "relu0", "skip0"],
        ["mm2", "add2", "relu2", "skip2"],
        ["mm5", "add5", "relu5", "skip5"],
    ]
    with pytest.raises(EditError, match="is not joined to"):
        model.structure.copies(["mm1", "relu1"])


def test_one_edit_for_all_copies() -> None:
    model = Model(blocks())
    before, index = model.to_bytes(), state(model.graph)

    def edit(matmul: Node, add: Node, relu: Node) -> None:
        relu.replace("LeakyRelu", alpha=0.125)
        add.remove(bypass=True)

    assert model.for_each_copy(["mm1", "add1", "relu1"], edit) == 4
    assert len(model.find("LeakyRelu", alpha=0.125)) == 4
    assert model.history.labels == ["edit 4 copies of mm1"]
    check_undo(model.graph, before, index)
    model.undo()
    with pytest.raises(EditError, match="nothing makes it"):
        model.for_each_copy(["mm1", "add1", "relu1"], lambda *nodes: nodes[0].remove())
    assert model.to_bytes() == before


def test_inserted_training_information_is_left_with_a_warning() -> None:
    other = chain()
    other.training_info.add()
    with pytest.warns(UserWarning, match="training information"):
        Model(chain()).insert(other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model(chain())
        model.insert(chain(), {"x": "x"})
    assert nameless(model.graph) == nameless(Model(onnx.ModelProto.FromString(model.to_bytes())).graph)


def test_inputs_behind_the_outputs_are_refused_by_extract() -> None:
    model = onnxlab.load()
    with pytest.raises(EditError, match="'block1/relu2_out' is not computed from 'logits'; choose inputs that lie"):
        model.extract("block1/relu2_out", "logits")
    assert [value.name for value in model.extract("block1/relu2_out", "block1/relu2_out").inputs] == [
        "block1/relu2_out"
    ]
    assert [value.name for value in model.extract("stem/relu_out", "image").inputs] == ["image"]
