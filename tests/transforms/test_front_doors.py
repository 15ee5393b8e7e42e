"""The command line of rewrites, other engines, proofs of edits, and suggestions."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.cli import main
from onnxlab.errors import EditError, TransformError
from onnxlab.transforms import foreign, suggestions
from tests.support import corpus
from tests.transforms.test_simplify import operators, parsed
from tests.transforms.test_standard_rules import EXAMPLES, proto_of

BODY = "a = Relu(x) b = Relu(a) y = Neg(b)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(parsed(BODY), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_rewrite_on_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, receipt = path.with_name("small.onnx"), path.with_name("receipt.json")
    assert main(["rewrite", str(path), "Relu(Relu(x)) => Relu(x)"]) == 0
    assert "3 nodes before, 2 now; outputs: not run" in capsys.readouterr().out
    assert not target.exists()
    words = ["rewrite", str(path), "relu_again", "-o", str(target), "--receipt", str(receipt), "--strict"]
    assert main(words) == 0
    assert len(onnx.load(target).graph.node) == 2
    document = json.loads(receipt.read_text())
    assert document["schema"] == "onnxlab/receipt/3"
    assert [application["rule"] for application in document["applied"]] == ["relu_again"]
    assert main([*words, "--dry-run"]) == 0
    path.with_name("other.json").write_text("{}")
    assert main(["simplify", str(path), "--receipt", str(path.with_name("other.json"))]) == 5


def test_what_is_wrong_is_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = path.with_name("small.onnx")
    assert main(["rewrite", str(path), "Relu(x => x"]) == 3
    assert "a comma or a closing parenthesis was expected" in capsys.readouterr().err
    assert main(["rewrite", str(path), "Relu(x) => Abs(x)", "-o", str(target), "--strict"]) == 1
    assert "taken back: Relu(x) => Abs(x) at" in capsys.readouterr().out
    np.save(path.with_name("x.npy"), np.ones((2, 4), np.float32))
    sample = ["--sample", f"x={path.with_name('x.npy')}"]
    assert main(["rewrite", str(path), "Neg(x) => Mul(x, -1.0)", "-o", str(target), "--strict", *sample]) == 0


def test_optimize_on_the_command_line(path: Path) -> None:
    target = path.with_name("small.onnx")
    onnx.save(proto_of(EXAMPLES["gelu_microsoft"]), path)
    assert main(["optimize", str(path), "-o", str(target), "--microsoft"]) == 0
    assert [node.op_type for node in onnx.load(target).graph.node] == ["Gelu"]
    assert main(["optimize", str(path), "-o", str(target)]) == 0
    assert "Erf" in [node.op_type for node in onnx.load(target).graph.node]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnxruntime", "onnxsim"])
def test_an_engine_is_one_application_that_is_verified(engine: str) -> None:
    if engine == "onnxsim":
        pytest.importorskip("onnxsim")
    proto = parsed(BODY.replace("b = Relu(a)", "b = Identity(a)"))
    proto.graph.node[0].doc_string = "kept"
    for dim in ("b", 4):  # onnxsim wants outputs with shapes
        proto.graph.output[0].type.tensor_type.shape.dim.add(**{"dim_param" if dim == "b" else "dim_value": dim})
    model = onnxlab.load(proto)
    before = model.to_bytes()
    receipt = model.simplify(engine=engine)  # type: ignore[arg-type]
    assert receipt.counts == {engine: 1}
    assert receipt.verdict == "bit equal"
    assert operators(model) == ["Relu", "Neg"]
    assert model.nodes[0].doc_string == "kept"
    assert model.history.labels == [f"simplify by {engine}"]
    model.undo()
    assert model.to_bytes() == before


def test_an_engine_that_makes_something_else_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "optimized", lambda engine, proto, level: parsed("a = Abs(x) y = Neg(a)"))
    model = onnxlab.load(parsed(BODY))
    before = model.to_bytes()
    receipt = model.simplify(engine="onnxsim")
    assert [refusal.rule for refusal in receipt.refused] == ["onnxsim"]
    assert model.to_bytes() == before
    renamed = parsed("a = Abs(x) z = Neg(a)", outputs="float z")
    monkeypatch.setattr(foreign, "optimized", lambda engine, proto, level: renamed)
    assert "other outputs" in model.simplify(engine="onnxsim").refused[0].why
    assert model.to_bytes() == before


def test_engines_that_fail_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(parsed(BODY))
    with pytest.raises(TransformError, match="no engine; use one of"):
        model.simplify(engine="other")  # type: ignore[arg-type]
    monkeypatch.setitem(foreign.SCRIPTS, "onnxscript", "import nowhere_to_be_found")
    with pytest.raises(TransformError, match="onnxscript is not installed: pip install onnxscript"):
        model.simplify(engine="onnxscript")
    monkeypatch.setitem(foreign.SCRIPTS, "onnxscript", "raise ValueError('no')")
    with pytest.raises(TransformError, match="onnxscript fails: ValueError: no"):
        model.simplify(engine="onnxscript")


def test_an_edit_is_proved_or_undone() -> None:
    model = onnxlab.load(parsed(BODY))
    model.nodes[1].op_type = "Abs"
    assert model.prove().verdict == "bit equal"
    model.nodes[0].op_type = "Abs"
    judged = model.prove()
    assert judged.verdict == "different"
    assert "x" in judged.feeds
    assert model.history.position == 2
    assert model.prove(0, undo=True).verdict == "different"
    assert model.history.position == 0
    assert model.prove(onnxlab.load(parsed(BODY))).verdict == "bit equal"
    with pytest.raises(EditError, match="end the open edit first"), model.edit("open"):
        model.prove(0)


def test_suggestions_are_measured_and_change_nothing() -> None:
    model = onnxlab.load(parsed(BODY))
    before = model.to_bytes()
    suggestions = model.suggest()
    assert [suggestion.rule for suggestion in suggestions] == ["relu_again"]
    assert (suggestions[0].nodes, suggestions[0].verdict) == (1, "bit equal")
    assert set(suggestions[0].seconds) == {"numpy", "onnxruntime"}
    assert "relu_again at 1 places: 1 nodes" in str(suggestions[0])
    assert model.to_bytes() == before
    assert model.history.labels == []


@pytest.mark.slow
def test_an_engine_gets_external_data_in_the_model() -> None:
    pytest.importorskip("onnxsim")
    model = onnxlab.load(corpus.path("llama12_dyn_ext"))
    receipt = model.simplify(engine="onnxsim")
    assert receipt.refused == ()
    assert receipt.verdict in ("bit equal", "equal within noise")


def test_a_name_with_a_comma_is_protected(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = f"relu, {node.output[0]}"
    onnx.save(model, path)
    names = [node.name.replace(",", "\\,") for node in model.graph.node]
    assert main(["rewrite", str(path), "relu_again", "--protect", names[2]]) == 0
    assert "3 nodes before, 2 now" in capsys.readouterr().out
    assert main(["rewrite", str(path), "relu_again", "--protect", ",".join(names)]) == 0
    assert "3 nodes before, 3 now" in capsys.readouterr().out
    assert main(["rewrite", str(path), "relu_again", "--protect", "relu, a"]) == 2


@pytest.mark.parametrize("name", ["silero_vad_if", "functions_ts", "lac_bigru", "script_control"])
def test_a_dry_run_accounts_for_every_node(name: str) -> None:
    """The nodes that go and come explain the numbers before and after, in bodies and functions too."""
    model = onnxlab.load(corpus.path(name))
    receipt = model.optimize("layout", microsoft=True, dry_run=True)
    removed = [node for application in receipt.applied for node in application.taken]
    assert len({node.id for node in removed}) == len(removed)
    gone = sum(node.op_type != "Constant" for node in removed)
    came = sum(op_type != "Constant" for application in receipt.applied for op_type in application.given)
    assert receipt.nodes[0] - gone + came == receipt.nodes[1]
    constants = sum(node.op_type == "Constant" for node in model.graph.nodes.values())
    assert receipt.constants[0] == constants
    assert f", besides {constants} Constants, now {receipt.constants[1]};" in str(receipt) or not constants
    assert model.version == 0


def test_no_times_are_told_where_memory_is_short(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(path)
    assert all(suggestion.seconds for suggestion in model.suggest(level="basic"))
    monkeypatch.setattr(suggestions, "available_memory", lambda: 8)
    advice = model.suggest(level="basic")
    assert [(suggestion.rule, suggestion.seconds) for suggestion in advice] == [("relu_again", {})]
    assert advice[0].verdict == "bit equal"


def test_a_replacement_that_cannot_stand_says_why(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnxlab.load()
    receipt = model.rewrite("Conv(x, w) => Relu(x)")
    assert len(receipt.unfit) == 3
    why = "not applied: Conv(x, w) => Relu(x) at /stem/conv/Conv: it would have the shape [batch, 1, 8, 8], not"
    assert why in str(receipt)
    assert receipt.as_dict()["unfit"]
    assert len(model.rewrite("Conv(x, w) => Relu(x)", dry_run=True).unfit) == 3
    assert not onnxlab.load().optimize().unfit
    assert main(["rewrite", str(path), "Neg(x) => Shape(x)"]) == 0
    assert "not applied: Neg(x) => Shape(x) at Neg#2: it would make int64, not float32" in capsys.readouterr().out


def test_suggestions_write_nothing_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    text = '<ir_version: 3, opset_import: ["" : 6]> g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) y = Relu(a) }'
    proto = onnx.parser.parse_model(text)  # onnxruntime warns of so old an opset
    assert onnxlab.load(proto).suggest()
    assert capfd.readouterr().err == ""
