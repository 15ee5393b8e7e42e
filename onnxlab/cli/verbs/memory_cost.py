"""`onnxlab memory` and `cost`: what a run takes, by facts alone, for sizes that are given."""

import argparse

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import STDOUT, answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE, UsageError
from onnxlab.cli.base.inputs import dims_of, open_model, whole
from onnxlab.cli.base.outputs import write


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    words = "say how many bytes are alive over the schedule, and what is alive at the peak"
    memory = verbs.add("memory", _memory, words)
    entries.sizes(memory)
    words = "how values share memory: none, live (views and results in place), or as onnxruntime plans it (live)"
    memory.add_argument("--share", choices=("none", "live", "onnxruntime"), default="live", help=words)
    memory.add_argument("--svg", metavar="FILE", dest="output", help="draw the curve; - for standard output")

    words = "count operations and bytes of nodes and groups, against what this machine can do"
    cost = verbs.add("cost", _cost, words)
    entries.sizes(cost)
    cost.add_argument(
        "--measure", action="store_true", help="also run the model, and say how near each node comes to the limit"
    )
    cost.add_argument("--runs", type=whole, default=3, help="number of runs of --measure; the fastest time counts (3)")
    cost.add_argument("--threads", type=whole, default=1, help="number of threads for the machine's limits (1)")


def _memory(options: argparse.Namespace) -> int:
    from onnxlab.formats import kinds, output

    model = open_model(options)
    if options.output and options.output != STDOUT:
        output.check(options.output, kinds.SVG, [model.path])
    memory = model.memory(dims_of(options.sizes), share=options.share)
    if options.output:
        write(options.output, memory.to_svg().encode(), kinds.SVG, [model.path])
    answer(options, memory.as_dict, lambda: str(memory))
    return DONE


def _cost(options: argparse.Namespace) -> int:
    if options.threads < 1 or options.runs < 1:
        raise UsageError("--threads and --runs are at least 1")
    cost = open_model(options).cost(
        dims_of(options.sizes), measure=options.measure, runs=options.runs, threads=options.threads
    )
    answer(options, cost.as_dict, lambda: str(cost))
    return DONE
