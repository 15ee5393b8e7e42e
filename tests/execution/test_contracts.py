"""Contracts of execution: declared abilities are not asked for by name, and caches are of one class."""

import ast
from collections.abc import Iterator
from pathlib import Path

import onnxlab.execution
from onnxlab.execution.base.provider import CompiledPart, Provider
from onnxlab.execution.run.fast_path import RunKey
from onnxlab.execution.run.provider_names import named
from tests.support.statements import by_file

PACKAGE = Path(onnxlab.execution.__file__).parent
_OF_PYTHON = {"register_at_fork", "geteuid", "nice", "frozen", "dtype", "__array__", "__module__", "func",
              "_real_set_num_threads", "shape"}  # fmt: skip
"""What Python, NumPy or threadpoolctl may have or not have."""
STATEMENTS = 9_770
"""Of execution without kernels and rules; to be lowered with each part that goes."""


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


def loops_over_instructions() -> Iterator[str]:
    """The functions with a loop over rows of instructions that calls what a row has."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                for loop in (node for node in ast.walk(function) if isinstance(node, ast.For)):
                    fields = {name.id for name in ast.walk(loop.target) if isinstance(name, ast.Name)}
                    called = {call.func.id for call in ast.walk(loop)
                              if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}  # fmt: skip
                    if {"take", "call"} <= fields & called:
                        yield f"{file.relative_to(PACKAGE)}:{function.name}"


def test_one_loop_runs_instructions() -> None:
    assert [*loops_over_instructions()] == ["program/executor.py:execute"]


def test_one_runner_has_one_store_and_one_mechanism_makes_things_in_the_background() -> None:
    assert [file for file, _ in calls("ValueStore")] == ["run/runner.py"]
    assert [file for file, _ in calls("Runner")] == []
    assert [file for file, call in calls("do") if isinstance(call.func, ast.Attribute)] == ["base/tier.py"]


def test_one_function_says_what_an_edit_leaves_valid() -> None:
    askers = [file for file, call in calls("difference") if isinstance(call.func, ast.Name)]
    assert askers == ["planning/cached_partition.py", "planning/programs.py"], "of partitions with programs, of names"


def test_runs_are_told_apart_by_one_key() -> None:
    assert {file for file, _ in calls("run_key")} == {"run/runner.py"}
    assert RunKey._fields == ("version", "signature", "outputs"), "providers and threads have programs each"


def test_execution_grows_no_further() -> None:
    counts = by_file()
    assert sum(counts.values()) <= STATEMENTS, "python -m tests.support.statements prints where"
