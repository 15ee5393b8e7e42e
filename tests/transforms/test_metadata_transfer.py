"""Notes of nodes go to their replacements; lost ones are listed, word for word."""

import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.transforms.metadata_transfer import MetadataLoss, statements
from tests.support import corpus

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'


def speaking(body: str, outputs: str = "float y") -> onnx.ModelProto:
    """A model each of whose nodes says who it is, in metadata and documentation."""
    proto = onnx.parser.parse_model(f"{HEAD} g (float[3,4] x) => ({outputs}) {{ {body} }}")
    for node in proto.graph.node:
        node.name = node.output[0]
        node.doc_string = f"doc of {node.name}"
        node.metadata_props.add(key=f"from {node.name}", value="1")
        node.metadata_props.add(key="shared", value=node.name)
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto


def metadata(message: onnx.NodeProto | onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in message.metadata_props}


def test_a_bypassed_node_speaks_through_what_makes_its_input() -> None:
    model = onnxlab.load(speaking("a = Relu(x) b = Identity(a) y = Neg(b)"))
    receipt = model.simplify()
    heir = model.proto.graph.node[0]
    assert metadata(heir) == {"from a": "1", "shared": "a", "from b": "1"}
    assert heir.doc_string == "doc of a\ndoc of b"
    assert receipt.lost == (MetadataLoss("b", "shared", "b"),)


def test_a_folded_node_speaks_through_the_tensor() -> None:
    body = "c = Constant<value = float[2] {1, 2}>() d = Exp(c) e = Neg(d) s = ReduceSum<keepdims = 0>(e) y = Mul(x, s)"
    model = onnxlab.load(speaking(body))
    receipt = model.simplify()
    (tensor,) = model.proto.graph.initializer
    assert metadata(tensor) == {"from s": "1", "shared": "s"}
    assert tensor.doc_string == "doc of s"
    assert {(loss.of, loss.key) for loss in receipt.lost} == {
        (name, key) for name in "cde" for key in ("", f"from {name}", "shared")
    }


def test_equal_nodes_speak_through_the_first() -> None:
    model = onnxlab.load(speaking("a = Exp(x) b = Exp(x) y = Add(a, b)"))
    model.simplify()
    assert metadata(model.proto.graph.node[0])["from b"] == "1"


def test_all_nodes_of_a_pattern_speak_through_what_replaces_them() -> None:
    model = onnxlab.load(speaking("a = Exp(x) b = Neg(a) y = Relu(b)"))
    model.rewrite("Neg(Exp(x)) => Sub(0.0, Exp(x))")
    replacement = next(node for node in model.proto.graph.node if node.op_type == "Sub")
    assert metadata(replacement) == {"from a": "1", "from b": "1", "shared": "b"}
    assert replacement.doc_string == "doc of b\ndoc of a"


def test_what_stays_keeps_its_words_for_itself() -> None:
    model = onnxlab.load(speaking("a = Exp(x) b = Relu(a) c = Neg(a) y = Add(b, c)"))
    model.rewrite("Relu(e := ~Exp(x)) => Max(e, 0.0)")
    replacement = next(node for node in model.proto.graph.node if node.op_type == "Max")
    assert metadata(replacement) == {"from b": "1", "shared": "b"}


def test_a_decided_branch_speaks_through_what_makes_its_result() -> None:
    body = """t = Constant<value = bool {1}>() y = If (t) <then_branch = a () => (float p) { p = Neg(x) },
              else_branch = b () => (float q) { q = Abs(x) }>"""
    model = onnxlab.load(speaking(body))
    model.simplify()
    maker = next(node for node in model.proto.graph.node if node.op_type == "Neg")
    assert metadata(maker)["from y"] == "1"


def test_undo_takes_the_words_back() -> None:
    model = onnxlab.load(speaking("a = Relu(x) b = Identity(a) y = Neg(b)"))
    before = model.to_bytes()
    model.simplify()
    model.undo()
    assert model.to_bytes() == before


@pytest.mark.parametrize("name", ["llama12_dyn_ext", "bert_base", "whisper_encoder", "functions_ts"])
def test_no_loss_is_unreported(name: str) -> None:
    model = onnxlab.load(corpus.path(name))
    before = statements(model.graph)
    receipt = model.simplify(verify=False)
    now = statements(model.graph)
    assert {(loss.key, loss.text) for loss in receipt.lost} == before.keys() - now.keys()
