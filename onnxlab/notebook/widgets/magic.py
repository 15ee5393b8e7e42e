"""`%onnx_show`, its completion, and bare ModelProtos that draw themselves: what `%load_ext onnxlab` adds."""

import fnmatch
import glob
import os
import re
import shlex
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any

from IPython.core.error import UsageError

from onnxlab.errors import OnnxlabError
from onnxlab.formats import registry
from onnxlab.formats.weights.files import KINDS
from onnxlab.model import Model, load
from onnxlab.notebook.widgets.open_views import ViewOptions, open_view

USAGE = "%onnx_show [PATH | VARIABLE | EXPRESSION] [--select GLOB] [--height PIXELS] [--static]"

_models: "weakref.WeakValueDictionary[int, Model]" = weakref.WeakValueDictionary()
_shown_by_cell: dict[str, "weakref.ref[Any]"] = {}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of %onnx_show."""

    target: str = ""
    select: str = ""
    height: int | None = None
    static: bool = False


def load_ipython_extension(shell: Any) -> None:
    """Register the magic, its completion, and the display of onnx.ModelProto in a shell."""

    def onnx_show(line: str) -> Any:
        return _show(shell, line)

    onnx_show.__doc__ = (
        f"{USAGE}\n\nShow a model; the value is the widget. Without a target, the model that comes along."
    )
    shell.register_magic_function(onnx_show, "line", "onnx_show")
    for key in ("%onnx_show", "onnx_show"):
        shell.set_hook("complete_command", complete, str_key=key)
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.for_type_by_name("onnx.onnx_ml_pb2", "ModelProto", _show_proto)


def parse(line: str) -> Arguments:
    """Split a line into target and options.

    Raises:
        UsageError: an option is unknown, or lacks its value.
    """
    target: list[str] = []
    options: dict[str, Any] = {}
    try:
        words = iter(shlex.split(line, posix=False))
    except ValueError as error:
        raise UsageError(f"%onnx_show: {error} in {line!r}") from None
    for word in words:
        name, _, value = word.partition("=")
        if name == "--static":
            options["static"] = True
        elif name in ("--select", "--height"):
            value = value or next(words, "")
            if not value:
                raise UsageError(f"%onnx_show: {name} needs a value; {USAGE}")
            options[name[2:]] = _height(value) if name == "--height" else _unquoted(value)
        elif name.startswith("--"):
            raise UsageError(f"%onnx_show: no option {name}; {USAGE}")
        else:
            target.append(word)
    return Arguments(" ".join(target), **options)


def _height(text: str) -> int:
    if not re.fullmatch(r"\d{3,5}", text) or not 120 <= int(text) <= 10_000:
        raise UsageError(f"%onnx_show: --height is a number of pixels between 120 and 10000, got {text!r}")
    return int(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _show(shell: Any, line: str) -> Any:
    arguments = parse(line)
    try:
        model = resolve(arguments.target, shell.user_ns)
    except OnnxlabError as error:
        raise UsageError(f"%onnx_show: {error}") from None
    selection = matching(model, arguments.select) if arguments.select else None
    view = open_view(
        model, ViewOptions(height=arguments.height, selection=selection), new=True, static=arguments.static
    )
    if arguments.static:
        return view
    _replace(shell, view)
    return view


def resolve(target: str, namespace: dict[str, Any]) -> Model:
    """The model that a variable, a path or an expression stands for; "" for the model that comes with onnxlab.

    Raises:
        LoadError: the file is missing or is no model.
        UsageError: the expression fails, or its value is no model.
    """
    if not target:
        return load()
    path = os.path.expanduser(_unquoted(target))
    if target not in namespace and (os.path.exists(path) or _looks_like_path(target)):
        return load(path)
    try:
        value = eval(target, namespace)
    except Exception as error:
        raise UsageError(
            f"%onnx_show: {target!r} is no file here and no expression ({type(error).__name__}: {error})"
        ) from None
    if isinstance(value, Model):
        return value
    if type(value).__name__ == "ModelProto":
        return _model_of(value)
    if isinstance(value, str | bytes | os.PathLike):
        return load(value)
    raise UsageError(
        f"%onnx_show: {target} is a {type(value).__name__}; it takes a model, a ModelProto, bytes or a path"
    )


@cache
def suffixes() -> tuple[str, ...]:
    """Suffixes of files that can be opened: those of every format and of files of weights, .pb and .pt."""
    known = [suffix for form in registry.formats() for suffix in form.suffixes]
    known += [suffix for kind in KINDS for suffix in kind.suffixes]
    return tuple(dict.fromkeys(filter(None, [*known, ".pb", ".pt"])))


def _looks_like_path(target: str) -> bool:
    return target.endswith(suffixes()) or bool(re.fullmatch(r"[\w.~-]*/[\w./~ -]*", target))


def matching(model: Model, pattern: str) -> list[Any]:
    """Nodes of the main graph whose name, label or operator matches a glob.

    Raises:
        UsageError: no node does.
    """
    nodes = [
        node
        for node in model.nodes
        if any(fnmatch.fnmatchcase(text, pattern) for text in {node.name, node.label, node.op_type})
    ]
    if not nodes:
        raise UsageError(f"%onnx_show: no node's name or operator matches {pattern!r}")
    return nodes


def _model_of(proto: Any) -> Model:
    """The Model of a proto, the same each time the proto is shown; edits change the proto."""
    model = _models.get(id(proto))
    if model is None or model.proto is not proto:
        model = _models[id(proto)] = load(proto)
    return model


def _show_proto(proto: Any) -> None:
    open_view(_model_of(proto))._ipython_display_()


def _replace(shell: Any, view: Any) -> None:
    """Close the view that an earlier run of the same cell showed: its output is gone."""
    parent = getattr(shell, "parent_header", None) or {}
    cell = parent.get("metadata", {}).get("cellId", "")
    if not cell:
        return
    last = _shown_by_cell.get(cell)
    before = last() if last else None
    if before is not None:
        before.close()
    _shown_by_cell[cell] = weakref.ref(view)


def complete(shell: Any, event: Any) -> list[str]:
    """Files that may be models, folders, and variables that hold models, whose names begin with the typed text."""
    typed = event.symbol
    words = event.line.split()
    if words and words[-1].endswith(typed) and not event.line.endswith(" "):
        typed = words[-1]  # a path: IPython's symbol begins after the last slash
    if typed.startswith("-"):
        return [option for option in ("--select", "--height", "--static") if option.startswith(typed)]
    keep = len(typed) - len(event.symbol)
    paths = [path + "/" if os.path.isdir(path) else path for path in glob.glob(glob.escape(typed) + "*")]
    files = sorted(path for path in paths if path.endswith((*suffixes(), "/")))
    held = sorted(name for name, value in shell.user_ns.items() if _is_model(value) and not name.startswith("_"))
    return [text[keep:] for text in [*files, *(name for name in held if name.startswith(typed))]]


def _is_model(value: Any) -> bool:
    return isinstance(value, Model) or type(value).__name__ == "ModelProto"
