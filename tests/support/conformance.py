"""onnx's own tests of inference, run with onnxlab's functions in the place of onnx's.

    python -m tests.support.conformance CHECKOUT        # a checkout of github.com/onnx/onnx, of the installed version

Runs the files below from the checkout's tests/python twice: with onnx's functions, then with ours. What onnx passes,
we must pass, except for the tests that `conformance.txt` lists with the reason: ours knows more than the test expects,
or the test expects what no run gives.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx.shape_inference
import pytest

import onnxlab

FILES = (
    "shape_inference_test.py",
    "model_inference_test.py",
    "symbolic_shape_test.py",
    "data_propagation_test.py",
    "inference_function_test.py",
    "node_shape_inference_test.py",
    "function_inference_test.py",
)
REPLACED = ("infer_shapes", "infer_node_outputs", "infer_function_output_types")


class Outcomes:
    """A pytest plugin: the outcome of each test, and which tests called one of the replaced functions."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.reached: set[str] = set()
        self._current = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._current = nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.of[report.nodeid.rsplit("/", 1)[-1]] = report.outcome

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.reached.add(self._current)
            return function(*arguments, **options)

        return call


def run(folder: Path, ours: bool) -> Outcomes:
    """Run the files of a folder, with our functions or with onnx's."""
    outcomes = Outcomes()
    theirs = {name: getattr(onnx.shape_inference, name) for name in REPLACED}
    try:
        for name in REPLACED:
            function = getattr(onnxlab, name) if ours else theirs[name]
            setattr(onnx.shape_inference, name, outcomes.counted(function))
        for name in FILES:  # which may have imported the functions of the run before
            sys.modules.pop(Path(name).stem, None)
        files = [str(folder / name) for name in FILES if (folder / name).exists()]
        pytest.main(["-q", "--tb=no", "--no-summary", "-p", "no:cacheprovider", "-c", "/dev/null", *files], [outcomes])
    finally:
        for name, function in theirs.items():
            setattr(onnx.shape_inference, name, function)
    return outcomes


def exceptions() -> Iterator[tuple[str, str]]:
    """(test, reason) of each line "file::class::test: reason" of the list."""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line and not line.startswith("#"):
            test, reason = line.split(": ", 1)
            yield test, reason


def unexplained(checkout: str) -> tuple[int, int]:
    """(tests that onnx passes and we fail for no reason on the list, tests that onnx passes)."""
    folder = Path(checkout) / "tests" / "python"
    theirs, ours = run(folder, False), run(folder, True)
    passed = {test for test, outcome in theirs.of.items() if outcome == "passed"}
    failed = {test for test in passed if ours.of.get(test) != "passed"}
    return len(failed - {test for test, _ in exceptions()}), len(passed)


def main(checkout: str) -> int:
    """Print how many tests pass with onnx and with onnxlab; 1 where one fails that the list does not explain."""
    folder = Path(checkout) / "tests" / "python"
    if not (folder / FILES[0]).exists():
        print(f"{folder} has no {FILES[0]}: give the folder of a checkout of github.com/onnx/onnx", file=sys.stderr)
        return 2
    theirs, ours = run(folder, False), run(folder, True)
    listed = dict(exceptions())
    passed = {test for test, outcome in theirs.of.items() if outcome == "passed"}
    failed = {test for test in passed if ours.of.get(test) != "passed"}
    print(f"\nonnx:    {dict(Counter(theirs.of.values()))}")
    print(f"onnxlab: {dict(Counter(ours.of.values()))}, {len(ours.reached)} of them call it")
    for test in sorted(failed & set(listed)):
        print(f"differs: {test}: {listed[test]}")
    for test in sorted(failed - set(listed)):
        print(f"FAILS:   {test}")
    for test in sorted(set(listed) - failed):
        print(f"PASSES:  {test}: take it off the list")
    return int(failed != set(listed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else main(""))
