"""`onnxlab explain`: an error message of another tool, or why a value of a model has its shape."""

import argparse
import os
import re
import sys

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import STDOUT, answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE, UsageError
from onnxlab.cli.base.inputs import open_model
from onnxlab.errors import LoadError

_AXIS = re.compile(r"(.+)\[(-?\d+)\]", re.DOTALL)


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

    text = sys.stdin.read() if options.text == STDOUT else options.text
    if not text.strip():
        raise UsageError("there is no message: give it in quotes, or - and pipe it in")
    if options.text != STDOUT and text.endswith((".onnx", ".ort")) and " " not in text:
        raise LoadError(f"cannot load {text}: there is no such file")
    model = open_model(options, options.subject) if options.subject else None
    explanations = explain_error(text, model)
    answer(
        options,
        lambda: {"messages": [explanation.as_dict() for explanation in explanations]},
        lambda: "\n\n".join(map(str, explanations)) or "no message in this text is known; docs/errors.md has them all",
    )
    return DONE if explanations else DIFFERENT


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
