"""Retired identifiers and spellings stay retired: tests/support/retired.txt lists them. Texts name their subject."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "support" / "retired.txt"
VAGUE = ROOT / "tests" / "support" / "vague.txt"
"""Names that fit any value; widgets/test/vocabulary.test.ts holds TypeScript to the same list."""
SUFFIXES = (".py", ".ts", ".tsx", ".md", ".mjs", ".css")
PERSONS = ("somebody", "whoever", "nobody", "anybody", "someone", "everybody", "anyone")
WITHHELD = frozenset(("what", "how", "where", "who", "why", "which", "those", "they", "it", "as", "that", "so", "if"))
"""Words that begin a sentence whose subject is told at its end, or not at all."""
FRAGMENTS = WITHHELD | {"of", "by", "from", "to", "at", "until", "above", "below", "only", "not", "its", "null"}
"""Words that begin a comment of TypeScript whose subject is the name below it."""
DOC_COMMENT = re.compile(r"/\*\*\s*(?:\n\s*\*\s*)?(\w+)")
BUILDERS = "onnxlab/execution/numba/kernels/simd/"
"""Functions that emit LLVM's instructions: a change compiles every kernel anew, so they are left as they are."""
PUBLIC = {("reserve", "what"), ("warn", "found"), ("__init__", "found")}
"""(function, parameter) of protocols that operators of users call by keyword."""


def names_of(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(function, parameter) of each parameter, ("", name) of each local variable."""
    for item in ast.walk(tree):
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            parameters = item.args
            for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
                yield getattr(item, "name", "lambda"), parameter.arg
            for inner in ast.walk(item):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    yield "", inner.id


def listed(path: Path) -> list[str]:
    """The first word of each line of a list."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")]


def tracked(*suffixes: str) -> list[Path]:
    """The files of the repository with these suffixes."""
    command = ["git", "ls-files", *(f"*{suffix}" for suffix in suffixes)]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names if (ROOT / name).exists()]


def docstrings(tree: ast.AST) -> Iterator[str]:
    """The docstrings of a module, its classes and functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    yield from filter(None, (ast.get_docstring(item) for item in ast.walk(tree) if isinstance(item, kinds)))


def uses(words: re.Pattern[str]) -> set[str]:
    """The uses of words in the repository's sources and texts, this file left out."""
    return {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked(*SUFFIXES)
        if path != Path(__file__).resolve()
        for match in words.finditer(path.read_text(encoding="utf-8"))
    }


def test_no_retired_word_is_used() -> None:
    assert uses(re.compile(r"\b(" + "|".join(map(re.escape, listed(LIST))) + r")\b")) == set()


def test_no_text_speaks_of_persons() -> None:
    """Names count too, those of tests among them."""
    words = "|".join(PERSONS)
    assert uses(re.compile(rf"\b({words})\b|_({words})(?![a-z])", re.IGNORECASE)) == set()


def test_docstrings_begin_with_their_subject_or_a_verb() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path in tracked(".py")
        for text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if text.split()[0].strip("`.,:;").lower() in WITHHELD
    ] == []


def test_comments_of_typescript_begin_with_their_subject_or_a_verb() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked(".ts", ".tsx", ".mjs")
        for match in DOC_COMMENT.finditer(path.read_text(encoding="utf-8"))
        if match[1].lower() in FRAGMENTS
    ] == []


def test_no_name_of_python_is_vague() -> None:
    words = frozenset(listed(VAGUE))
    vague = {
        f"{path.relative_to(ROOT)}: {name} {function and 'of ' + function}"
        for path in tracked(".py")
        if not path.relative_to(ROOT).as_posix().startswith(BUILDERS)
        for function, name in names_of(ast.parse(path.read_text(encoding="utf-8")))
        if name in words and (function, name) not in PUBLIC
    }
    assert vague == set()


def test_no_two_classes_share_a_name() -> None:
    """Records of the protocol are named like what they carry; classes of one file alone begin with an underscore."""
    homes: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "onnxlab").rglob("*.py"):
        if path.parent.name != "protocol":
            for item in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
                    homes[item.name].add(str(path.relative_to(ROOT)))
    assert {name: sorted(files) for name, files in homes.items() if len(files) > 1} == {}


def test_values_alone_are_kept() -> None:
    """No attribute, function or parameter is called `kept` but the bytes of values that stay after a run."""
    uses_of_it = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "onnxlab").rglob("*.py")
        if BUILDERS not in str(path)
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if "kept" in (getattr(item, "attr", ""), getattr(item, "arg", ""), getattr(item, "name", ""))
    }
    assert uses_of_it == {"onnxlab/analysis/memory/estimate.py"}


def test_the_list_is_in_order_and_says_what_to_use() -> None:
    lines = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines)
    assert all(len(line.split()) == 2 for line in lines)
