"""`onnxlab simplify`, `optimize`, `rewrite`, `fold`, `quantize`, `suggest`: a model rewritten, or what that gains.

Without -o these verbs only say what would be done. With --strict the exit code is 1 where an application of a rule was
taken back, or where nothing could be verified.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE
from onnxlab.cli.base.inputs import feeds_of, names_of, open_model, whole
from onnxlab.cli.base.outputs import check_model, outcome, save_model
from onnxlab.cli.base.progress import ticking

if TYPE_CHECKING:
    from onnxlab.model import Model
    from onnxlab.transforms.receipt import Receipt

_GOOD = ("bit equal", "equal within noise", "rounded")
_SAMPLE = "name=array.npy, or an .npz: inputs to verify with, in place of made-up ones"
FORMS = (
    "int8", "int8_dynamic", "int4_weights", "uint4_weights", "int8_weights", "float16_weights", "bfloat16_weights",
    "float16", "bfloat16",
)  # fmt: skip


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    simplify = verbs.add("simplify", _simplify, "leave fewer nodes that compute the same, and say what was done")
    words = "simplify, and let single operators take the place of written-out ones"
    optimize = verbs.add("optimize", _optimize, words)
    rewrite = verbs.add("rewrite", _rewrite, "apply rules wherever they match, and say what was done")
    words = 'text ("Relu(Relu(x)) => Relu(x)") or name of a rule, or a .toml or .py file of rules; a .py file is run'
    rewrite.add_argument("rules", nargs="+", metavar="RULE", help=words)
    fold = verbs.add("fold", _fold, "store what nodes make of constants alone, and leave everything else")
    for command in (simplify, fold):
        words = "bytes that stored results may add to the model (1 MiB)"
        command.add_argument("--budget", type=whole, metavar="BYTES", help=words)
    quantize = verbs.add("quantize", _quantize, "store weights in fewer bits, or compute in half precision")
    quantize.add_argument("form", choices=FORMS, metavar="FORM", help=f"{', '.join(FORMS)}")
    words = "take back what puts an output further off than this part of its largest element (0.01 is one percent)"
    quantize.add_argument("--at-most", type=float, metavar="PART", help=words)
    words = ".npz files, or folders of them, each with inputs as they come in use: their runs measure ranges for int8"
    quantize.add_argument("--calibrate", nargs="+", metavar="FILE.npz", help=words)
    words = "take all numbers (minmax), all but one in ten thousand (percentile), or what loses least (mse)"
    quantize.add_argument("--ranges", choices=("minmax", "percentile", "mse"), default="minmax", help=words)
    words = "type of values: uint8 with a zero point (default; what ONNX Runtime wants), or int8 around zero"
    quantize.add_argument("--activations", choices=("uint8", "int8"), default="uint8", help=words)
    words = "weights in 7 bits, for x64 processors without VNNI"
    quantize.add_argument("--reduce-range", action="store_true", help=words)
    words = "elements of a weight in 4 bits that share a scale (32)"
    quantize.add_argument("--block-size", type=whole, default=32, metavar="N", help=words)
    quantize.add_argument("--leave", metavar="OPERATORS", help="comma-separated operators whose nodes stay")
    suggest = verbs.add("suggest", _suggest, "measure what each rule would gain alone; nothing is changed")
    for command in (simplify, optimize):
        words = "another tool that does the work"
        command.add_argument("--engine", choices=("onnxsim", "onnxruntime", "onnxscript"), help=words)
    for command, level, forms in ((optimize, "extended", ()), (suggest, "layout", FORMS)):
        command.add_argument(
            "--level",
            choices=("basic", "extended", "layout", *forms),
            default=level,
            help=f"which rules are applied ({level})" + (", or which form is tried" if forms else ""),
        )
        command.add_argument("--microsoft", action="store_true", help="allow operators of com.microsoft")
    suggest.add_argument("--no-verify", action="store_true", help="do not run the model; times are left out then")
    suggest.add_argument("--sample", nargs="+", metavar="FEED", help=_SAMPLE)
    for command in (simplify, optimize, rewrite, fold):
        _common(command)
        words = "accept differences in NaN and infinities alone"
        command.add_argument("--finite-only", action="store_true", help=words)
    _common(quantize)


def _common(command: argparse.ArgumentParser) -> None:
    entries.output(command, "file to write, or - for standard output; without it nothing is changed")
    command.add_argument("--dry-run", action="store_true", help="only say what would be done, whatever -o says")
    command.add_argument("--no-verify", action="store_true", help="do not run the model before and after")
    command.add_argument("--sample", nargs="+", metavar="FEED", help=_SAMPLE)
    words = r"comma-separated nodes, values, graphs and prefixes that end in / that stay as they are; \, is a comma"
    command.add_argument("--protect", metavar="NAMES", help=words)
    command.add_argument("--receipt", metavar="FILE.json", help="write what was done, for a build")
    command.add_argument("--strict", action="store_true", help="exit with 1 where something was taken back")


def _simplify(options: argparse.Namespace) -> int:
    budget = {} if options.budget is None else {"budget": options.budget}
    return _done(options, "simplify", engine=options.engine, **budget)


def _optimize(options: argparse.Namespace) -> int:
    return _done(options, "optimize", level=options.level, microsoft=options.microsoft, engine=options.engine)


def _rewrite(options: argparse.Namespace) -> int:
    return _done(options, "rewrite", options.rules)


def _fold(options: argparse.Namespace) -> int:
    budget = {} if options.budget is None else {"budget": options.budget}
    return _done(options, "fold", **budget)


def _quantize(options: argparse.Namespace) -> int:
    return _done(
        options,
        "quantize",
        options.form,
        at_most=options.at_most,
        ranges=options.ranges,
        activations=options.activations,
        reduce_range=options.reduce_range,
        block_size=options.block_size,
        leave=[name.strip() for name in names_of(options.leave) or ()],
    )


def _calibration(words: Sequence[str], model: "Model") -> Iterator[Mapping[str, Any]]:
    """The inputs of files and folders, one file at a time."""
    for word in words:
        path = Path(word)
        for file in sorted(path.glob("*.np[yz]")) if path.is_dir() else [word]:
            yield feeds_of([str(file)], model)


def _suggest(options: argparse.Namespace) -> int:
    model = open_model(options)
    with ticking(f"suggest {model.name}"):
        suggestions = model.suggest(
            level=options.level,
            microsoft=options.microsoft,
            verify=not options.no_verify,
            samples=[feeds_of(options.sample, model)] if options.sample else None,
        )
    lines = [str(suggestion) for suggestion in suggestions] or ["no rule would change anything"]
    rows = {"suggestions": [suggestion.as_dict() for suggestion in suggestions]}
    answer(options, lambda: rows, lambda: "\n".join(lines))
    return DONE


def _done(options: argparse.Namespace, method: str, *positional: Any, **named: Any) -> int:
    """Load, rewrite, save, and say what was done."""
    from onnxlab.formats import kinds, output

    if "finite_only" in options:
        named["finite_only"] = options.finite_only

    model = open_model(options)
    if getattr(options, "calibrate", None):
        named["calibrate"] = _calibration(options.calibrate, model)
    source = model.path
    check_model(options.output, [source])  # before anything is rewritten
    if options.receipt:
        output.check(options.receipt, kinds.RECEIPT, [source])
    writes = bool(options.output) and not options.dry_run
    with ticking(f"{method} {model.name}"):
        receipt: Receipt = getattr(model, method)(
            *positional,
            verify=not options.no_verify,
            samples=[feeds_of(options.sample, model)] if options.sample else None,
            protect=[name.strip() for name in names_of(options.protect) or ()],
            dry_run=not writes,
            **named,
        )
    if writes:
        save_model(model, options.output, [source])
    if options.receipt:
        text = json.dumps(receipt.as_dict(), indent=1, ensure_ascii=False) + "\n"
        output.write(options.receipt, text.encode(), kinds.RECEIPT, [source])
    answer(options, receipt.as_dict, lambda: f"{receipt}\n{outcome(options.output, options.dry_run)}")
    failed = bool(receipt.refused) or (writes and not options.no_verify and receipt.verdict not in _GOOD)
    return DIFFERENT if options.strict and failed else DONE
