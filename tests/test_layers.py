"""The layers of the package: a module imports only from its own row's part or from rows above it.

Imports inside functions and under TYPE_CHECKING count, so that no cycle hides there.
"""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import networkx as nx
import pytest

import onnxlab

PACKAGE = Path(onnxlab.__file__).parent

# From the bottom up: each may import those before it.
LAYERS = [
    "viewers",
    "spelling",
    "short_help",
    "forking",
    "threads",
    "garbage_collection",
    "private_folder",
    "printable",
    "argument_types",
    "errors",
    "optional_packages",
    "dtypes",
    "shapes",
    "limits",
    "attribute_choices",
    "operator_schema",
    "runtime_schemas",
    "schemas",
    "ops",
    "graph",
    "infer",
    "formats",
    "execution",
    "analysis",
    "transforms",
    "backend",
    "model",
    "render",
    "notebook",
    "mcp",
    "__init__",  # the front door: the command line goes through it as users do
    "cli",
    "__main__",
]
# Inside a package, sub-packages from the bottom up; files beside them stand above all of these.
SUBLAYERS = {
    "graph": ["protos", "index", "state", "edit", "query", "edits.opsets", "edits.recording", "edits", "handles"],
    "infer": ["facts", "rules", "walk", "questions", "live", "dropin"],
    "execution": [
        "base",
        "program",
        "planning",
        "numpy",
        "numba.machine",
        "numba.kernels.simd",
        "numba.kernels",
        "numba.plan",
        "numba.lowering",
        "numba.rules",
        "numba.rules.onnx",
        "numba.rules.ml",
        "numba.rules.microsoft",
        "numba.rules.fusion",
        "numba.region",
        "numba",
        "ort",
        "run",
    ],
    "notebook": ["protocol", "panels", "edits", "session", "widgets"],
    "ops": ["base", "onnx.math", "onnx.nn", "onnx.tensor", "onnx.training", "onnx.control", "ml", "microsoft", "nchwc"],
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    """The row that a file of the package belongs to: its first folder, or its own name."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(source: str, package: list[str]) -> Iterator[tuple[int, str]]:
    """(line, row) of every import of onnxlab in `source`, a module of `package` (["onnxlab", "graph"])."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            # `from onnxlab import graph` names the row last
            targets = [[*base, alias.name] for alias in node.names]
        elif isinstance(node, ast.Call) and (imported := dynamic_import(node)):
            targets = [imported.split(".")]
        else:
            continue
        for parts in targets:
            if parts[0] == "onnxlab":
                yield node.lineno, parts[1] if len(parts) > 1 and parts[1] in LAYERS else "__init__"


def dynamic_import(call: ast.Call) -> str | None:
    """The module that import_module("…") or __import__("…") imports, None where the call is another or takes a name."""
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    first = call.args[0] if call.args else None
    literal = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if literal and function in ("import_module", "__import__") else None  # type: ignore[attr-defined]


def violations(path: Path, source: str) -> list[str]:
    """Imports of a file that climb, as "line 3 imports model"."""
    package = ["onnxlab", *path.relative_to(PACKAGE).parts[:-1]]
    layer = LAYERS.index(layer_of(path))
    return [f"line {line} imports {row}" for line, row in imported_layers(source, package) if LAYERS.index(row) > layer]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_from_rows_above(path: Path) -> None:
    assert layer_of(path) in LAYERS, f"{path.name} belongs to no row of LAYERS"
    assert violations(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import onnxlab.model",
        "from onnxlab import model",
        "from onnxlab.model import Model",
        "from ..model import Model",
        "from .. import model",
        "def f():\n    from onnxlab.model import Model",
        "if TYPE_CHECKING:\n    from onnxlab.model import Model",
        "import importlib\nimportlib.import_module('onnxlab.model')",
        "import onnxlab",
    ],
)
def test_a_climbing_import_is_found(source: str) -> None:
    assert len(violations(PACKAGE / "graph" / "index.py", source)) == 1


@pytest.mark.parametrize("source", ["import onnx", "from onnxlab.errors import EditError", "from . import x"])
def test_an_import_from_above_is_allowed(source: str) -> None:
    assert violations(PACKAGE / "graph" / "index.py", source) == []


def sublayer_of(module: str) -> tuple[str, int] | None:
    """(package, place in its SUBLAYERS) of a dotted module, None where it is in no sub-package."""
    parts = module.split(".")[1:]
    rows = SUBLAYERS.get(parts[0], []) if parts else []
    for length in range(len(parts), 1, -1):
        if (name := ".".join(parts[1:length])) in rows:
            return parts[0], rows.index(name)
    return None


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted module) of every import of onnxlab in a file, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and (imported := dynamic_import(node)):
            yield node.lineno, imported


def test_sublayers_name_folders() -> None:
    missing = [
        f"{top}/{row}"
        for top, rows in SUBLAYERS.items()
        for row in rows
        if not (PACKAGE / top / row.replace(".", "/")).is_dir()
    ]
    assert missing == []


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name != "__init__.py"], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_sub_packages_import_from_those_below(path: Path) -> None:
    sublayer = sublayer_of(".".join(("onnxlab", *path.relative_to(PACKAGE).with_suffix("").parts)))
    if sublayer is None:
        assert path.parent.name not in SUBLAYERS or path.parent.parent != PACKAGE, "put it into a sub-package"
        return
    climbs = [
        f"line {line} imports {module}"
        for line, module in imported_modules(path)
        if (other := sublayer_of(module)) is not None and other[0] == sublayer[0] and other[1] > sublayer[1]
    ]
    assert climbs == []


def modules() -> dict[str, Path]:
    """Every module of onnxlab, by its dotted name."""
    names = {".".join(("onnxlab", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in MODULES}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def needs_of(source: str, package: list[str], names: Collection[str]) -> set[str]:
    """Modules of `names` that a module of `package` imports: at its top, in functions, or under TYPE_CHECKING."""
    needs: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            needs.update(alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join(base + (node.module.split(".") if node.module else []))
            inner = [f"{module}.{alias.name}" for alias in node.names]
            needs.update(name if name in names else module for name in inner)
        elif isinstance(node, ast.Call) and (imported := dynamic_import(node)):
            needs.add(imported)
    return needs & set(names)


def circles(needs: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, circle by circle, each in the order of names."""
    graph = nx.DiGraph((name, other) for name, others in needs.items() for other in others)
    looped = {name for name, others in needs.items() if name in others}
    return sorted(sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1 or part & looped)


def test_no_modules_import_each_other() -> None:
    names = modules()
    needs = {
        name: needs_of(path.read_text(encoding="utf-8"), ["onnxlab", *path.relative_to(PACKAGE).parts[:-1]], names)
        for name, path in names.items()
    }
    assert sum(map(len, needs.values())) > 1000
    assert circles(needs) == []


@pytest.mark.parametrize(
    "line",
    [
        "from onnxlab.a import b",
        "from onnxlab import a",
        "import onnxlab.a",
        "from .a import b",
        "def f():\n    from onnxlab.a import b",
        "if TYPE_CHECKING:\n    from onnxlab.a import b",
        "import_module('onnxlab.a')",
    ],
)
def test_a_circle_is_found(line: str) -> None:
    names = ["onnxlab.a", "onnxlab.b", "onnxlab.c"]
    needs = {
        "onnxlab.a": {"onnxlab.b"},
        "onnxlab.b": needs_of(line, ["onnxlab"], names),
        "onnxlab.c": {"onnxlab.a"},
    }
    assert circles(needs) == [["onnxlab.a", "onnxlab.b"]]
