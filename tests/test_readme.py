"""README says what is true: its Python runs with the output shown, its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def test_the_python_in_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    Path("build").mkdir(exist_ok=True)
    failed, run = doctest.testfile(str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert run > 10
    assert not failed


def test_every_link_leads_to_a_file() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_picture_moves() -> None:
    assert "(notebooks/images/edit.gif)" in README.read_text(encoding="utf-8")
    with Image.open(ROOT / "notebooks" / "images" / "edit.gif") as picture:
        assert picture.n_frames >= 4  # type: ignore[attr-defined]
