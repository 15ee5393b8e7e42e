"""The grammar of the command line: its verbs, family by family, in the order in which --help lists them."""

import argparse

from onnxlab.cli.base.entries import Parser, Verbs
from onnxlab.cli.base.exits import MEANINGS
from onnxlab.cli.verbs import (
    assisting,
    checking,
    comparing,
    completing,
    converting,
    datasets,
    doctor,
    drawing,
    editing,
    explaining,
    git,
    looking,
    measuring,
    rewriting,
    running,
    showing,
    warming,
)

FAMILIES = (
    showing, looking, checking, explaining, drawing, running, measuring, comparing, datasets, editing, converting,
    rewriting, warming, git, doctor, assisting, completing,
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    codes = "; ".join(f"{code} {words}" for code, words in MEANINGS.items())
    top = Parser(
        prog="onnxlab",
        description="Look at, check, draw, run, compare and change ONNX models.",
        epilog=f"Exit codes: {codes}.",
    )
    top.add_argument("--version", action="version", version=_version())
    verbs = Verbs(top)
    for family in FAMILIES:
        family.add(verbs)
    return top


def _version() -> str:
    import onnxlab

    return f"onnxlab {onnxlab.__version__}"
