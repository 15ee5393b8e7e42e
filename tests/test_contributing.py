"""CONTRIBUTING.md names files and functions that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:onnxlab|tests|widgets)/[\w./]*)`", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_every_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("onnxlab/ops/base/registry.py", ["def kernel", "def rule", "RunContext"]),
        ("onnxlab/ops/base/kernel_helpers.py", ["def widened"]),
        ("onnxlab/graph/edit/changes.py", ["def apply(self, graph"]),
        ("onnxlab/notebook/protocol/messages.py", ["PROTOCOL ="]),
        ("onnxlab/notebook/protocol/questions.py", ["QUESTIONS", "repeatable", "recorded"]),
        ("onnxlab/graph/edits/table.py", ["EDITS"]),
        ("onnxlab/notebook/edits/kinds.py", ["KINDS"]),
        ("widgets/src/edit/commands/command.ts", ["interface Command"]),
        ("onnxlab/notebook/session/session.py", ["self._answers"]),
        ("widgets/src/state.ts", ["useEvents", "useCell"]),
    ],
)
def test_what_it_says_of_a_file_is_in_it(path: str, names: list[str]) -> None:
    source = (ROOT / path).read_text()
    assert [name for name in names if name not in source] == []


def test_the_table_of_places_has_thirty_rows_of_its_own() -> None:
    rows = re.findall(r"^\| (.+?) \| `((?:onnxlab|widgets)/[^`]*)` \|$", TEXT, re.MULTILINE)
    assert len({subject for subject, _ in rows}) == len(rows) >= 30
    assert len({where for _, where in rows}) >= 30
