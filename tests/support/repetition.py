"""Runs of six equal lines in the sources: code that stands twice.

python -m tests.support.repetition     # prints them
"""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 6
_FOLDERS = (("onnxlab", "*.py"), ("bench", "*.py"), ("widgets/src", "*.ts*"))
# imports, parameters, arguments by name, lone brackets and comments say nothing of repetition
_NOISE = re.compile(
    r'(from|import|export) |[\])}>(\[{,;]*$|#|//|/?\*|"""|@|\w+(: .*|=[^()]*)?,$|\w+\($'
    r'|</?\w|\w+ = [^()]*,$|\w+=[{"]|\w+$'  # markup, declarations in a list
)
Place = tuple[Path, int]


def sources() -> Iterator[Path]:
    """The files that are looked through, in order."""
    for folder, pattern in _FOLDERS:
        yield from sorted((ROOT / folder).rglob(pattern))


def lines_of(path: Path) -> list[tuple[int, str]]:
    """(number, text) of each line that says something, without its indentation."""
    source = path.read_text(encoding="utf-8")
    prose = docstring_lines(source) if path.suffix == ".py" else set()
    lines = enumerate((line.strip() for line in source.splitlines()), 1)
    return [(number, line) for number, line in lines if number not in prose and not _NOISE.match(line)]


def docstring_lines(source: str) -> set[int]:
    """The numbers of the lines that are docstrings."""
    strings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    ranges = [range(node.lineno, node.end_lineno + 1) for node in strings if isinstance(node.value, ast.Constant)]
    return set(itertools.chain.from_iterable(ranges))


def repeated() -> dict[str, list[Place]]:
    """{six lines: the places where they stand}, for those that stand at more than one."""
    places = defaultdict(list)
    for path in sources():
        lines = lines_of(path)
        for start in range(len(lines) - LENGTH + 1):
            window = lines[start : start + LENGTH]
            places["\n".join(text for _, text in window)].append((path, window[0][0]))
    return {text: occurrences for text, occurrences in places.items() if len(occurrences) > 1}


def count() -> int:
    """The number of runs of six lines that stand somewhere else already."""
    return sum(len(occurrences) - 1 for occurrences in repeated().values())


if __name__ == "__main__":
    for text, found in repeated().items():
        print(*(f"{path.relative_to(ROOT)}:{line}" for path, line in found))
        print("    " + text.replace("\n", "\n    "))
    print(count())
