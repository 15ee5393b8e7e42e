"""Text of a model never reaches a terminal as it is: escapes, marks of direction and invisible characters show."""

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab import cli
from onnxlab.errors import Diagnostic, JournalWarning, OnnxlabError, SaveWarning
from onnxlab.execution.run import progress_bar
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats import textual
from onnxlab.printable import printable, printable_lines

NASTY = "\x1b]0;owned\x07\x1b[2K\r0 errors\n0 errors\u202eevil\u2066\u200b\u200d\ufeff\x9b2J\x7f\u2028\U000e0041é"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("conv1/weights [é ü 模型 🐈]", "conv1/weights [é ü 模型 🐈]"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b2J\x7f\0", r"\x9b2J\x7f\x00"),
        ("\u202eab\u2066", r"\u202eab\u2066"),
        ("a\u200bb\u200d\u2060\ufeff", r"a\u200bb\u200d\u2060\ufeff"),
        ("\u3164\u115f\ufe0f\U000e0101", r"\u3164\u115f\ufe0f\U000e0101"),
        ("\ud800", r"\ud800"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_what_is_not_visible_is_written_as_in_python(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    assert printable_lines([text, text]) == f"{shown}\n{shown}"


def nasty() -> onnx.ModelProto:
    """A model in which every name is nasty, with a problem of every other kind."""

    def called(name: str) -> str:
        return name + NASTY

    def declared(name: str, *dims: Any) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(called(name), TensorProto.FLOAT, dims)

    body = helper.make_graph([helper.make_node("Neg", [called("w")], [called("t")], called("neg"))], called("body"), [],
                             [declared("t", 3)])  # fmt: skip
    nodes = [
        helper.make_node("Add", [called("x"), called("w")], [called("a")], called("add")),
        helper.make_node("Add", [called("a"), called("missing")], [called("b")], called("add2")),
        helper.make_node(called("Op"), [called("x")], [called("c")], called("custom"), domain=called("dom"), s=NASTY),
        helper.make_node("If", [called("flag")], [called("d")], called("if"), then_branch=body, else_branch=body),
        helper.make_node(called("F"), [called("x")], [called("e")], called("call"), domain=called("dom")),
        helper.make_node("MatMul", [called("x"), called("w5")], [called("f")], called("mm")),
    ]
    function = helper.make_function(
        called("dom"), called("F"), [called("p")], [called("q")],
        [helper.make_node("Relu", [called("p")], [called("q")], called("relu"))], [helper.make_opsetid("", 17)],
    )  # fmt: skip
    graph = helper.make_graph(
        nodes, called("graph"),
        [declared("x", called("batch"), 3), helper.make_tensor_value_info(called("flag"), TensorProto.BOOL, [])],
        [declared("a", called("other"), 3), declared("e", None, None)],
        [numpy_helper.from_array(np.ones(3, np.float32), called("w")),
         numpy_helper.from_array(np.ones((5, 5), np.float32), called("w5"))],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(called("dom"), 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9, functions=[function])
    model.producer_name = model.doc_string = NASTY
    model.metadata_props.add(key=NASTY, value=NASTY)
    return model


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "nasty\x1b[2J\u202e.onnx"
    onnx.save(nasty(), path)
    return path


def shows(text: str, lines: int | None = None) -> None:
    """No control sequence in a text takes effect or hides text, and no name breaks a line."""
    assert text
    assert printable_lines(text.split("\n")) == text
    assert "\n0 errors" not in text
    if lines is not None:
        assert text.count("\n") + 1 == lines


def test_reports_and_representations(file: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "renamed\x1b"
    commit = model.value("x" + NASTY).set_dim(0, "n\x1b\u202e\n0 errors")
    for report in (commit, model.last_change, model, model.history, model.metadata, model.opsets, model.values):
        shows(str(report))
        shows(repr(report))
    shows(str(model.with_dims()))
    shows(str(model.partition(["numba", "numpy"])))
    for item in model.check():
        shows(str(item), 1)
    for node in model.nodes:
        shows(repr(node), 1)
        shows(repr(node.attributes), 1)
        for value in (*node.inputs, *node.outputs):
            name = getattr(value, "name", value)
            shows(repr(model.value(name)), 1)
            shows(str(model.fact(name)), 1)
            shows(repr(model.fact(name)), 1)
            shows(str(model.explain(name)))
    for dim in model.fact("x" + NASTY).shape or ():
        shows(f"{dim} {dim!r}", 1)
    for change in model.files.save_report():
        shows(str(change), 1)
    shows(model.history.to_python())
    shows(repr(model.tensor("w" + NASTY)), 1)
    for shown in model._repr_mimebundle_().values():
        shows(str(shown))
    shows(repr(onnxlab.show(model, static=True)))
    for suffix in (".onnxtxt", ".textproto", ".json"):
        assert printable_lines((text := model.to_text(suffix)).split("\n")) == text


def test_text_formats_carry_what_they_escape(tmp_path: Path) -> None:
    for suffix in (".textproto", ".json"):
        text = textual.text_of(nasty(), suffix)
        assert onnx_format.decode(text.encode(), Path(f"m{suffix}")) == nasty()
        path = onnxlab.load(nasty()).save(tmp_path / f"m{suffix}")
        assert path.read_text(encoding="utf-8") == text


def test_errors_and_warnings(file: Path, tmp_path: Path) -> None:
    model = onnxlab.load(file)
    calls: list[Any] = [
        lambda: model.run(),
        lambda: model.run({"x" + NASTY: np.ones((2, 4), np.float32)}),
        lambda: model.run(outputs=[NASTY]),
        lambda: model.value(NASTY),
        lambda: model.nodes[NASTY],
        lambda: setattr(model.nodes[0], "name", model.nodes[1].name),
        lambda: model.save(tmp_path / "\x1b[2J" / "m.onnx"),
        lambda: onnxlab.load(tmp_path / "no\x1b[2J\u202e.onnx"),
        lambda: model.convert_opset(3),
    ]
    raised = 0
    for call in calls:
        try:
            call()
        except OnnxlabError as error:
            raised += 1
            shows(str(error), 1)
    assert raised >= 7
    for kind in (SaveWarning, JournalWarning):
        with pytest.warns(kind) as caught:
            warnings.warn(NASTY, kind, stacklevel=1)
        shows(str(caught[0].message), 1)
    shows(str(Diagnostic("error", "code", NASTY, expected=NASTY, found=NASTY, hint=NASTY)), 1)


@pytest.mark.parametrize("verb", ["info", "check", "svg", "run"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command_line(verb: str, form: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if verb == "svg" and form:
        return
    cli.main([verb, str(file), *form])
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        if text:
            shows(text.removesuffix("\n"))
    assert printed.err.count("\n") <= 1
    if form and printed.out:
        report = json.loads(printed.out)
        assert verb != "info" or report["inputs"][0]["name"] == "x" + NASTY


def test_warnings_on_the_command_line_are_lines(file: Path, tmp_path: Path) -> None:
    hard = tmp_path / "out\x1b.svg"
    hard.write_text("<svg/>")
    (tmp_path / "other.svg").hardlink_to(hard)
    command = [sys.executable, "-m", "onnxlab.cli", "svg", str(file), "-o", str(hard)]
    done = subprocess.run(command, capture_output=True, check=True)
    printed = done.stderr.decode()
    assert printed.startswith(
        r"onnxlab: warning: out\x1b.svg has another name (a hard link), which keeps the old content"
    )
    shows(printed.removesuffix("\n"), 1)


def test_the_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    drawn = io.StringIO()
    drawn.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", drawn)
    monkeypatch.setattr(progress_bar, "DELAY", 0)
    with progress_bar.bar() as tell:
        assert tell is not None
        tell(1, 2, NASTY)
        tell(2, 2, NASTY)
    assert "\x1b]0" not in drawn.getvalue()
    assert "\u202e" not in drawn.getvalue()
