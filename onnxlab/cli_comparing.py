"""`onnxlab diff`, `compare`, `hunt` and `text`: what differs between two models, and which values went wrong."""

import argparse
from collections.abc import Callable
from typing import Any

Answer = Callable[[argparse.Namespace, Callable[[], Any], Callable[[], str]], None]

DIFFERENT = 1


def add(verbs: Any, answer: Answer) -> None:
    """Enter the commands.

    Args:
        verbs: where argparse keeps commands.
        answer: prints a JSON object or a text, as the options say.
    """
    words = "say what differs between two models; exit code 1 if anything does"
    verb = verbs.add_parser("diff", help=words, description=words.capitalize() + ".")
    verb.add_argument("a", help="path of the first model")
    verb.add_argument("b", help="path of the second model")
    verb.add_argument("--ignore", default="", metavar="WORDS", help="comma-separated: names, order, docs, metadata, "
                      "declarations, weights, attributes, opsets, producer")  # fmt: skip
    words = "how far stored tensors may be apart, relative to their largest magnitude (0)"
    verb.add_argument("--tolerance", type=float, default=0.0, help=words)
    verb.add_argument("--at-most", type=int, default=0, metavar="COUNT", help="exit with 0 up to so many changes (0)")
    verb.add_argument("--markdown", action="store_true", help="answer in Markdown")
    verb.add_argument("--json", action="store_true", help="answer in JSON")
    verb.set_defaults(command=lambda options: _diff(options, answer))

    words = "run two models on the same inputs and say where their values diverge; exit code 1 if they do"
    verb = verbs.add_parser("compare", help=words, description=words.capitalize() + ".")
    verb.add_argument("a", help="path of the reference")
    verb.add_argument("b", help="path of the other model, or a folder of .npy files named by the values of the first")
    verb.add_argument("feeds", nargs="*", metavar="FEED", help="name=array.npy, or an .npz; the rest is random")
    verb.add_argument("--local", action="store_true", help="also run each node of b on what the nodes of a read")
    verb.add_argument("--providers", metavar="NAMES", help="comma-separated: numpy, numba, onnxruntime")
    verb.add_argument("--b-providers", metavar="NAMES", help="of the other model; default: the same")
    verb.add_argument("--json", action="store_true", help="answer in JSON")
    verb.set_defaults(command=lambda options: _compare(options, answer))

    words = "run a model and look for NaN, infinities, what float16 cannot hold and dead channels; exit code 1 if any"
    verb = verbs.add_parser("hunt", help=words, description=words.capitalize() + ".")
    verb.add_argument("model", help="path of the model")
    verb.add_argument("feeds", nargs="*", metavar="FEED", help="name=array.npy, or an .npz; the rest is random")
    verb.add_argument("--json", action="store_true", help="answer in JSON")
    verb.set_defaults(command=lambda options: _hunt(options, answer))

    words = "print the model as lines, for git to compare"
    verb = verbs.add_parser("text", help=words, description=words.capitalize() + ".")
    verb.add_argument("model", help="path of the model")
    verb.set_defaults(command=_text)


def _diff(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab

    ignored: Any = [word for word in options.ignore.split(",") if word]
    try:
        difference = onnxlab.diff(options.a, options.b, ignore=ignored, tolerance=options.tolerance)
    except ValueError as error:
        if isinstance(error, onnxlab.OnnxlabError):
            raise
        raise onnxlab.errors.EditError(str(error)) from None
    answer(options, difference.as_dict, difference.to_markdown if options.markdown else lambda: str(difference))
    return DIFFERENT if len(difference) > options.at_most else 0


def _compare(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab
    from onnxlab import cli_values

    lists = [names.split(",") if names else None for names in (options.providers, options.b_providers)]
    feeds = cli_values.feeds_of(options.feeds)
    comparison = onnxlab.compare(
        options.a, options.b, feeds, local=options.local, providers=lists[0], b_providers=lists[1]
    )  # fmt: skip
    answer(options, comparison.as_dict, lambda: str(comparison))
    return DIFFERENT if comparison else 0


def _hunt(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab
    from onnxlab import cli_values

    report = onnxlab.load(options.model).hunt(cli_values.feeds_of(options.feeds))
    names = ("kind", "value", "node", "count", "total", "begins")
    rows = [
        {
            **{name: getattr(finding, name) for name in names},
            "first": list(finding.first),
            "channels": list(finding.channels),
        }
        for finding in report
    ]
    answer(options, lambda: {"values": report.values, "findings": rows}, lambda: str(report))
    return DIFFERENT if report else 0


def _text(options: argparse.Namespace) -> int:
    import onnxlab
    from onnxlab.analysis.diff.outline import outline

    print(outline(onnxlab.load(options.model).graph))
    return 0
