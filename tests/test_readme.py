"""README says what is true: its Python runs with the output shown, its list of modules is complete."""

import doctest
from pathlib import Path

import pytest

from tests.support.readme import README, ROOT, with_modules


def test_the_python_in_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    Path("build").mkdir(exist_ok=True)
    failed, run = doctest.testfile(str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert run > 10
    assert not failed


def test_every_module_is_listed() -> None:
    text = README.read_text()
    assert with_modules(text) == text, "run `python -m tests.support.readme`"


def test_pictures_are_there() -> None:
    assert (ROOT / "notebooks" / "images" / "widget.png").stat().st_size > 10_000
