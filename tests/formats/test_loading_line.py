"""The line while a large file is loaded: in a terminal, in a notebook's cell, and nothing elsewhere."""

import io
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import onnxlab
from onnxlab.errors import LoadError
from onnxlab.formats import loading_line
from onnxlab.model.opening import EXAMPLE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_line, "LARGE", 10)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outputs of a cell, one after the other."""
    lines: list[str] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            lines.append(content["text/plain"])

    def display(content: dict[str, str], **_: Any) -> Handle:
        lines.append(content["text/plain"])
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    return lines


@pytest.mark.usefixtures("large")
def test_a_terminal_shows_a_line_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    onnxlab.load(EXAMPLE)
    line, spaces, end = terminal.getvalue().split("\r")
    assert line.startswith("loading digits.onnx, ")
    assert spaces == " " * len(line)
    assert end == ""


@pytest.mark.usefixtures("large")
def test_a_cell_says_at_once_what_is_loaded_and_then_how_long_it_took(cell: list[str]) -> None:
    onnxlab.load(EXAMPLE)
    first, last = cell
    assert first.startswith("loading digits.onnx, ")
    assert " loaded in " in last


@pytest.mark.usefixtures("large")
def test_nothing_is_left_of_the_line_where_loading_fails(cell: list[str], tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"no model at all")
    with pytest.raises(LoadError):
        onnxlab.load(path)
    assert cell[-1] == ""


def test_small_files_are_loaded_without_a_word(cell: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    onnxlab.load(EXAMPLE)
    assert cell == []
    assert terminal.getvalue() == ""
