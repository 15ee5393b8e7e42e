"""The panel of CONTRIBUTING.md, put into a copy of the files that it names, answers, and is what TypeScript takes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECTION = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a panel")[1].split("\n## ")[0]
RECORD, ROW, ANSWER, ENTRY, PANEL, IMPORT, PLACE, TEST = re.findall(r"```\w+\n(.*?)```", SECTION, re.DOTALL)

QUESTIONS = "onnxlab/notebook/protocol/questions.py"
SESSION = "onnxlab/notebook/session/session.py"
PLACED_IN = "widgets/src/panels/inspector/inspect_value.tsx"
INSERTED = {
    QUESTIONS: [
        ("\nQUESTIONS: Mapping[str, Method] = {\n", f"\n{RECORD}\n\n", ""),
        ("\nQUESTIONS: Mapping[str, Method] = {\n", "", ROW),
    ],
    SESSION: [
        ("    def _explain(self", f"{ANSWER}\n", ""),
        ('            "explain": self._explain,\n', "", ENTRY),
    ],
    PLACED_IN: [
        ('import { StatisticsBlock } from "./statistics.tsx";\n', IMPORT, ""),
        ("      <Why app={app} value={value} />\n", "", PLACE),
    ],
}
"""{file: [(what stands there, what comes before it, what comes behind it)]}."""
NEW = {"widgets/src/panels/inspector/storage.tsx": PANEL, "tests/notebook/test_storage.py": TEST}
WRITTEN = {"widgets/src/kernel/protocol/questions.ts"}
"""Written by the command."""


def run(folder: Path, *command: str | Path) -> None:
    """Run a command in the copy; what it says fails the test."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the panel in it, and nothing written yet."""
    folder = tmp_path_factory.mktemp("project")
    left_out = shutil.ignore_patterns("__pycache__", "static", "models", "browser", "*.xz")
    for name in ("onnxlab", "tests", "widgets/src"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for name in ("pyproject.toml", "CONTRIBUTING.md", "widgets/tsconfig.json", "widgets/package.json"):
        shutil.copy(ROOT / name, folder / name)
    for name, insertions in INSERTED.items():
        text = (folder / name).read_text(encoding="utf-8")
        for mark, before, behind in insertions:
            assert text.count(mark) == 1, (name, mark)
            text = text.replace(mark, before + mark + behind)
        (folder / name).write_text(text, encoding="utf-8")
    for name, text in NEW.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def changed(copy: Path) -> set[str]:
    """The files of the copy that are not those of the project."""
    paths = [path for path in copy.rglob("*") if path.suffix in (".py", ".ts", ".tsx") and path.is_file()]
    names = {str(path.relative_to(copy)) for path in paths}
    return {
        name for name in names if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


@pytest.mark.slow
def test_a_new_panel_takes_six_files(copy: Path) -> None:
    run(copy, sys.executable, "-m", "tests.support.twin")
    assert changed(copy) == INSERTED.keys() | NEW.keys() | WRITTEN
    assert len(changed(copy)) == 6
    everything = ("tests/notebook/test_storage.py", "tests/notebook/test_twins.py")
    run(copy, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *everything)
    modules = ROOT / "widgets" / "node_modules"
    assert modules.is_dir(), "npm ci in widgets installs the TypeScript compiler"
    (copy / "widgets" / "node_modules").symlink_to(modules)
    run(copy / "widgets", "node", modules / "typescript" / "bin" / "tsc", "--noEmit", "-p", ".")
