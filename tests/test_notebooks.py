"""The notebooks run, give the output that is committed, and can be read where no kernel runs."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def test_all_are_known() -> None:
    guides = {"01_tour", "02_shapes", "03_values", "04_surgery", "05_formats"}
    assert set(NAMES) == guides | {"06_look_and_run", "07_change", "08_compare_and_ship"}


def test_make_lab_installs_what_they_import() -> None:
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]
    (extra,) = re.findall(r"-e '\.\[(\w+)\]' \|", (FOLDER.parent / "Makefile").read_text())
    needed, waiting = list(project["dependencies"]), [extra]
    while waiting:
        for requirement in project["optional-dependencies"][waiting.pop()]:
            within = re.match(r"onnxlab\[(.+)\]", requirement)
            waiting += within[1].split(",") if within else ()
            needed.append(requirement)
    names = imported([
        "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))
        for name in NAMES for cell in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells if cell.cell_type == "code"
    ])  # fmt: skip
    helpers = [FOLDER.parent / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")]
    names |= imported([path.read_text() for path in helpers])
    assert {"onnxruntime.quantization", "tests.support.samples"} <= names
    installed = {re.findall(r"^\w+", requirement)[0] for requirement in needed} | {"onnxlab", "tests"}
    assert {name.partition(".")[0] for name in names} <= installed | sys.stdlib_module_names


def imported(codes: list[str]) -> set[str]:
    """Names of modules that statements import."""
    names = set()
    for node in (node for code in codes for node in ast.walk(ast.parse(code))):
        names |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        names |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
    return names


def texts(notebook: Any) -> list[list[str]]:
    """The words that each cell shows, and at the end all that it prints: in how many pieces that comes is chance."""
    words = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            streams = [output for output in cell.outputs if output.output_type == "stream"]
            shown = [output["data"].get("text/plain", "") for output in cell.outputs if output not in streams]
            words.append([*shown, "".join(output["text"] for output in streams if output.name != "stderr")])
    return words


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_it_runs_and_gives_the_committed_output(name: str) -> None:
    committed = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    executed = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    NotebookClient(executed, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert texts(executed) == texts(committed)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_readable_without_a_kernel(name: str) -> None:
    """nbconvert shows the static picture; nothing is left of the widget but its model id."""
    committed = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    pictures = [
        output["data"]
        for cell in committed.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/svg+xml" in output.get("data", {})
    ]
    assert pictures
    page, _ = HTMLExporter().from_notebook_node(committed)
    assert page.count('<div class="jp-RenderedSVG') == len(pictures)
    assert all(len(picture["image/png"]) < 200_000 for picture in pictures), "what an untrusted notebook shows"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_was_warned_of(name: str) -> None:
    committed = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    outputs = [output for cell in committed.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []
