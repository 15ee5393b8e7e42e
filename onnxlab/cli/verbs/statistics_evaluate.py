"""`onnxlab statistics` and `evaluate`: values of a model, and errors of another one, over a folder of samples."""

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from onnxlab.cli.base.answers import STDOUT, answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE, usage_errors
from onnxlab.cli.base.inputs import names_of, number, open_model, open_two
from onnxlab.printable import printable_lines


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    words = "count the values of a model over a folder of samples: range, moments, NaN, quantiles, worst samples"
    statistics = verbs.add("statistics", _statistics, words)
    _samples(statistics)
    words = "values whose channels are counted too"
    statistics.add_argument("--channels", default="", metavar="NAMES", help=words)
    words = "calibrate: print ranges instead"
    statistics.add_argument("--ranges", choices=("minmax", "percentile", "entropy"), help=words)
    statistics.add_argument(
        "--percentile", type=number, default=99.99, help="percentile for --ranges percentile (99.99)"
    )

    words = "run two models over a folder of samples and tell how far the second is off; exit code 1 beyond --at-most"
    evaluate = verbs.add("evaluate", _evaluate, words, models=("a", "b"))
    _samples(evaluate)
    evaluate.add_argument("--metric", default="", metavar="NAMES", help="comma-separated: top1, top5, mse")
    evaluate.add_argument("--b-providers", metavar="NAMES", help="providers of the other model; default: the same")
    words = "the largest error relative to the peak that is accepted; a sample that cannot be used is one too large"
    evaluate.add_argument("--at-most", type=number, metavar="ERROR", help=words)


def _samples(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("samples", help="folder of .npz, .npy or .pb files, or of test_data_set_… folders")
    verb.add_argument("--values", metavar="NAMES", help="comma-separated, or * for all")
    verb.add_argument("--providers", metavar="NAMES", help="comma-separated: numpy, numba, onnxruntime")
    verb.add_argument(
        "--checkpoint", metavar="FILE.npz", help="go on from this file, and keep writing the counts to it"
    )
    verb.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster whose workers see the folder")


def _names(words: str | None) -> Any:
    """None without words, "*" for all, else a list."""
    return words if not words or words == "*" else names_of(words)


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


def _statistics(options: argparse.Namespace) -> int:
    import onnxlab

    source = open_model(options) if options.model == STDOUT else options.model
    with _client(options.dask) as client, usage_errors():
        table = onnxlab.statistics(
            source, options.samples, _names(options.values) or "*", channels=_names(options.channels) or (),
            providers=_names(options.providers), checkpoint=options.checkpoint, client=client,
        )  # fmt: skip
    if not options.ranges:
        answer(options, table.as_dict, lambda: str(table))
        return DONE
    with usage_errors():
        ranges = table.ranges(options.ranges, percentile=options.percentile)
    words = printable_lines(f"{name}: {low:.7g} {high:.7g}" for name, (low, high) in ranges.items())
    rows = {"ranges": {name: list(ends) for name, ends in ranges.items()}}
    answer(options, lambda: table.as_dict() | rows, lambda: words)
    return DONE


def _evaluate(options: argparse.Namespace) -> int:
    import onnxlab

    first, second = open_two(options) if STDOUT in (options.a, options.b) else (options.a, options.b)
    with _client(options.dask) as client, usage_errors():
        evaluation = onnxlab.evaluate(
            first, second, options.samples, _names(options.metric) or None, values=_names(options.values),
            providers=_names(options.providers), b_providers=_names(options.b_providers),
            checkpoint=options.checkpoint, client=client,
        )  # fmt: skip
    answer(options, evaluation.as_dict, lambda: str(evaluation))
    if options.at_most is None:
        return DONE
    return DIFFERENT if evaluation.failed or evaluation.worst_error > options.at_most else DONE
