"""Retired identifiers and spellings stay retired: tests/support/retired.txt lists them. No text speaks of persons."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "support" / "retired.txt"
SUFFIXES = (".py", ".ts", ".tsx", ".md", ".mjs", ".css")
PERSONS = ("somebody", "whoever", "nobody", "anybody", "someone", "everybody", "anyone")
VAGUE = frozenset(
    ("found", "made", "given", "one", "each", "wanted", "kept", "what", "told", "said", "taken", "mine", "own", "there",
     "here", "asked", "thing")
)  # fmt: skip
"""Names that fit any value, and so tell nothing of it."""
BUILDERS = "onnxlab/execution/numba/kernels/simd/"
"""Functions that emit LLVM's instructions: a change compiles every kernel anew, so they are left as they are."""
PUBLIC = {("reserve", "what"), ("warn", "found"), ("__init__", "found")}
"""(function, parameter) of protocols that operators of users call by keyword."""


def local_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(function, name) of each parameter and local variable."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for item in ast.walk(function):
                if isinstance(item, ast.arg):
                    yield function.name, item.arg
                elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                    yield function.name, item.id


def retired() -> list[str]:
    """The words that are not to be used."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")]


def uses(words: re.Pattern[str]) -> set[str]:
    """Where the repository's sources and texts use words, this file left out."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {
        f"{name}: {match[0]}"
        for name in files
        if name.endswith(SUFFIXES) and (ROOT / name).exists() and (ROOT / name) != Path(__file__).resolve()
        for match in words.finditer((ROOT / name).read_text(encoding="utf-8"))
    }


def test_no_retired_word_is_used() -> None:
    assert uses(re.compile(r"\b(" + "|".join(map(re.escape, retired())) + r")\b")) == set()


def test_no_text_speaks_of_persons() -> None:
    assert uses(re.compile(r"\b(" + "|".join(PERSONS) + r")\b", re.IGNORECASE)) == set()


def test_no_local_name_of_the_package_is_vague() -> None:
    vague = {
        f"{path.relative_to(ROOT)}: {name} in {function}"
        for path in (ROOT / "onnxlab").rglob("*.py")
        if not path.relative_to(ROOT).as_posix().startswith(BUILDERS)
        for function, name in local_names(ast.parse(path.read_text(encoding="utf-8")))
        if name in VAGUE and (function, name) not in PUBLIC
    }
    assert vague == set()


def test_the_list_is_in_order_and_says_what_to_use() -> None:
    lines = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines)
    assert all(len(line.split()) == 2 for line in lines)
