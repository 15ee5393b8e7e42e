"""Files, functions and folders stay small, and no more code stands twice than today. There are no exceptions."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support import repetition

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("onnxlab", "bench", "tests", "widgets/src", "widgets/test", "widgets/dev")
SUFFIXES = (".py", ".ts", ".tsx", ".css")
FILE_LINES = 400
FAMILY_LINES = 700  # of a file of onnxlab/ops: kernels, rules and traits of a family side by side
FUNCTION_LINES = 50  # from the first statement after the docstring to the last
FOLDER_FILES = 22
REPEATED_RUNS = 6


def sources() -> Iterator[Path]:
    """The files that the limits hold for."""
    for folder in FOLDERS:
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)


def name_of(path: Path) -> str:
    """A path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def function_lengths(path: Path) -> Iterator[tuple[str, int]]:
    """(file:function, lines of its statements) of each function of a Python file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if statements:
                yield f"{name_of(path)}:{node.name}", node.end_lineno - statements[0].lineno + 1


def over(lengths: dict[str, int], limit: int) -> dict[str, int]:
    """The lengths above the limit."""
    return {name: lines for name, lines in lengths.items() if lines > limit}


def file_lengths() -> dict[str, int]:
    """{path: lines} of all sources."""
    return {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in sources()}


def test_files_are_short() -> None:
    lengths = file_lengths()
    families = {name: lines for name, lines in lengths.items() if name.startswith("onnxlab/ops/")}
    others = {name: lines for name, lines in lengths.items() if name not in families}
    assert over(families, FAMILY_LINES) | over(others, FILE_LINES) == {}


def test_functions_are_short() -> None:
    lengths = dict(pair for path in sources() if path.suffix == ".py" for pair in function_lengths(path))
    assert over(lengths, FUNCTION_LINES) == {}


def test_folders_hold_few_files() -> None:
    counts: dict[str, int] = {}
    for path in sources():
        folder = name_of(path.parent)
        counts[folder] = counts.get(folder, 0) + 1
    assert {folder: count for folder, count in counts.items() if count > FOLDER_FILES and folder != "bench"} == {}


def test_no_more_code_stands_twice() -> None:
    assert repetition.count() <= REPEATED_RUNS, "python -m tests.support.repetition prints where"
