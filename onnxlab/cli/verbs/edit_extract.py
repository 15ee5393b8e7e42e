"""`onnxlab extract`, `insert` and `edit`: a part of a model, two models put together, and a model that is changed.

Changes are options, statements or a script. Without -o, `insert` and `edit` only say what would change.
"""

import argparse
import contextlib
import copy
import re
import runpy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE, UsageError, usage_errors
from onnxlab.cli.base.inputs import names_of, open_model, refuse_two_pipes, whole
from onnxlab.cli.base.outputs import check_model, outcome, save_model
from onnxlab.errors import EditError, OnnxlabError
from onnxlab.printable import printable_lines

if TYPE_CHECKING:
    from pathlib import Path

    from onnxlab.model import Model

_EQUALS = re.compile(r"(?<!\\)=")
_DIM = re.compile(r"(?P<value>.+)\[(?P<axis>-?\d{1,20})\]=(?P<size>.+)", re.DOTALL)


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    extract = verbs.add("extract", _extract, "make a model of a part of the model")
    words = "comma-separated values that the part computes"
    extract.add_argument("--outputs", metavar="NAMES", required=True, help=words)
    words = "comma-separated values that become inputs of the part; other graph inputs that it needs come along"
    extract.add_argument("--inputs", metavar="NAMES", help=words)
    entries.output(extract, "file to write, or - for standard output; none: only say what the part would be")

    words = "put another model into the model, as one step, and say what that changes"
    insert = verbs.add("insert", _insert, words, ("model", "other"))
    words = "an input of the other model, and the value of the first one that it reads; those left out become inputs"
    insert.add_argument("--connect", action="append", default=[], metavar="INPUT=VALUE", help=words)
    words = "a value of the first model, and the output of the other one that its readers read instead"
    insert.add_argument("--feed", action="append", default=[], metavar="VALUE=OUTPUT", help=words)
    insert.add_argument("--prefix", default="", metavar="TEXT", help="text before all names of the other model")
    words = "comma-separated outputs of the other model that become outputs (all that feed nothing)"
    insert.add_argument("--outputs", metavar="NAMES", help=words)
    entries.output(insert, "file to write, or - for standard output; none: only say what would change")

    edit = verbs.add("edit", _edit, "change the model, as one step, and say what that changes")
    words = "a .py file that changes `model`, or has a function `replay(model)`, as the history writes it; it is run"
    entries.trailing(edit, "script", words, "?", "SCRIPT.py")
    words = "a statement of Python on `model`, as \"model.nodes['conv'].name = 'stem'\"; it is run"
    edit.add_argument("-e", "--do", action="append", default=[], metavar="STATEMENT", help=words)
    words = "another size of a dim of an input or output: a number, a name for any size, or ?"
    edit.add_argument("--dim", action="append", default=[], metavar="VALUE[AXIS]=SIZE", help=words)
    words = "remove a node, and connect its readers to its input"
    edit.add_argument("--remove", action="append", default=[], metavar="NODE", help=words)
    words = r"another name of a value; \= is a = in the old one"
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
    answer(options, lambda: facts(part), lambda: f"{text.summary(part)}\n{outcome(options.output)}")
    return DONE


def _insert(options: argparse.Namespace) -> int:
    refuse_two_pipes(options.model, options.other)
    other = open_model(options, options.other)
    names = names_of(options.outputs)
    connect = dict(_pair(word, "input=value") for word in options.connect)
    feed: dict[Any, str] = dict(_pair(word, "value=output") for word in options.feed)

    def insert(model: "Model") -> None:
        model.insert(other, connect, options.prefix, True if names is None else names, feed)

    return _changed(options, insert, other.path)


def _pair(word: str, form: str) -> tuple[str, str]:
    r"""The two names of an option; `\=` is a = in the first one."""
    names = [name.replace("\\=", "=") for name in _EQUALS.split(word, maxsplit=1)]
    if len(names) < 2 or not all(names):
        raise UsageError(rf"{word!r} names no two: write {form}, and \= for a = in the first name")
    return names[0], names[1]


def _edit(options: argparse.Namespace) -> int:
    return _changed(options, lambda model: _apply(options, model))


def _changed(options: argparse.Namespace, change: Callable[["Model"], None], *read: "Path | None") -> int:
    """Change the model, save it, and say what that changes; `read` are further files that stay as they are."""
    from onnxlab.model import diff

    model = open_model(options)
    check_model(options.output, [model.path, *read])
    before = copy.copy(model)
    with model.edit(options.verb):
        change(model)
    difference = diff(before, model)
    problems = [str(problem) for problem in model.diagnostics if problem.severity == "error"]
    if options.output:
        save_model(model, options.output, [model.path, *read])
    else:
        model.undo()  # so that no edit waits to be recovered
    answer(
        options,
        lambda: {"diff": difference.as_dict(), "problems": problems},
        lambda: printable_lines([*str(difference).split("\n"), *problems, outcome(options.output)]),
    )
    return DONE


def _apply(options: argparse.Namespace, model: "Model") -> None:
    """Make the changes that the options name, those by name before those by code."""
    for word in options.dim:
        _set_dim(model, word)
    for word in options.rename:
        old, new = _pair(word, "old=new")
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
