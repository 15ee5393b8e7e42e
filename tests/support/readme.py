"""README's list of modules, made from their docstrings: `python -m tests.support.readme` writes it."""

import ast
from pathlib import Path

from tests.test_layers import LAYERS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
START, END = "<!-- modules -->\n", "<!-- /modules -->\n"


def first_line(path: Path) -> str:
    """What a module says of itself in the first line of its docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, f"{path} has no docstring"
    return docstring.split("\n\n")[0].replace("\n", " ").rstrip(".")


def modules() -> str:
    """The list, by layers from the bottom up."""
    lines = ["| module | what it holds |", "| --- | --- |"]
    for layer in LAYERS:
        if layer.startswith("__"):
            continue
        place = ROOT / "onnxlab" / layer
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for path in files:
            if not path.exists():
                continue
            parts = path.relative_to(ROOT / "onnxlab").with_suffix("").parts
            if parts[-1] == "__init__":
                lines.append(f"| **{'.'.join(parts[:-1])}** | **{first_line(path)}** |")
            else:
                lines.append(f"| {'.'.join(parts)} | {first_line(path)} |")
    return "\n".join(lines) + "\n"


def with_modules(text: str) -> str:
    """README with the list as it is now."""
    before, rest = text.split(START)
    return before + START + modules() + END + rest.split(END)[1]


if __name__ == "__main__":
    README.write_text(with_modules(README.read_text()))
