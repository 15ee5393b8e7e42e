"""%onnx_show in an IPython shell: targets, options, completion, errors in one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import onnxlab
from onnxlab.notebook.widgets import magic
from onnxlab.notebook.widgets.display import WIDGET, StaticView
from onnxlab.notebook.widgets.widget import ModelWidget


@pytest.fixture
def shell(model: onnxlab.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A shell with the extension loaded, `model` and `proto` in it, and model.onnx in its folder."""
    monkeypatch.chdir(tmp_path)
    model.save("model.onnx")
    (tmp_path / "notes.txt").write_text("no model")
    instance = InteractiveShell.instance()
    instance.run_line_magic("load_ext", "onnxlab")
    onnxlab.load_ipython_extension(instance)
    instance.user_ns.update(model=model, proto=model.proto, models={"a b": model})
    yield instance
    instance.reset()
    InteractiveShell.clear_instance()


def show(shell: Any, line: str) -> Any:
    return shell.run_line_magic("onnx_show", line)


@pytest.mark.parametrize("line", ["model", "proto", "model.onnx", "'model.onnx'", 'models["a b"]', "model.to_bytes()"])
def test_every_kind_of_target(shell: Any, line: str) -> None:
    assert len(show(shell, line).model.nodes) == 4


def test_without_a_target_it_shows_the_model_that_comes_along(shell: Any) -> None:
    assert isinstance(show(shell, ""), ModelWidget)


def test_options(shell: Any, model: onnxlab.Model) -> None:
    view = show(shell, "model --select '/stem/*' --height=300")
    assert view.selection == (model.nodes[0], model.nodes[1])
    assert view.height == 300
    assert show(shell, "--select MaxPool model").selection == (model.nodes[2],)
    assert isinstance(show(shell, "model --static"), StaticView)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("missing.onnx", "there is no such file"),
        ("notes.txt", "model"),
        ("nothing", "is no file here and no expression (NameError"),
        ("1 + 1", "is a int; it takes a model"),
        ("model --select Nope*", "no node's name or operator matches 'Nope*'"),
        ("model --height tall", "--height is a number of pixels"),
        ("model --height ²", "--height is a number of pixels"),
        (f"model --height {'9' * 5000}", "--height is a number of pixels"),
        ("model --select", "--select needs a value"),
        ("model --color red", "no option --color"),
    ],
)
def test_a_mistake_is_one_line(shell: Any, line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as caught:
        show(shell, line)
    assert words in str(caught.value)
    result = shell.run_cell(f"%onnx_show {line}")
    assert result.error_in_exec is not None
    assert "Traceback" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("mod", {"model", "model.onnx", "models"}), ("model.on", {"model.onnx"}), ("pro", {"proto"})],
)
def test_completion(shell: Any, typed: str, expected: set[str]) -> None:
    line = f"%onnx_show {typed}"
    with provisionalcompleter():
        completions = {line[: item.start] + item.text for item in shell.Completer.completions(line, len(line))}
    assert {f"%onnx_show {text}" for text in expected - {"models"}} <= completions
    assert not any("notes" in text for text in completions)


def test_completion_knows_the_files_of_every_format() -> None:
    assert set(magic.suffixes()) >= {
        ".onnx",
        ".ort",
        ".textproto",
        ".ckpt",
        ".pt2",
        ".pt",
        ".safetensors",
        ".npz",
        ".pb",
    }


def test_a_bare_proto_draws_itself(shell: Any, model: onnxlab.Model) -> None:
    """Two outputs, the picture and the widget; shown again, it is the same widget."""
    with capture_output() as captured:
        assert shell.display_formatter.format(model.proto) == ({}, {})
        shell.display_formatter.format(model.proto)
    picture, widget, _, again = (output.data for output in captured.outputs)
    assert set(picture) == {"image/svg+xml", "image/png", "text/plain"}
    assert set(widget) == {WIDGET, "text/plain"}
    assert again == widget


def test_a_proto_that_is_edited_in_the_widget_is_the_users_own(shell: Any) -> None:
    proto = onnx.load("model.onnx")
    shell.user_ns["own"] = proto
    show(shell, "own").model.nodes[0].name = "renamed"
    assert proto.graph.node[0].name == "renamed"


def test_running_a_cell_again_closes_its_first_view(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(shell), "parent_header", {"metadata": {"cellId": "cell-1"}}, raising=False)
    first, second = show(shell, "model.onnx"), show(shell, "model.onnx")
    assert not first.is_open
    assert second.is_open
    assert magic.parse("a --static") == magic.Arguments("a", static=True)
