"""The map of each package in its docstring: one line per file, made from the files' own first lines.

python -m tests.support.package_maps     # writes those that are out of date
"""

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(path for path in (ROOT / "onnxlab").rglob("__init__.py") if path.parent.name != "onnxlab")
_WIDTH = 118


def first_line(path: Path) -> str:
    """The first sentence of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path} has no docstring"
    return docstring.split("\n\n")[0].replace("\n", " ").rstrip(".")


def expected(path: Path) -> str:
    """The source of a package's `__init__` with the map as it is now."""
    source = path.read_text(encoding="utf-8")
    docstring = ast.parse(source).body[0]
    assert isinstance(docstring, ast.Expr)
    assert isinstance(docstring.value, ast.Constant)
    assert isinstance(docstring.value.value, str)
    prose = docstring.value.value.split("\n\nFiles:\n")[0].rstrip()
    rest = "".join(source.splitlines(keepends=True)[docstring.end_lineno :])
    entries = listing(path.parent)
    return f'"""{prose}\n\nFiles:\n{entries}"""\n{rest}' if entries else f'"""{prose}"""\n{rest}'


def listing(folder: Path) -> str:
    """One entry for each module and package of a folder, aligned."""
    paths = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    paths += sorted(path for path in folder.glob("*/__init__.py"))
    names = [f"{path.parent.name}/" if path.name == "__init__.py" else path.stem for path in paths]
    width = max(map(len, names), default=0) + 2
    return "".join(
        textwrap.fill(
            f"{first_line(path)}.",
            _WIDTH,
            initial_indent="    " + name.ljust(width),
            subsequent_indent=" " * (4 + width),
            break_on_hyphens=False,
        )
        + "\n"
        for name, path in zip(names, paths, strict=True)
    ).replace("\\", "\\\\")


if __name__ == "__main__":
    for package in PACKAGES:
        if (source := expected(package)) != package.read_text(encoding="utf-8"):
            package.write_text(source, encoding="utf-8")
