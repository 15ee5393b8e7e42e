"""`onnxlab warm`: the kernels of the numba provider, compiled once per machine."""

import argparse
import sys

from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE
from onnxlab.errors import SaveError


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    words = "compile the kernels of the numba provider, once per machine, so that no run waits for them"
    verbs.add("warm", _warm, words, models=())


def _warm(options: argparse.Namespace) -> int:
    from onnxlab.execution.numba.machine import availability, object_cache
    from onnxlab.execution.numba.plan import engine

    if availability.missing():
        raise SaveError(f"there is nothing to compile: {availability.missing()}")
    engine.load(lambda name: print(f"compiling {name}", file=sys.stderr))
    folder = str(object_cache.folder())
    answer(options, lambda: {"folder": folder}, lambda: folder)
    return DONE
