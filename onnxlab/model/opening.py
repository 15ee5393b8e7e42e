"""`load`, `save`, `run` and `explain_error`: functions of the package's front door that deal with whole models."""

import os
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from onnxlab.argument_types import expect, listed
from onnxlab.errors import JournalWarning
from onnxlab.execution.base.node_models import as_model
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats import saving
from onnxlab.formats.loading_line import told
from onnxlab.formats.source import ModelSource
from onnxlab.graph.protos.nesting import nesting_refused
from onnxlab.model.model import Model
from onnxlab.model.running import Array

if TYPE_CHECKING:
    from onnxlab.analysis.messages.explaining import ErrorExplanation

EXAMPLE = Path(__file__).parents[1] / "data" / "digits.onnx"


def load(source: ModelSource | None = None, *, trust: bool = False, inputs: Sequence[Any] = ()) -> Model:
    """Open a model.

    A file may also be protobuf's text or JSON of a model, ONNX text, or a format that `onnxlab.formats` lists. External
    data is not read until it is needed. A line in a notebook's cell, or in a terminal, says that a file of 50 MB or
    more is being loaded.

    A JournalWarning says that edits of the file, made by hand or by a process that died, were never saved: see
    `Files.recover`. Edits that Python code made in a session that ended normally are listed in `Files.recoverable`
    without a warning.

    Args:
        source: a path, bytes or a ModelProto (which is kept, and mutated by edits); None: a small model that comes with
            onnxlab.
        trust: let torch convert a file of torch.export or TorchScript to ONNX, in a process of its own. That runs code
            which is in the file.
        inputs: the arguments of a TorchScript file, which has no shapes: for each a type, such as
            "float32[N,3,224,224]", or an array.

    Returns:
        Model: to look at, edit, run and save.

    Raises:
        LoadError: the file is missing, or is no model; the message says what it is instead. Or types of inputs are
            given for a file that has them.

    Examples:
        >>> onnxlab.load()
        <Model 'digits': 24 nodes, version 0>
    """
    expect(trust, bool, "trust", "True or False")
    expected = "a list of types, as ['float32[N,3,224,224]'], or arrays"
    types = [inputs] if isinstance(inputs, str) or hasattr(inputs, "dtype") else listed(inputs, "inputs", expected)
    if source is None:
        source = EXAMPLE.read_bytes()  # bytes, so that `save` does not overwrite it
    with nesting_refused(), told(source):
        model = Model(*onnx_format.read(source, trust, types))
    if model.files.recoverable and model.files.recoverable[-1].urgent:
        edits = model.files.recoverable[-1]
        verb, those = ("was", "it") if len(edits.labels) == 1 else ("were", "them")
        warnings.warn(
            f"{model.name}: {edits} {verb} never saved; model.files.recover() makes {those} again, "
            f"model.files.discard() forgets {those}",
            JournalWarning,
            stacklevel=2,
        )
    return model


def save(model: Model | onnx.ModelProto, path: str | PathLike[str]) -> Path:
    """Write a model as `Model.save` does; a plain ModelProto is written atomically too.

    Args:
        model: a Model or a ModelProto.
        path: where to.

    Returns:
        Path: where it was written.

    Raises:
        SaveError: the model cannot be written; the old file is untouched.

    Examples:
        >>> onnxlab.save(model.proto, "model.onnx").name
        'model.onnx'
    """
    if isinstance(model, Model):
        return model.save(path)
    expect(model, onnx.ModelProto, "model", "a Model or a ModelProto")
    saving.write(model, path)
    return Path(os.fsdecode(path))


def run(
    model: Model | ModelSource, feeds: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None
) -> dict[str, Array]:
    """Run a model once: `{name: array}` in and out.

    Args:
        model: a Model, a path, bytes, or a proto of a model, graph, function or node; a bare node or graph gets the
            newest operator versions.
        feeds: arrays by input, as `Model.run` takes them.
        outputs: names of any values; default: the graph's outputs.

    Returns:
        dict[str, Array]: the outputs by name.

    Raises:
        FeedError, RunError, UnsupportedOperatorError: as `Model.run`.

    Examples:
        >>> double = onnx.helper.make_node("Add", ["x", "x"], ["y"])
        >>> onnxlab.run(double, {"x": np.array([1, 2])})["y"]
        array([2, 4])
    """
    return (model if isinstance(model, Model) else load(as_model(model))).run(feeds, outputs)


def explain_error(text: str | BaseException, model: Model | None = None) -> tuple["ErrorExplanation", ...]:
    """Explain the error messages of onnx, onnxruntime and torch that are in a text.

    Args:
        text: the printed text, traceback included, or an exception.
        model: the model that the message came from, in which its nodes are looked up.

    Returns:
        tuple[ErrorExplanation, ...]: in the order of the text; none where no message is known.

    Examples:
        >>> onnxlab.explain_error("Unsupported model IR version: 99, max supported IR version: 13")[0].title
        'an IR version that the tool does not know'
        >>> onnxlab.explain_error("it does not work")
        ()
    """
    from onnxlab.analysis.messages.explaining import explanations
    from onnxlab.analysis.messages.places import places

    expect(text, (str, BaseException), "text", "the printed text of an error, or an exception")
    text = str(text)
    if model is None:
        return explanations(text)
    graph, problems = model.graph, model.check()
    return explanations(text, lambda message, about: places(graph, model.fact, problems, message, about))
