"""`onnxlab run`, `profile` and `hunt`: a run of a model, its times, and values that went wrong in it."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import answer, line, row
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE, UsageError, usage_errors
from onnxlab.cli.base.inputs import feeds_of, files_of, names_of, open_model, whole
from onnxlab.cli.base.outputs import write
from onnxlab.errors import SaveError
from onnxlab.printable import printable_lines


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    run = verbs.add("run", _run, "run the model and summarize its outputs")
    entries.feeds(run)
    run.add_argument("--outputs", metavar="NAMES", help="comma-separated values to compute; default: the outputs")
    run.add_argument("--providers", metavar="NAMES", help="comma-separated: numpy, numba, onnxruntime")
    run.add_argument("--seed", type=whole, default=0, help="seed of the random inputs (0)")
    words = "write the arrays; - for standard output"
    run.add_argument("--save", metavar="FILE.npz", dest="output", help=words)

    profile = verbs.add("profile", _profile, "run the model and say where the time goes")
    entries.feeds(profile)
    profile.add_argument("--runs", type=whole, default=3, help="number of runs; the fastest time of a node counts (3)")
    words = "comma-separated: numpy, numba, onnxruntime; default: numpy"
    profile.add_argument("--providers", metavar="NAMES", help=words)

    words = "run a model and look for NaN, infinities, what float16 cannot hold and dead channels; exit code 1 if any"
    hunt = verbs.add("hunt", _hunt, words)
    entries.feeds(hunt)


def _run(options: argparse.Namespace) -> int:
    from onnxlab.analysis.statistics import statistics
    from onnxlab.formats import kinds, output
    from onnxlab.formats.arrays import write_arrays

    model = open_model(options)
    inputs = [model.path, *files_of(options.feeds)]
    if options.output and options.output != "-":
        output.check(options.output, kinds.ARRAYS, inputs)  # before anything is run
    with usage_errors():
        feeds = model.sample_inputs(feeds_of(options.feeds, model), seed=options.seed)
    providers = names_of(options.providers)
    model.compiled.in_background = False  # a process that runs once is over before anything is compiled
    arrays = model.run(feeds, names_of(options.outputs), seed=options.seed, providers=providers)
    if options.output:
        write(options.output, lambda file: write_arrays(file, _saved(arrays)), kinds.ARRAYS, inputs)
    summaries = {name: statistics(array) for name, array in arrays.items()}
    answer(
        options,
        lambda: {"outputs": {name: row(item) for name, item in summaries.items()}},
        lambda: printable_lines(line(name, item) for name, item in summaries.items()),
    )
    return DONE


def _saved(results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Results as arrays, those of a sequence by their places.

    Raises:
        SaveError: a result is no array and no sequence of arrays, or its name is none that an archive can have.
    """
    import numpy as np

    from onnxlab.execution.program.run_errors import describe

    for name, result in results.items():
        for place, array in enumerate(result) if isinstance(result, list) else [(None, result)]:
            if not isinstance(array, np.ndarray | np.generic) or not name or "\0" in name:
                raise SaveError(f"an .npz archive has no place for {name!r}, which is {describe(result)}")
            yield name if place is None else f"{name}.{place}", np.asarray(array)


def _profile(options: argparse.Namespace) -> int:
    if options.runs < 1:
        raise UsageError(f"--runs is {options.runs}: at least one is needed")
    model = open_model(options)
    feeds, providers = model.sample_inputs(feeds_of(options.feeds, model)), names_of(options.providers)
    profile = model.profile(feeds, runs=options.runs, providers=providers)
    names = ("label", "op", "seconds", "read", "written", "flops", "provider", "together")

    def rows() -> dict[str, Any]:
        nodes = [
            {**{name: getattr(entry, name) for name in names}, "shapes": list(entry.shapes)}
            for entry in profile.slowest(len(profile.entries))
        ]
        return {"seconds": profile.seconds, "flops": profile.flops, "runs": profile.runs, "nodes": nodes}

    answer(options, rows, lambda: str(profile))
    return DONE


def _hunt(options: argparse.Namespace) -> int:
    model = open_model(options)
    report = model.hunt(feeds_of(options.feeds, model))
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
    return DIFFERENT if report else DONE
