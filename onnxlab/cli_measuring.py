"""`onnxlab memory` and `cost`: what a run takes, by facts alone, for sizes that are given."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

Answer = Callable[[argparse.Namespace, Callable[[], Any], Callable[[], str]], None]
Verb = Callable[[Any, str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]


def add(verbs: Any, verb: Verb, answer: Answer) -> None:
    """Enter the commands.

    Args:
        verbs: where argparse keeps commands.
        verb: adds a command that takes a model.
        answer: prints a JSON object or a text, as the options say.
    """
    words = "say how many bytes are alive over the schedule, and what is alive at the peak"
    memory = verb(verbs, "memory", lambda options: _memory(options, answer), words)
    _sizes(memory)
    words = "how values share memory: none, live (views and results in place), or as onnxruntime plans it (live)"
    memory.add_argument("--share", choices=("none", "live", "onnxruntime"), default="live", help=words)
    memory.add_argument("--svg", metavar="FILE", help="draw the curve")

    words = "count operations and bytes of nodes and groups, against what this machine can do"
    cost = verb(verbs, "cost", lambda options: _cost(options, answer), words)
    _sizes(cost)
    cost.add_argument("--measure", action="store_true", help="also run, and say how near each node comes to the limit")
    cost.add_argument("--runs", type=int, default=3, help="of --measure; the quickest counts (3)")
    cost.add_argument("--threads", type=int, default=1, help="of the machine's limits (1)")


def _sizes(verb: argparse.ArgumentParser) -> None:
    words = "size of a symbolic dim, as batch=8; the others are assumed"
    verb.add_argument("sizes", nargs="*", metavar="SYMBOL=SIZE", help=words)
    verb.add_argument("--json", action="store_true", help="answer in JSON")


def dims_of(words: Sequence[str]) -> dict[str, int]:
    """Sizes from `symbol=size` words.

    Raises:
        EditError: a word is no such pair.
    """
    from onnxlab.errors import EditError

    dims = {}
    for word in words:
        name, separator, size = word.rpartition("=")
        if not separator or not size.isdecimal():
            raise EditError(f"{word!r} gives no size: write symbol=size, as in batch=8")
        dims[name] = int(size)
    return dims


def _memory(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab
    from onnxlab.formats import kinds, output

    model = onnxlab.load(options.model)
    if options.svg:
        output.check(options.svg, kinds.SVG, [model.path])
    memory = model.memory(dims_of(options.sizes), share=options.share)
    if options.svg:
        output.write(options.svg, memory.to_svg().encode(), kinds.SVG, [model.path])
    answer(options, memory.as_dict, lambda: str(memory))
    return 0


def _cost(options: argparse.Namespace, answer: Answer) -> int:
    import onnxlab
    from onnxlab.errors import EditError

    if options.threads < 1 or options.runs < 1:
        raise EditError("--threads and --runs are at least 1")
    model = onnxlab.load(options.model)
    cost = model.cost(
        dims_of(options.sizes), measure=options.measure, runs=options.runs, threads=options.threads
    )  # fmt: skip
    answer(options, cost.as_dict, lambda: str(cost))
    return 0
