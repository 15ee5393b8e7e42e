"""`onnxlab diff` and `compare`: what differs between two models, in their structure or in what they compute."""

import argparse
from typing import Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE, usage_errors
from onnxlab.cli.base.inputs import feeds_of, names_of, number, open_two, whole

_PAGE = "also write both graphs side by side as an HTML page"


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    words = "say what differs between two models; exit code 1 if anything does"
    diff = verbs.add("diff", _diff, words, models=("a", "b"))
    diff.add_argument("--ignore", default="", metavar="WORDS", help="comma-separated: names, order, docs, metadata, "
                      "declarations, weights, attributes, opsets, producer, defaults")  # fmt: skip
    words = "how far stored tensors may be apart, relative to their largest magnitude (0)"
    diff.add_argument("--tolerance", type=number, default=0.0, help=words)
    diff.add_argument("--at-most", type=whole, default=0, metavar="COUNT", help="exit with 0 up to so many changes (0)")
    diff.add_argument("--markdown", action="store_true", help="answer in Markdown")
    diff.add_argument("--html", metavar="PAGE", help=_PAGE)

    words = "run two models on the same inputs and say where their values diverge; exit code 1 if they do"
    compare = verbs.add("compare", _compare, words, models=("a", "b"))
    entries.feeds(compare)
    words = "how far values may be apart, relative to the largest magnitude of each (what roundings explain)"
    compare.add_argument("--tolerance", type=number, help=words)
    compare.add_argument("--local", action="store_true", help="also run each node of b on what the nodes of a read")
    compare.add_argument("--providers", metavar="NAMES", help="comma-separated: numpy, numba, onnxruntime")
    compare.add_argument("--b-providers", metavar="NAMES", help="providers of the other model; default: the same")
    compare.add_argument("--html", metavar="PAGE", help=_PAGE)
    compare.epilog = "b may also be a folder of .npy files that are named by the values of a."


def _diff(options: argparse.Namespace) -> int:
    import onnxlab

    ignored: Any = [word for word in options.ignore.split(",") if word]
    first, second = open_two(options)
    with usage_errors():
        difference = onnxlab.diff(first, second, ignore=ignored, tolerance=options.tolerance)
    if options.html:
        difference.to_html(options.html)
    answer(options, difference.as_dict, difference.to_markdown if options.markdown else lambda: str(difference))
    return DIFFERENT if len(difference) > options.at_most else DONE


def _compare(options: argparse.Namespace) -> int:
    import onnxlab
    from onnxlab.argument_types import tolerance_of

    first, second = open_two(options)
    feeds = feeds_of(options.feeds, first)
    with usage_errors():
        tolerance = None if options.tolerance is None else tolerance_of(options.tolerance)
    comparison = onnxlab.compare(
        first, second, feeds, local=options.local, providers=names_of(options.providers),
        b_providers=names_of(options.b_providers), tolerance=tolerance,
    )  # fmt: skip
    if options.html:
        comparison.to_html(options.html)
    answer(options, comparison.as_dict, lambda: str(comparison))
    return DIFFERENT if comparison else DONE
