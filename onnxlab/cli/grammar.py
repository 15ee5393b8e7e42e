"""The grammar of the command line: its verbs, family by family, in the order in which --help lists them."""

import argparse

from onnxlab.cli.base.entries import Parser, Verbs
from onnxlab.cli.base.exits import MEANINGS
from onnxlab.cli.verbs import (
    check,
    completion,
    convert,
    diff_compare,
    doctor,
    edit_extract,
    explain,
    git,
    info_shapes_text,
    mcp,
    memory_cost,
    rewrite,
    run_profile,
    show,
    statistics_evaluate,
    svg,
    warm,
)

FAMILIES = (
    show, info_shapes_text, check, explain, svg, run_profile, memory_cost, diff_compare, statistics_evaluate,
    edit_extract, convert, rewrite, warm, git, doctor, mcp, completion,
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
