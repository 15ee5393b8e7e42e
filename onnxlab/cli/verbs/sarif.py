"""Problems of a model as SARIF 2.1.0, the format in which code hosts and editors take what checkers find."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onnxlab.errors import Diagnostic
from onnxlab.printable import printable

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def log(problems: Iterable[tuple[Diagnostic, str]], path: Path | None) -> dict[str, Any]:
    """A log with one run.

    Args:
        problems: each with the label of its node, "" where it has none.
        path: file of the model; None is written as "model.onnx".
    """
    import onnxlab

    problems = list(problems)
    codes = sorted({problem.code for problem, _ in problems})
    driver = {
        "name": "onnxlab",
        "version": onnxlab.__version__,
        "rules": [{"id": code, "name": _pascal(code), "shortDescription": {"text": code}} for code in codes],
    }
    results = [_result(problem, node, codes.index(problem.code), path) for problem, node in problems]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(problem: Diagnostic, node: str, rule: int, path: Path | None) -> dict[str, Any]:
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}}}
    if node:
        place["logicalLocations"] = [{"name": printable(node), "kind": "element"}]
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": _LEVELS[problem.severity],
        "message": {"text": str(problem).partition(": ")[2]},
        "locations": [place],
    }


def _uri(path: Path | None) -> str:
    """The path as a URI, from the working folder where the file is in it: so a code host finds it."""
    from urllib.parse import quote

    if path is None:
        return "model.onnx"
    try:
        return quote(path.relative_to(Path.cwd()).as_posix())
    except (ValueError, OSError):
        return path.as_uri()


def _pascal(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("-"))
