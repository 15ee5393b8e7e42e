"""`onnxlab extract` and `edit`: a part of a model, and a model that is changed by options, statements or a script."""

import argparse
import contextlib
import copy
import re
import runpy
import sys
from typing import TYPE_CHECKING, Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE, UsageError, usage_errors
from onnxlab.cli.base.inputs import names_of, open_model, whole
from onnxlab.cli.base.outputs import check_model, save_model
from onnxlab.errors import EditError, OnnxlabError
from onnxlab.printable import printable_lines

if TYPE_CHECKING:
    from onnxlab.model import Model

_DIM = re.compile(r"(?P<value>.+)\[(?P<axis>-?\d{1,20})\]=(?P<size>.+)", re.DOTALL)


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    extract = verbs.add("extract", _extract, "make a model of a part of the model")
    words = "comma-separated values that the part computes"
    extract.add_argument("--outputs", metavar="NAMES", required=True, help=words)
    words = "comma-separated values that become inputs of the part; other graph inputs that it needs come along"
    extract.add_argument("--inputs", metavar="NAMES", help=words)
    entries.output(extract, "file to write, or - for standard output; none: only say what the part would be")

    edit = verbs.add("edit", _edit, "change the model, as one step, and say what that changes")
    words = "a .py file that changes `model`, or has a function `replay(model)`, as the history writes it; it is run"
    entries.trailing(edit, "script", words, "?", "SCRIPT.py")
    words = "a statement of Python on `model`, as \"model.nodes['conv'].name = 'stem'\"; it is run"
    edit.add_argument("-e", "--do", action="append", default=[], metavar="STATEMENT", help=words)
    words = "another size of a dim of an input or output: a number, a name for any size, or ?"
    edit.add_argument("--dim", action="append", default=[], metavar="VALUE[AXIS]=SIZE", help=words)
    words = "remove a node, and connect its readers to its input"
    edit.add_argument("--remove", action="append", default=[], metavar="NODE", help=words)
    words = "another name of a value"
    edit.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help=words)
    edit.add_argument("--opset", type=whole, metavar="N", help="convert to this version of ai.onnx")
    entries.output(edit, "file to write, or - for standard output; none: only say what would change")


def _extract(options: argparse.Namespace) -> int:
    from onnxlab.cli.verbs.info_shapes_text import facts
    from onnxlab.render import text

    model = open_model(options)
    check_model(options.output, [model.path])
    part = model.extract(names_of(options.outputs) or (), names_of(options.inputs) or ())
    if options.output:
        save_model(part, options.output, [model.path])
    answer(options, lambda: facts(part), lambda: text.summary(part))
    return DONE


def _edit(options: argparse.Namespace) -> int:
    from onnxlab.model import diff

    model = open_model(options)
    check_model(options.output, [model.path])
    before = copy.copy(model)
    with model.edit("edit"):
        _apply(options, model)
    difference = diff(before, model)
    problems = [str(problem) for problem in model.diagnostics if problem.severity == "error"]
    if options.output:
        save_model(model, options.output, [model.path])
    else:
        model.undo()  # so that no edit waits to be recovered
    answer(
        options,
        lambda: {"diff": difference.as_dict(), "problems": problems},
        lambda: printable_lines([*str(difference).split("\n"), *problems]),
    )
    return DONE


def _apply(options: argparse.Namespace, model: "Model") -> None:
    """Make the changes that the options name, those by name before those by code."""
    for word in options.dim:
        _set_dim(model, word)
    for word in options.rename:
        old, separator, new = word.partition("=")
        if not (separator and old and new):
            raise UsageError(f"{word!r} renames nothing: write old=new")
        model.value(old).name = new
    for name in options.remove:
        model.nodes[name].remove(bypass=True)
    if options.opset is not None:
        model.convert_opset(options.opset)
    for number, statement in enumerate(options.do, 1):
        _run(f"statement {number}", lambda statement=statement: exec(compile(statement, "-e", "exec"), _names(model)))
    if options.script:
        _run(options.script, lambda: _replay(options.script, model))


def _set_dim(model: "Model", word: str) -> None:
    parts = _DIM.fullmatch(word)
    if parts is None:
        raise UsageError(f"{word!r} is no dim: write value[axis]=size, as in image[0]=batch")
    size = parts["size"]
    with usage_errors():  # of numbers with thousands of digits
        dim = None if size == "?" else int(size) if size.removeprefix("-").isdecimal() else size
    model.value(parts["value"]).set_dim(int(parts["axis"]), dim)


def _replay(path: str, model: "Model") -> None:
    replay = runpy.run_path(path, init_globals=_names(model), run_name="edit").get("replay")
    if callable(replay):
        replay(model)


def _names(model: "Model") -> dict[str, Any]:
    import numpy as np
    import onnx

    import onnxlab

    return {"model": model, "np": np, "onnx": onnx, "onnxlab": onnxlab}


def _run(name: str, code: Any) -> None:
    """Run code of the user; its exceptions are reported as errors of the code, and what it prints is no answer.

    Raises:
        EditError: the code failed.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            code()
    except OnnxlabError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error
    except (Exception, SystemExit) as error:
        raise EditError(f"{name} failed: {type(error).__name__}: {error}; nothing was changed") from error
