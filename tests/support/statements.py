"""Statements of the Python of `onnxlab/execution`, kernels and rules left out: `python -m tests.support.statements`.

Every statement of the syntax tree counts, imports, docstrings and declarations too, so that the figure does not change
with how lines are broken.
"""

import ast
from pathlib import Path

EXECUTION = Path(__file__).resolve().parents[2] / "onnxlab" / "execution"
LEFT_OUT = ("numba/kernels/", "numba/rules/")


def count(source: str) -> int:
    """The statements of a module."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(source)))


def by_file(folder: Path = EXECUTION) -> dict[str, int]:
    """{path from the folder: statements} of each file that counts."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.py"))}
    return {name: count(path.read_text("utf-8")) for name, path in files.items() if not name.startswith(LEFT_OUT)}


def main() -> None:
    """Print the files, the largest last, and the sum."""
    counts = by_file()
    for name in sorted(counts, key=lambda name: counts[name]):
        print(f"{counts[name]:6} {name}")
    print(f"{sum(counts.values()):6} statements")


if __name__ == "__main__":
    main()
