"""`onnxlab convert`: a model in another format, and what that format does not hold."""

import argparse
import os
import warnings

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import STDOUT, answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE, UNWRITABLE, UsageError
from onnxlab.cli.base.inputs import open_model
from onnxlab.cli.base.outputs import check_model, outcome, save_model
from onnxlab.errors import SaveError, SaveWarning


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    convert = verbs.add("convert", _convert, "write the model in another format")
    words = "file to write, in the format of its suffix, or - for standard output; none: only say what is lost"
    entries.trailing(convert, "output", words, "?")
    entries.output(convert, "the same file, as the other commands take it", dest="file")
    convert.add_argument("--format", help="name of the format to write, whatever the suffix of the file")
    places = convert.add_mutually_exclusive_group()
    words = "put large weights into a data file beside the model, as models of 2 GB or more need"
    places.add_argument("--external-data", action="store_true", default=None, help=words)
    words = "take the weights of data files into the model's file"
    places.add_argument("--embed-data", action="store_false", dest="external_data", default=None, help=words)
    words = "let torch convert a .pt2 or TorchScript file, which runs code that is in it"
    convert.add_argument("--trust", action="store_true", help=words)
    words = "type of an argument of a TorchScript file, such as 'float32[N,3,224,224]'; once for each"
    convert.add_argument("--input", action="append", default=[], metavar="TYPE", help=words)


def _convert(options: argparse.Namespace) -> int:
    from onnxlab.formats import kinds, registry
    from onnxlab.formats.paths import absolute

    if options.output and options.file:
        raise UsageError(f"two files to write, {options.output!r} and {options.file!r}: give one")
    name = options.output or options.file or ""
    format_name = options.format or os.path.splitext(name)[1]
    try:
        form = registry.by_name(format_name)
    except LookupError as error:
        why = f"{error.args[0]}; name one with --format" if name else "name a file to write, or a format with --format"
        raise SaveError(f"cannot convert {options.model}: {why}") from None
    model = open_model(options)
    if name not in ("", STDOUT) and form.write is not None:
        check_model(name, [model.path])
        kinds.refuse_for_a_model(absolute(name), form)
    report = model.files.loss_report(form.name)
    if name and not report.refused:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SaveWarning)  # the report lists what this warning says in one line
            save_model(model, name, [model.path], form.name, options.external_data)
    losses = [{name: getattr(loss, name) for name in ("what", "where", "why", "refused")} for loss in report]
    words = str(report) if report.refused else f"{report}\n{outcome(name)}"
    answer(options, lambda: {"format": form.name, "losses": losses}, lambda: words)
    return UNWRITABLE if report.refused else DONE
