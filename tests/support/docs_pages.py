"""Pages of the site that are made from the code: operators and the command line.

python -m tests.support.docs_pages     # writes docs/operators.md, cli.md and errors.md
"""

import argparse
import importlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

from onnxlab import cli, ops, schemas
from onnxlab.analysis.messages.message import FALLBACK
from onnxlab.analysis.messages.table import TABLE
from onnxlab.cli.base.exits import MEANINGS
from onnxlab.execution.numba.rules import loading

ROOT = Path(__file__).resolve().parents[2]
RULES = "onnxlab.execution.numba.rules.registry"
GRADIENTS = "onnxlab.ops.base.derivatives"


def operators() -> str:
    """The support table: kernel, shape rule, compiled rule and gradient of every operator."""
    loading.load()
    compiled = set(importlib.import_module(RULES).RULES)
    gradients = set(importlib.import_module(GRADIENTS).operators())
    kernels = ops.kernels()
    lines = [
        "# Operators\n",
        "Made from the registry. *kernel*: the opset versions from which a NumPy kernel serves the operator, where it\n"
        "is not computed by the function in its schema. *shape rule*: onnxlab's own, else onnx's. *compiled*: taken\n"
        "by the Numba provider where types and attributes suit. *gradient*: has a reverse-mode rule.\n",
    ]
    for domain in sorted({*schemas.domains(), *(domain for domain, _ in kernels)}):
        names = sorted({*schemas.operators(domain), *(name for of, name in kernels if of == domain)})
        if not names:
            continue
        lines += [f"## {domain or 'ai.onnx'}\n", "| operator | kernel | shape rule | compiled | gradient |"]
        lines.append("| --- " * 5 + "|")
        for name in names:
            versions = ", ".join(map(str, kernels.get((domain, name), ())))
            version = schemas.versions(domain, name)[-1] if schemas.versions(domain, name) else 1
            rule = "onnxlab" if ops.find_rule(domain, name, version) else "onnx" if domain in schemas.OFFICIAL else ""
            marks = ["yes" if mark else "" for mark in ((domain, name) in compiled, not domain and name in gradients)]
            lines.append(f"| {name} | {versions} | {rule} | {' | '.join(marks)} |")
        lines.append("")
    return "\n".join(lines)


def command_line() -> str:
    """`--help` of every command."""
    lines = ["# Command line\n", INTRODUCTION]
    lines += ["| code | |", "| --- | --- |", *(f"| {code} | {words} |" for code, words in MEANINGS.items()), ""]
    for title, parser in _parsers():
        out = io.StringIO()
        parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100)
        parser.print_help(out)
        lines += [f"## {title}\n", "```text", out.getvalue().rstrip(), "```\n"]
    return "\n".join(lines)


INTRODUCTION = """\
Every command reads a model by its path, or from standard input where the path is `-`; files go to standard output where
`-o` is `-`, and what is said goes to standard error then. Files are written as a whole or not at all, never over what
is read, and never over a file of another kind.

With `--json` the answer is one object on one line, with a versioned schema: `{"schema": "onnxlab/info/1", …}`; NaN and
infinities are the words "nan", "inf" and "-inf". An error is `{"schema": "onnxlab/error/1", "code": 3, "error": …,
"message": …}`, and the same line on standard error. `compare` answers in onnxlab/comparison/1, `evaluate` in
onnxlab/evaluation/1, and `simplify`, `optimize`, `rewrite`, `fold` and `quantize` in onnxlab/receipt/3.

    onnxlab simplify model.onnx -o - -q | onnxlab run - image=image.npy --json
    onnxlab check model.onnx --sarif model.sarif     # for code hosts and editors
    python serve.py 2>&1 | onnxlab explain - model.onnx

A `.py` file given to `rewrite` or `edit`, and statements of `edit -e`, are run: give only your own.

## Exit codes
"""


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    top = cli.parser()
    yield "onnxlab", top
    yield from ((f"onnxlab {name}", parser) for name, parser in verbs(top).items())


def verbs(top: argparse.ArgumentParser | None = None) -> dict[str, argparse.ArgumentParser]:
    """The verbs of the command line, or of one of them that has some of its own."""
    actions = (cli.parser() if top is None else top)._actions
    groups = [action.choices for action in actions if isinstance(action, argparse._SubParsersAction)]
    return dict(groups[0]) if groups else {}


def error_messages() -> str:
    """The messages that `onnxlab explain` knows."""
    lines = [
        "# Errors of onnx, onnxruntime and torch\n",
        'Paste what you got: `onnxlab explain "…" model.onnx`, or `onnxlab.explain_error(text, model)` in Python. The\n'
        "text may be a whole traceback. These are known; the tests make the installed packages say them.\n",
    ]
    for message in TABLE:
        cause, fix = (_said(sentence) for sentence in (message.cause, message.fix))
        lines += [f"## {message.code}: {message.title}\n", f"{cause}\n", f"{fix}\n" if fix else NEAR]
    return "\n".join(lines)


NEAR = "`onnxlab explain` names the near ones, and the versions that have them.\n"


def _said(sentence: str) -> str:
    words = sentence.format_map({**FALLBACK, "near": ""})
    return words[:1].upper() + words[1:] if words.startswith(tuple(FALLBACK.values())) else words


PAGES: dict[str, Callable[[], str]] = {
    "operators.md": operators, "cli.md": command_line, "errors.md": error_messages,
}  # fmt: skip

if __name__ == "__main__":
    for name, make in PAGES.items():
        (ROOT / "docs" / name).write_text(make(), encoding="utf-8")
