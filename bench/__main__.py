"""`python -m bench [group …]`: print the table of ratios, or that of some groups.

The groups of `comparisons` are quick and are what is printed by default. A topic is a module of this folder with a
function `rows()`, a longer campaign about one part of onnxlab, and is printed when it is asked for. `hostile` has
options of its own: `python -m bench hostile --help`. `looks [model …]` draws each model as it opens. `checkouts OLD`
compares an older checkout with this one.
"""

import argparse
import importlib
import platform
import sys

import numpy as np
import onnx
import onnx_ir
import onnxruntime

import onnxlab
from bench.comparisons import GROUPS
from bench.measure import Line, scratch_state, table

TOPICS = (
    "model",
    "inference",
    "execution",
    "speed",
    "regions",
    "run_memory",
    "widget",
    "frames",
    "attributes",
    "walks",
    "formats",
    "transforms",
    "quantization",
    "analysis",
    "larger",
    "hostile",
)


def main() -> int:
    """Measure and print; the exit code is 1 with --check and a promise that is not kept."""
    if sys.argv[1:2] in (["hostile"], ["looks"], ["checkouts"]):
        return importlib.import_module(f"bench.{sys.argv[1]}").main(sys.argv[2:])  # type: ignore[no-any-return]
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ratios of onnxlab to other tools.")
    known = f"of {', '.join(GROUPS)} (all of these by default), {', '.join(TOPICS)}"
    parser.add_argument("groups", nargs="*", metavar="group", help=known)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a promise is not kept")
    options = parser.parse_args()
    chosen = options.groups or list(GROUPS)
    if unknown := set(chosen) - {*GROUPS, *TOPICS}:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join([*GROUPS, *TOPICS])}")
    with scratch_state():
        rows = measured(chosen)
    print(table(rows))
    print(
        f"\nPython {platform.python_version()}, onnxlab {onnxlab.__version__}, onnx {onnx.__version__}, "
        f"onnx-ir {onnx_ir.__version__}, onnxruntime {onnxruntime.__version__}, NumPy {np.__version__}, "
        f"{platform.machine()}"
    )
    return int(options.check and any(row.kept is False for row in rows))


def measured(chosen: list[str]) -> list[Line]:
    """The rows of some groups and topics, each told as it comes."""
    rows: list[Line] = []
    for group in chosen:
        measures = GROUPS[group] if group in GROUPS else importlib.import_module(f"bench.{group}").rows
        for row in measures():
            print(" | ".join(filter(None, row.cells())), file=sys.stderr, flush=True)  # a later failure loses nothing
            rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
