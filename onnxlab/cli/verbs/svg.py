"""`onnxlab svg`: a picture or a page of a model."""

import argparse
import os

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import STDOUT, answer, deliver
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE
from onnxlab.cli.base.inputs import open_model, whole
from onnxlab.errors import SaveError


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    svg = verbs.add("svg", _svg, "draw the model as SVG, PNG or a page to explore")
    entries.output(svg, "file to write, .svg, .png or .html by its name; default: SVG on standard output")
    svg.add_argument("--boxes", type=whole, default=120, help="fold groups until at most this many boxes show (120)")


def _svg(options: argparse.Namespace) -> int:
    from onnxlab.formats import kinds, output

    to_stdout = options.output in (None, STDOUT)
    suffix = os.path.splitext(options.output or "")[1].lower()
    kind = next((kind for kind in (kinds.SVG, kinds.PNG, kinds.PAGE) if suffix in kind.suffixes), None)
    if not to_stdout and kind is None:
        raise SaveError(f"cannot write {options.output!r}: give a name that ends in .svg, .png or .html")
    model, boxes = open_model(options), max(1, options.boxes)
    if kind is None:
        drawn = model.to_svg(None, boxes)
        if options.json:
            answer(options, lambda: {"svg": drawn}, lambda: drawn)
        else:
            deliver(drawn)
        return DONE
    output.check(options.output, kind, [model.path])  # before anything is drawn
    if kind is kinds.PAGE:
        model.to_html(options.output)
    elif kind is kinds.PNG:
        model.to_png(options.output, boxes)
    else:
        model.to_svg(options.output, boxes)
    if options.json:
        answer(options, lambda: {"written": options.output}, str)
    return DONE
