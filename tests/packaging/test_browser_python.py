"""In Python without threads, processes and locks, as in a browser, the tour and the widget do the same as natively."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import onnxlab

JOB = Path(__file__).with_name("browser_job.py")
PACKAGE = Path(onnxlab.__file__).parent
NATIVE = ("cli", "execution/numba")
"""Parts that a browser has not: there are no kernels to compile, and no shell."""
BLOCKED = {"thread_time", "Thread", "Timer", "start_new_thread"}


def run(*command: str) -> Any:
    root = JOB.parents[2]
    done = subprocess.run(
        [sys.executable, *command], cwd=root, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_tour_and_the_widget_without_threads_do_as_natively() -> None:
    assert run("-m", "tests.support.browser_python", str(JOB)) == run(str(JOB), "native")


def names_of_threads(source: str) -> set[str]:
    """Names of what starts threads or tells their time, as far as a module takes it from the standard library."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("threading", "time")
        ):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and node.module in ("threading", "time", "_thread"):
            names.update(alias.name for alias in node.names)
    return names & BLOCKED


@pytest.mark.slow
def test_threads_start_in_one_module() -> None:
    starting = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if not path.relative_to(PACKAGE).as_posix().startswith(NATIVE)
        and names_of_threads(path.read_text(encoding="utf-8")) - annotations(path)
    }
    assert starting == {"threads.py"}


def annotations(path: Path) -> set[str]:
    """Names that only say of what type something is."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {"Thread", "Timer"} - called


def test_what_starts_threads_is_found() -> None:
    assert names_of_threads("import threading\nthreading.Thread(target=f).start()") == {"Thread"}
    assert names_of_threads("from time import thread_time, sleep") == {"thread_time"}
