"""The command line: `onnxlab VERB model.onnx`, `onnxlab diff a.onnx b.onnx` and `onnxlab warm`.

Exit codes:

    0    done; for `check`: no errors found
    1    `check` found errors, `diff`, `compare` or `hunt` something, `evaluate` too large an error, --strict of a
         rewrite what was taken back
    2    the command line is wrong
    3    the model, or a file of inputs, cannot be read
    4    the run failed
    5    something cannot be written or started
    130  interrupted

An error is one line on stderr. With --json the answer is one JSON object on stdout; NaN and infinities are
the words "nan", "inf" and "-inf" in it. Nothing heavy is imported before a command is known.
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from onnxlab import cli_comparing, cli_datasets, cli_measuring, cli_rewriting, cli_values
from onnxlab.cli_values import answer
from onnxlab.errors import EditError, LoadError, NameLookupError, OnnxlabError, RunError, SaveError, SaveWarning
from onnxlab.printable import printable, printable_lines

if TYPE_CHECKING:
    from onnxlab.errors import Diagnostic
    from onnxlab.model import Model

FOUND, USAGE, UNREADABLE, FAILED, UNWRITABLE, INTERRUPTED = 1, 2, 3, 4, 5, 130

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (LoadError, UNREADABLE),
    (RunError, FAILED),
    (SaveError, UNWRITABLE),
    (NameLookupError, USAGE),
    (EditError, USAGE),
    (OnnxlabError, UNREADABLE),
    (OSError, UNWRITABLE),
    (KeyboardInterrupt, INTERRUPTED),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with warnings.catch_warnings():
            warnings.showwarning = cast(Any, _warned)
            return command(options)
    except tuple(kind for kind, _ in _CODES) as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        _complain("interrupted" if code == INTERRUPTED else str(error))
        return code


def _complain(message: str) -> None:
    print(f"onnxlab: {printable(' '.join(message.split()))}", file=sys.stderr)


def _warned(message: Warning | str, *_: object, **_named: object) -> None:
    """Print a warning as one line, without the line of code that gave it."""
    _complain(f"warning: {message}")


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = argparse.ArgumentParser(
        prog="onnxlab",
        description="Look at, check, draw and run ONNX models.",
        epilog="Exit codes: 0 done, 1 check found errors, diff or compare a difference, 2 usage, 3 unreadable model or "
        "inputs, 4 run failed, 5 cannot write or start, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=_version())
    verbs = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    show = _verb(verbs, "show", _show, "open the model in JupyterLab, on a scratch notebook")
    show.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    show.add_argument("--port", type=int, help="port of the server")

    for name, command, words in (
        ("info", _info, "say what is in the model"),
        ("check", _check, "list what is wrong with the model; exit code 1 if there are errors"),
    ):
        verb = _verb(verbs, name, command, words)
        verb.add_argument("--json", action="store_true", help="answer in JSON")
        if name == "info":
            words = "print the operators that it needs, as a required_operators.config of ONNX Runtime"
            verb.add_argument("--operators", action="store_true", help=words)
        else:
            words = "a required_operators.config: nodes that are not in that build of ONNX Runtime are errors"
            verb.add_argument("--build", metavar="CONFIG", help=words)

    svg = _verb(verbs, "svg", _svg, "draw the model as SVG, PNG or a page to explore")
    words = "file to write, .svg, .png or .html by its name; default: SVG on standard output"
    svg.add_argument("-o", "--output", metavar="FILE", help=words)
    svg.add_argument("--boxes", type=int, default=120, help="fold groups until at most this many boxes show (120)")

    run = _verb(verbs, "run", _run, "run the model and summarize what it returns")
    run.add_argument("feeds", nargs="*", metavar="FEED", help="name=array.npy, or an .npz; the rest is random")
    run.add_argument("--outputs", metavar="NAMES", help="comma-separated values to compute; default: the outputs")
    run.add_argument("--seed", type=int, default=0, help="of the random inputs (0)")
    run.add_argument("--save", metavar="FILE.npz", help="write the arrays")
    run.add_argument("--json", action="store_true", help="answer in JSON")

    _add_convert(verbs)
    cli_rewriting.add(verbs, _verb)
    cli_comparing.add(verbs, answer)
    cli_measuring.add(verbs, _verb, answer)
    cli_datasets.add(verbs, answer)

    words = "compile the kernels of the numba provider, once per machine, so that no run waits for them"
    warm = verbs.add_parser("warm", help=words, description=words.capitalize() + ".")
    warm.set_defaults(command=_warm)
    return top


def _add_convert(verbs: Any) -> None:
    convert = _verb(verbs, "convert", _convert, "write the model in another format")
    words = "file to write, in the format of its suffix; none: only say what is lost"
    convert.add_argument("output", nargs="?", help=words)
    convert.add_argument("--format", help="name of the format to write, whatever the suffix of the file")
    words = "let torch convert a .pt2 or TorchScript file, which runs code that is in it"
    convert.add_argument("--trust", action="store_true", help=words)
    words = "type of an argument of a TorchScript file, such as 'float32[N,3,224,224]'; once for each"
    convert.add_argument("--input", action="append", default=[], metavar="TYPE", help=words)
    convert.add_argument("--json", action="store_true", help="answer in JSON")


def _verb(verbs: Any, name: str, command: Callable[[argparse.Namespace], int], words: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words.capitalize() + ".")
    verb.add_argument("model", help="path of the model")
    verb.set_defaults(command=command)
    return verb


def _version() -> str:
    import onnxlab

    return f"onnxlab {onnxlab.__version__}"


def _load(options: argparse.Namespace) -> "Model":
    from onnxlab.model import load

    return load(options.model, trust=getattr(options, "trust", False), inputs=getattr(options, "input", ()))


def _warm(options: argparse.Namespace) -> int:
    from onnxlab.execution.numba.machine import object_cache
    from onnxlab.execution.numba.plan import engine

    engine.load(lambda name: print(f"compiling {name}", file=sys.stderr))
    print(object_cache.folder())
    return 0


# -- info and check ------------------------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> int:
    from onnxlab.render import text

    model = _load(options)
    if options.operators:
        needed = model.files.required_operators()
        rows = [{"domain": domain, "version": since, "operator": name} for domain, since, name in needed.operators]
        answer(options, lambda: {"operators": rows}, lambda: str(needed))
        return 0
    answer(options, lambda: facts(model), lambda: text.summary(model))
    return 0


def facts(model: "Model") -> dict[str, Any]:
    """The facts that `info --json` prints."""
    from collections import Counter

    from onnxlab.render import text

    count, nbytes = text.parameters(model)
    proto, graph = model.proto, model.graph
    return {
        "path": str(model.path) if model.path else None,
        "ir_version": proto.ir_version,
        "producer": " ".join(filter(None, (proto.producer_name, proto.producer_version))),
        "opsets": {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import},
        "nodes": len(graph.main.node_ids),
        "nodes_inside": len(graph.nodes) - len(graph.main.node_ids),
        "functions": len(proto.functions),
        "parameters": count,
        "parameter_bytes": nbytes,
        "inputs": [{"name": value.name, "type": str(model.fact(value.id))} for value in model.inputs],
        "outputs": [{"name": value.name, "type": str(model.fact(value.id))} for value in model.outputs],
        "operators": dict(Counter(node.op_type for node in model.nodes).most_common()),
        "metadata": {entry.key: entry.value for entry in proto.metadata_props},
    }


def _check(options: argparse.Namespace) -> int:
    model = _load(options)
    diagnostics = [*model.check(), *(_not_in_build(model, options.build) if options.build else ())]
    errors = sum(item.severity == "error" for item in diagnostics)

    def rows() -> dict[str, Any]:
        names = ("severity", "code", "message", "expected", "found", "hint")
        problems = [
            {**{name: getattr(item, name) for name in names}, "node": _label(model, item.node)} for item in diagnostics
        ]
        return {"errors": errors, "problems": problems}

    def words() -> str:
        lines = [f"{_label(model, item.node) or model.name}: {item}" for item in diagnostics]
        return printable_lines([*lines, f"{errors} error{'' if errors == 1 else 's'}"])

    answer(options, rows, words)
    return FOUND if errors else 0


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


def _label(model: "Model", node: int) -> str:
    return model.graph.label(model.graph.nodes[node]) if node in model.graph.nodes else ""


# -- convert -------------------------------------------------------------------------------------------------


def _convert(options: argparse.Namespace) -> int:
    from onnxlab.formats import registry

    format_name = options.format or os.path.splitext(options.output or "")[1]
    try:
        form = registry.by_name(format_name)
    except LookupError as error:
        raise SaveError(f"cannot convert {options.model}: {error.args[0]}; name one with --format") from None
    model = _load(options)
    report = model.files.loss_report(form.name)
    if options.output and not report.refused:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SaveWarning)  # which says in one line what the report lists
            model.save(options.output, format=form.name)
    losses = [{name: getattr(loss, name) for name in ("what", "where", "why", "refused")} for loss in report]
    answer(options, lambda: {"format": form.name, "losses": losses}, lambda: str(report))
    return UNWRITABLE if report.refused else 0


# -- svg -----------------------------------------------------------------------------------------------------


def _svg(options: argparse.Namespace) -> int:
    from onnxlab.formats import kinds, output

    suffix = os.path.splitext(options.output or "")[1].lower()
    kind = next((kind for kind in (kinds.SVG, kinds.PNG, kinds.PAGE) if suffix in kind.suffixes), None)
    if options.output and kind is None:
        raise SaveError(f"cannot write {options.output!r}: give a name that ends in .svg, .png or .html")
    model, boxes = _load(options), max(1, options.boxes)
    if kind is None:
        print(model.to_svg(None, boxes))
        return 0
    output.check(options.output, kind, [model.path])  # before anything is drawn
    if kind is kinds.PAGE:
        model.to_html(options.output)
    elif kind is kinds.PNG:
        model.to_png(options.output, boxes)
    else:
        model.to_svg(options.output, boxes)
    return 0


# -- run -----------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    import numpy as np

    from onnxlab.analysis.statistics import statistics
    from onnxlab.formats import kinds, output

    model = _load(options)
    inputs = [model.path, *(Path(word.rpartition("=")[2]) for word in options.feeds)]
    if options.save:
        output.check(options.save, kinds.ARRAYS, inputs)  # before anything is run
    names = options.outputs.split(",") if options.outputs else None
    feeds = model.sample_inputs(cli_values.feeds_of(options.feeds), seed=options.seed)
    arrays = model.run(feeds, names, seed=options.seed)
    if options.save:
        saved = {name: np.asarray(array) for name, array in arrays.items()}
        output.write(options.save, lambda file: np.savez(file, **saved), kinds.ARRAYS, inputs)  # type: ignore[arg-type]
    summaries = {name: statistics(array) for name, array in arrays.items()}
    answer(
        options,
        lambda: {"outputs": {name: cli_values.row(item) for name, item in summaries.items()}},
        lambda: printable_lines(cli_values.line(name, item) for name, item in summaries.items()),
    )
    return 0


# -- show ----------------------------------------------------------------------------------------------------


def _show(options: argparse.Namespace) -> int:
    import importlib.util
    import subprocess
    import tempfile

    if importlib.util.find_spec("jupyterlab") is None:
        raise SaveError("`onnxlab show` needs JupyterLab: pip install 'onnxlab[lab]'")
    _load(options)  # a bad path is said here, in one line, not in a cell
    notebook = Path(tempfile.mkdtemp(prefix="onnxlab-")) / "scratch.ipynb"
    notebook.write_text(json.dumps(scratch(Path(options.model).resolve())), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlab", str(notebook)]
    if options.no_browser:
        command.append("--no-browser")
    if options.port is not None:
        command.append(f"--port={options.port}")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--allow-root")
    return subprocess.run(command, check=False).returncode and UNWRITABLE


def scratch(path: Path) -> dict[str, Any]:
    """A notebook that shows the model at `path`, as JSON."""
    cells = [f"import onnxlab\n\nmodel = onnxlab.load({str(path)!r})\nmodel"]
    return {
        "cells": [
            {"cell_type": "code", "execution_count": None, "id": f"cell{number}", "metadata": {}, "outputs": [],
             "source": cell}
            for number, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
