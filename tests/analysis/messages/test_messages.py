"""The commonest messages, as the installed packages say them: explained with cause and fix, found in the model."""

import io
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import checker

import onnxlab
from onnxlab import cli
from onnxlab.analysis.messages.table import TABLE
from tests.analysis.messages import makers
from tests.analysis.messages.makers import MODELS, SAID, TOLD
from tests.support.docs_pages import ROOT

CALLS = [(code, number) for code, calls in SAID.items() for number in range(len(calls))]


def text_of(call: Callable[[], object]) -> str:
    """The message of a call that fails."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011  every package has its own
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


def test_codes_count_on_and_each_has_an_example() -> None:
    assert [message.code for message in TABLE] == [f"E{number:02}" for number in range(1, len(TABLE) + 1)]
    assert set(SAID) | set(TOLD) == {message.code for message in TABLE}


@pytest.mark.parametrize(("code", "number"), CALLS)
def test_what_the_installed_packages_say_is_explained(code: str, number: int) -> None:
    text = text_of(SAID[code][number])
    explanations = onnxlab.explain_error(f"Traceback (most recent call last):\n  File …\n{text}\n")
    assert [explanation.code for explanation in explanations] == [code], text
    explained = str(explanations[0])
    assert "{" not in explained.replace("{4,2}", "").replace("{6}", "")
    assert "cause: " in explained
    assert "fix: " in explained
    assert onnxlab.explain_error(text.replace(" ", "\n  "))[0].code == code  # text as a terminal wraps it


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in TOLD.items() for text in texts])
def test_what_takes_more_is_explained(code: str, text: str) -> None:
    assert [explanation.code for explanation in onnxlab.explain_error(text)] == [code]


@pytest.mark.parametrize("code", MODELS)
def test_the_model_says_where(code: str) -> None:
    proto, node = MODELS[code]
    text = TOLD[code][0] if code in TOLD else text_of(SAID[code][0])
    (explanation,) = onnxlab.explain_error(text, onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString())))
    assert explanation.places, explanation
    codes = next(message.codes for message in TABLE if message.code == code)
    problems = {problem.code for problem in onnxlab.load(proto).check()}
    assert problems & set(codes), problems
    if node is not None:
        assert explanation.about["node"] == node
        assert explanation.places[0].startswith(f"{node} (")


def edited(proto: onnx.ModelProto, statement: str) -> onnx.ModelProto:
    """The model after a statement that a fix names."""
    model = onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString()))
    exec(statement, {"model": model, "onnx": onnx})
    return onnx.load_model_from_string(model.to_bytes())


@pytest.mark.parametrize(
    ("code", "proto", "statement", "call"),
    [
        ("E01", makers.ADD, 'model.value("i").insert_after("Cast", to=onnx.TensorProto.FLOAT)', makers.session),
        ("E02", makers.STALE, 'model.declarations("refresh")', makers.infer),
        ("E06", makers.UNIMPORTED, 'model.opsets["my.ops"] = 1', checker.check_model),
        ("E08", makers.NEW_IR, 'model.set_field("ir_version", 13)', makers.session),
        ("E11", makers.UNSORTED, "model.sort_nodes()", checker.check_model),
        ("E16", makers.INTEGER_RELU, "model.convert_opset(14)", makers.infer),
        ("E18", makers.SHAPELESS, 'model.declarations("refresh")', checker.check_model),
        ("E22", makers.NORMALIZATION, "model.convert_opset(13)", makers.session),
    ],
)
def test_what_the_fix_says_mends_it(
    code: str, proto: onnx.ModelProto, statement: str, call: Callable[[onnx.ModelProto], object]
) -> None:
    fix = onnxlab.explain_error(text_of(SAID[code][0]))[0].fix
    assert statement.partition("(")[0].rpartition(".")[2] in fix or "--opset" in fix or "opsets[" in fix
    call(edited(proto, statement))


def test_near_names_come_from_the_schemas() -> None:
    say = onnxlab.explain_error
    assert "Did you mean 'Relu'" in say("No Op registered for Relo with domain_version of 17")[0].fix
    assert "came in version 17" in say("No Op registered for LayerNormalization with domain_version of 9")[0].fix
    assert "domain ai.onnx.ml" in say("No Op registered for TreeEnsembleRegressor with domain_version of 9")[0].fix
    assert "Did you mean 'kernel_shape'" in say("Unrecognized attribute: kernel for operator Conv")[0].fix


def test_several_messages_come_in_the_order_of_the_text() -> None:
    text = text_of(SAID["E22"][0]) + "\nDuring handling of this, another:\n" + text_of(SAID["E01"][1])
    assert [explanation.code for explanation in onnxlab.explain_error(text)] == ["E22", "E01"]


@pytest.mark.slow
def test_hostile_text_is_bounded_and_harmless() -> None:
    words = (
        "In Node, (\" 'External data path Max bound to different types (tensor( node name: running Conv node. Name:'"
    )
    generator = random.Random(0)
    for filler in ("a", " ", "\n", '"', "(", "External data path ", "Optype (", "running Conv node. Name:'", words):
        text = filler * (200_000 // len(filler)) + "".join(generator.choices(words, k=20_000))
        start = time.process_time()
        onnxlab.explain_error(text)
        assert time.process_time() - start < 20  # no pattern takes longer than linear time
    evil = (
        "Unrecognized attribute: kernel for operator Conv\n\n==> Context: Bad node. Name: \x1b[2J{0.__class__} OpType"
    )
    (explanation,) = onnxlab.explain_error(evil)
    assert "\x1b" not in str(explanation)
    assert explanation.about["node"] == "\\x1b[2J{0.__class__}"


def test_the_page_lists_all() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert all(f"## {message.code}: {message.title}" in page for message in TABLE)


# -- the command line ------------------------------------------------------------------------------------------------


def test_explain_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(makers.ADD, tmp_path / "add.onnx")
    text = text_of(SAID["E01"][1])
    assert cli.main(["explain", text, str(tmp_path / "add.onnx")]) == 0
    assert "in the model: add1 (Add) reads x: float32[2], i: int64[2]" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cli.main(["explain", "-", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["messages"][0]["code"]) == ("onnxlab/explain/1", "E01")
    assert cli.main(["explain", "all is well"]) == 1
    assert "no message in this text is known" in capsys.readouterr().out
    broken = onnx.ModelProto()
    broken.CopyFrom(makers.ADD)
    broken.graph.node[0].op_type = "Sub2"
    onnx.save(broken, tmp_path / "broken.onnx")
    assert cli.main(["explain", "it does not load", str(tmp_path / "broken.onnx")]) == 1
    assert "is known; docs/errors.md has them all\n  in the model: error: add1" in capsys.readouterr().out
    assert cli.main(["explain", " "]) == 2
    assert cli.main(["explain", "none.onnx"]) == 3
    assert cli.main(["explain", text, "none.onnx"]) == 3


def test_explain_says_why_a_value_has_its_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(onnxlab.load().save(tmp_path / "m.onnx"))
    assert cli.main(["explain", path, "head/flat[0]"]) == 0
    assert "head/flat[0] = batch: Reshape" in capsys.readouterr().out
    assert cli.main(["explain", path]) == 2
    assert cli.main(["explain", path, "nope"]) == 2
