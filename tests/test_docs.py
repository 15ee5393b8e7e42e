"""The site says what is true: its Python runs, its made pages and codes are current, it builds without a warning."""

import ast
import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docs_pages import PAGES, ROOT

DOCS = ROOT / "docs"
WITH_PYTHON = sorted(path for path in DOCS.rglob("*.md") if ">>>" in path.read_text(encoding="utf-8"))
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.mark.parametrize("path", WITH_PYTHON, ids=lambda path: path.stem)
def test_the_python_in_it_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    Path("build").mkdir(exist_ok=True)
    failed, run = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert run >= 2
    assert not failed


@pytest.mark.parametrize("name", PAGES)
def test_made_pages_are_current(name: str) -> None:
    page = PAGES[name]()
    assert (DOCS / name).read_text(encoding="utf-8") == page, "run `python -m tests.support.docs_pages`"


def literal_codes(source: str) -> Iterator[str]:
    """Codes of diagnostics that are written out where they are raised."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        place = {"Diagnostic": 1, "error": 0, "warning": 0}.get(name)
        codes: list[ast.expr] = [word.value for word in node.keywords if word.arg == "code" and name == "FactError"]
        if place is not None:
            codes += node.args[place : place + 1]
        for part in (inner for expression in codes for inner in ast.walk(expression)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and CODE.fullmatch(part.value):
                yield part.value


def test_every_diagnostic_code_has_its_line() -> None:
    page = (DOCS / "diagnostics.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| ([a-z0-9-]+) \| (?!cause|---)", page, re.MULTILINE))
    folders = [ROOT / "onnxlab" / name for name in ("analysis", "infer", "ops", "shapes")]
    sources = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")]
    used = {code for source in sources for code in literal_codes(source)}
    assert len(used) > 40
    assert used <= listed, "docs/diagnostics.md lacks these"
    written = "".join(sources)
    composed = {code for code in listed if f'f"{code.split("-")[0]}-{{' in written}  # f"declared-{what}"
    assert not [code for code in listed - composed if f'"{code}"' not in written], "these are no more"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.slow
def test_the_site_builds_without_a_warning() -> None:
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "--clean"]
    offline = {"no_proxy": "", **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | offline, capture_output=True, text=True, timeout=250, check=False
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert "griffe" not in printed  # docstrings whose parameters are not the function's
    assert (ROOT / "build" / "site" / "api" / "index.html").stat().st_size > 50_000
