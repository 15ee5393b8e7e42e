"""Commands that rewrite a model: `onnxlab simplify|optimize|rewrite model.onnx`.

Without -o they only say what would be done. With --strict the exit code is 1 where something had to be taken back, or
where nothing could be verified.
"""

import argparse
import contextlib
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxlab.cli_values import answer, feeds_of
from onnxlab.errors import SaveError

if TYPE_CHECKING:
    from onnxlab.transforms.receipt import Receipt

Verb = Callable[[Any, str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]

_GOOD = ("bit equal", "equal within noise")


def add(verbs: Any, verb: Verb) -> None:
    """Add the commands to the grammar."""
    simplify = verb(verbs, "simplify", _simplify, "leave fewer nodes that compute the same, and say what was done")
    optimize = verb(
        verbs, "optimize", _optimize, "simplify, and let single operators take the place of written-out ones"
    )
    rewrite = verb(verbs, "rewrite", _rewrite, "apply rules wherever they match, and say what was done")
    words = 'text ("Relu(Relu(x)) => Relu(x)") or name of a rule, or a .toml or .py file of some; a .py file is run'
    rewrite.add_argument("rules", nargs="+", metavar="RULE", help=words)
    words = "that stored results may add to the model (1 MiB)"
    simplify.add_argument("--budget", type=int, metavar="BYTES", help=words)
    for command in (simplify, optimize):
        command.add_argument(
            "--engine", choices=("onnxsim", "onnxruntime", "onnxscript"), help="another tool that does it"
        )
    optimize.add_argument("--level", choices=("basic", "extended", "layout"), default="extended", help="(extended)")
    optimize.add_argument("--microsoft", action="store_true", help="let operators of com.microsoft come")
    for command in (simplify, optimize, rewrite):
        command.add_argument("-o", "--output", metavar="FILE", help="file to write; without it nothing is changed")
        command.add_argument("--dry-run", action="store_true", help="only say what would be done, whatever -o says")
        command.add_argument("--no-verify", action="store_true", help="do not run the model before and after")
        words = "name=array.npy, or an .npz: inputs to verify with, in place of made-up ones"
        command.add_argument("--sample", nargs="+", metavar="FEED", help=words)
        command.add_argument(
            "--finite-only", action="store_true", help="accept what differs for NaN and infinities alone"
        )
        words = "comma-separated nodes, values, graphs and prefixes that end in / that stay as they are"
        command.add_argument("--protect", metavar="NAMES", help=words)
        command.add_argument("--receipt", metavar="FILE.json", help="write what was done, for a build")
        command.add_argument("--strict", action="store_true", help="exit with 1 where something was taken back")
        command.add_argument("--json", action="store_true", help="answer in JSON")


def _simplify(options: argparse.Namespace) -> int:
    budget = {} if options.budget is None else {"budget": options.budget}
    return _done(options, "simplify", engine=options.engine, **budget)


def _optimize(options: argparse.Namespace) -> int:
    return _done(options, "optimize", level=options.level, microsoft=options.microsoft, engine=options.engine)


def _rewrite(options: argparse.Namespace) -> int:
    return _done(options, "rewrite", options.rules)


def _done(options: argparse.Namespace, method: str, *positional: Any, **named: Any) -> int:
    """Load, rewrite, save, and say what was done."""
    from onnxlab.formats import kinds, output
    from onnxlab.model import load

    _refuse_input(options)
    model = load(options.model)
    if options.receipt:
        output.check(options.receipt, kinds.RECEIPT, [model.path])  # before anything is rewritten
    writes = bool(options.output) and not options.dry_run
    receipt: Receipt = getattr(model, method)(
        *positional,
        verify=not options.no_verify,
        samples=[feeds_of(options.sample)] if options.sample else None,
        protect=options.protect.split(",") if options.protect else (),
        finite_only=options.finite_only,
        dry_run=not writes,
        **named,
    )
    if writes:
        model.save(options.output)
    if options.receipt:
        text = json.dumps(receipt.as_dict(), indent=1, ensure_ascii=False) + "\n"
        output.write(options.receipt, text.encode(), kinds.RECEIPT, [model.path])
    answer(options, receipt.as_dict, lambda: str(receipt))
    failed = bool(receipt.refused) or (writes and not options.no_verify and receipt.verdict not in _GOOD)
    return 1 if options.strict and failed else 0


def _refuse_input(options: argparse.Namespace) -> None:
    """Raise SaveError where the file to be written is the one that is read."""
    same = False
    with contextlib.suppress(OSError, ValueError):
        same = bool(options.output) and os.path.samefile(options.model, options.output)
    if same:
        raise SaveError(f"cannot write to {options.output}: it is read from there; give another name")
