"""Contracts of execution: declared abilities are not asked for by name, and caches are of one class."""

import ast
from collections.abc import Iterator
from pathlib import Path

import onnxlab.execution
from onnxlab.execution.base.provider import CompiledPart, Provider
from onnxlab.execution.run.provider_names import named

PACKAGE = Path(onnxlab.execution.__file__).parent
_OF_PYTHON = {"register_at_fork", "geteuid", "nice", "frozen", "dtype", "__array__", "__module__", "func",
              "_real_set_num_threads", "shape"}  # fmt: skip
"""What Python, NumPy or threadpoolctl may have or not have."""


def calls(*names: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of functions of these names in the package, with its file."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                function = node.func
                called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if called in names:
                    yield str(file.relative_to(PACKAGE)), node


def test_members_are_declared_not_asked_for() -> None:
    uses = [
        (file, node.args[1].value)
        for file, node in calls("getattr", "hasattr")
        if len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
    ]
    assert [entry for entry in uses if entry[1] not in _OF_PYTHON] == []


def test_bounded_caches_are_of_one_class() -> None:
    caches = [(file, node.lineno) for file, node in calls("popitem", "OrderedDict") if file != "base/lru.py"]
    assert [entry for entry in caches if entry[0] != "planning/decided_branches.py"] == [], "it empties its cache"


def test_providers_and_their_parts_declare_what_they_can_do() -> None:
    for provider in named(["numba", "onnxruntime", "numpy"]):
        assert isinstance(provider, Provider)
        assert provider.capabilities.trusted
    assert CompiledPart(len).quick is None
