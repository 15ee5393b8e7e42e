"""`onnxlab check`: what is wrong with a model, in lines, JSON or SARIF."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.cli.base.answers import STDOUT, answer, json_text
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE
from onnxlab.cli.base.inputs import open_model
from onnxlab.cli.base.outputs import write
from onnxlab.errors import LoadError
from onnxlab.printable import printable_lines

if TYPE_CHECKING:
    from onnxlab.errors import Diagnostic
    from onnxlab.model import Model


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    check = verbs.add("check", _check, "list what is wrong with the model; exit code 1 if there are errors")
    words = "a required_operators.config: nodes that are not in that build of ONNX Runtime are errors"
    check.add_argument("--build", metavar="CONFIG", help=words)
    words = "write the problems as SARIF 2.1.0, which code hosts and editors show; - for standard output"
    check.add_argument("--sarif", metavar="FILE", dest="output", help=words)


def _check(options: argparse.Namespace) -> int:
    from onnxlab.formats import kinds, output

    model = open_model(options)
    if options.output and options.output != STDOUT:
        output.check(options.output, kinds.SARIF, [model.path])  # before anything is checked
    diagnostics = [*model.check(), *(_not_in_build(model, options.build) if options.build else ())]
    errors = sum(item.severity == "error" for item in diagnostics)

    def rows() -> dict[str, Any]:
        names = ("severity", "code", "message", "expected", "found", "hint")
        problems = [
            {**{name: getattr(item, name) for name in names}, "node": label(model, item.node)} for item in diagnostics
        ]
        return {"errors": errors, "problems": problems}

    def words() -> str:
        lines = [f"{label(model, item.node) or model.name}: {item}" for item in diagnostics]
        return printable_lines([*lines, f"{errors} error{'' if errors == 1 else 's'}"])

    if options.output:
        from onnxlab.cli.verbs.sarif import log

        places = [(item, label(model, item.node)) for item in diagnostics]
        text = json_text(log(places, model.path))
        write(options.output, text.encode(), kinds.SARIF, [model.path])
    answer(options, rows, words)
    return DIFFERENT if errors else DONE


def _not_in_build(model: "Model", path: str) -> "list[Diagnostic]":
    """A problem for each operator of a model that a build of ONNX Runtime does not have."""
    from onnxlab.errors import Diagnostic
    from onnxlab.formats.ort import required_operators

    try:
        build = required_operators.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot read the operators in {path!r}: {error}") from error
    return [
        Diagnostic(
            "error", "not-in-build", f"{name} of version {since} of {domain or 'ai.onnx'} is not in that build",
            hint="add it to the list, and build ONNX Runtime anew",
        )
        for domain, since, name in model.files.required_operators().missing(build)
    ]  # fmt: skip


def label(model: "Model", node: int) -> str:
    """The label of a node, "" where there is none."""
    return model.graph.label(model.graph.nodes[node]) if node in model.graph.nodes else ""
