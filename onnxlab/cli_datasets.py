"""`onnxlab statistics` and `evaluate`: values of a model, and errors of another one, over a folder of samples."""

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Answer = Callable[[argparse.Namespace, Callable[[], Any], Callable[[], str]], None]

BEYOND = 1


def add(verbs: Any, answer: Answer) -> None:
    """Enter the commands.

    Args:
        verbs: where argparse keeps commands.
        answer: prints a JSON object or a text, as the options say.
    """
    words = "count the values of a model over a folder of samples: range, moments, NaN, quantiles, worst samples"
    verb = verbs.add_parser("statistics", help=words, description=words.capitalize() + ".")
    verb.add_argument("model", help="path of the model")
    _common(verb)
    verb.add_argument("--channels", default="", metavar="NAMES", help="values of which each channel is counted too")
    verb.add_argument("--ranges", choices=("minmax", "percentile", "entropy"), help="calibrate: print ranges instead")
    verb.add_argument("--percentile", type=float, default=99.99, help="of --ranges percentile (99.99)")
    verb.set_defaults(command=lambda options: _statistics(options, answer))

    words = "run two models over a folder of samples and tell how far the second is off; exit code 1 beyond --at-most"
    verb = verbs.add_parser("evaluate", help=words, description=words.capitalize() + ".")
    verb.add_argument("a", help="path of the reference")
    verb.add_argument("b", help="path of the other model")
    _common(verb)
    verb.add_argument("--metric", default="", metavar="NAMES", help="comma-separated: top1, top5, mse")
    verb.add_argument("--b-providers", metavar="NAMES", help="of the other model; default: the same")
    words = "the largest error relative to the peak that is still well"
    verb.add_argument("--at-most", type=float, metavar="ERROR", help=words)
    verb.set_defaults(command=lambda options: _evaluate(options, answer))


def _common(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("samples", help="folder of .npz, .npy or .pb files, or of test_data_set_… folders")
    verb.add_argument("--values", metavar="NAMES", help="comma-separated, or * for all")
    verb.add_argument("--providers", metavar="NAMES", help="comma-separated: numpy, numba, onnxruntime")
    verb.add_argument("--checkpoint", metavar="FILE.npz", help="go on from this file, and write it meanwhile")
    verb.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster whose workers see the folder")
    verb.add_argument("--json", action="store_true", help="answer in JSON")


def _names(words: str | None) -> Any:
    """None without words, "*" for all, else a list."""
    return words if not words or words == "*" else words.split(",")


def _client(address: str | None) -> AbstractContextManager[Any]:
    """A client of the cluster; none without an address."""
    if not address:
        return nullcontext()
    from onnxlab.errors import SaveError

    try:
        from distributed import Client
    except ImportError:
        raise SaveError("--dask needs Dask: pip install 'onnxlab[dask]'") from None
    connect: Callable[[str], AbstractContextManager[Any]] = Client
    return connect(address)


def _statistics(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab

    with _client(options.dask) as client:
        table = onnxlab.statistics(
            options.model, options.samples, _names(options.values) or "*", channels=_names(options.channels) or (),
            providers=_names(options.providers), checkpoint=options.checkpoint, client=client,
        )  # fmt: skip
    if not options.ranges:
        answer(options, table.as_dict, lambda: str(table))
        return 0
    ranges = table.ranges(options.ranges, percentile=options.percentile)
    words = [onnxlab.printable.printable(f"{name}: {low:.7g} {high:.7g}") for name, (low, high) in ranges.items()]
    rows = {"ranges": {name: list(ends) for name, ends in ranges.items()}}
    answer(options, lambda: table.as_dict() | rows, lambda: "\n".join(words))
    return 0


def _evaluate(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab
    from onnxlab.errors import EditError, OnnxlabError

    with _client(options.dask) as client:
        try:
            evaluation = onnxlab.evaluate(
                options.a, options.b, options.samples, _names(options.metric) or None, values=_names(options.values),
                providers=_names(options.providers), b_providers=_names(options.b_providers),
                checkpoint=options.checkpoint, client=client,
            )  # fmt: skip
        except ValueError as error:
            if isinstance(error, OnnxlabError):
                raise
            raise EditError(str(error)) from None
    answer(options, evaluation.as_dict, lambda: str(evaluation))
    return BEYOND if options.at_most is not None and evaluation.worst_error > options.at_most else 0
