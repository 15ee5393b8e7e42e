"""`onnxlab mcp`: models as tools for a coding assistant."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from onnxlab.cli.base.answers import STDOUT
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE, UsageError
from onnxlab.cli.base.inputs import open_model

if TYPE_CHECKING:
    from onnxlab.mcp.call import Right
    from onnxlab.model import Model


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    words = "serve models to a coding assistant over standard input and output (Model Context Protocol)"
    mcp = verbs.add("mcp", _mcp, words, ())
    served = "path of a model; default: the models that running kernels serve by onnxlab.serve(model)"
    mcp.add_argument("models", nargs="*", metavar="MODEL", help=served)
    mcp.add_argument("--edit", action="store_true", help="let the assistant edit; undo takes each edit back")
    mcp.add_argument("--save", action="store_true", help="let the assistant save a model to the file that it came from")


def _mcp(options: argparse.Namespace) -> int:
    from onnxlab.mcp.bridge import serve_stdio
    from onnxlab.mcp.client import Local, Served

    if STDOUT in options.models:
        raise UsageError("the assistant talks over standard input: give the path of a model")
    options_given: tuple[Right, ...] = (
        "look", *(("edit",) if options.edit else ()), *(("save",) if options.save else ()),
    )  # fmt: skip
    rights = frozenset(options_given)
    models: dict[str, Model] = {}
    for path in options.models:
        name = Path(path).name
        models[name if name not in models else path] = open_model(options, path)
    serve_stdio(Local(models, rights) if models else Served(rights), rights)
    return DONE
