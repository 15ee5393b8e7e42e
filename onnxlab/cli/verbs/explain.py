"""`onnxlab explain`: an error message of another tool, or why a value of a model has its shape."""

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import STDOUT, answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE, UsageError
from onnxlab.cli.base.inputs import open_model
from onnxlab.errors import LoadError
from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.model import Model

_SHOWN = 5
"""Problems of the model that are told where the message is not known."""

_AXIS = re.compile(r"(.+)\[(-?\d{1,20})\]", re.DOTALL)


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    words = "explain an error message of onnx, onnxruntime or torch; or why a value of a model has its shape"
    explain = verbs.add("explain", _explain, words, models=())
    explain.add_argument("text", help="the message in quotes, - to read it from standard input, or a model")
    words = "after a message: the model that it came from; after a model: a value, as image or image[0]"
    entries.trailing(explain, "subject", words, "?", "MODEL|VALUE")
    explain.epilog = "Exit code 1 where no message is known in the text."


def _explain(options: argparse.Namespace) -> int:
    if options.text != STDOUT and os.path.isfile(options.text):
        return _value(options)
    from onnxlab.model import explain_error

    text = sys.stdin.buffer.read().decode(errors="replace") if options.text == STDOUT else options.text
    if not text.strip():
        raise UsageError("there is no message: give it in quotes, or - and pipe it in")
    if options.text != STDOUT and text.endswith((".onnx", ".ort")) and " " not in text:
        raise LoadError(f"cannot load {text}: there is no such file")
    model = open_model(options, options.subject) if options.subject else None
    explanations = explain_error(text, model)
    problems = [] if model is None or explanations else _problems(model, text)
    unknown = ["no message in this text is known; docs/errors.md has them all"]
    unknown += [f"  in the model: {problem}" for problem in problems]
    answer(
        options,
        lambda: {"messages": [explanation.as_dict() for explanation in explanations], "model": problems},
        lambda: "\n\n".join(map(str, explanations)) or "\n".join(unknown),
    )
    return DONE if explanations else DIFFERENT


def _problems(model: "Model", text: str) -> list[str]:
    """The errors of the model itself, those of nodes that the text names first."""
    names = {node.id: node.name for node in model.graph.nodes.values()}
    errors = [problem for problem in model.check() if problem.severity == "error"]
    errors.sort(key=lambda problem: names.get(problem.node or 0, "\0") not in text)
    return [printable(str(error)) for error in errors[:_SHOWN]]


def _value(options: argparse.Namespace) -> int:
    """Say why a value has its shape."""
    if options.subject is None:
        raise UsageError(f"name a value of {options.text}, as image or image[0]: `onnxlab shapes` lists them")
    model = open_model(options, options.text)
    name, axis = options.subject, None
    match = _AXIS.fullmatch(name)
    if match is not None and name not in model.graph.main.names:
        name, axis = match[1], int(match[2])
    explanation = str(model.explain(name, axis))
    answer(options, lambda: {"value": name, "lines": explanation.split("\n")}, lambda: explanation)
    return DONE
