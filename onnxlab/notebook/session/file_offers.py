"""Files that were chosen in the browser: what each is, opened as a model, or its weights put into the model."""

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from onnxlab.errors import EditError, LoadError
from onnxlab.formats import registry
from onnxlab.formats.base.format import Content, Format
from onnxlab.formats.pt2.converting import missing_torch
from onnxlab.graph.protos.external_data import is_external
from onnxlab.notebook.edits.edit_requests import wired_values
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.notebook.protocol.uploads import Upload
from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.graph.handles.handles import Value
    from onnxlab.model import Model
    from onnxlab.model.weights import WeightReport

WIRED = 200
"""Inputs and outputs of a model that are sent."""

SHOWN = 8
"""Names of each kind in the preview of weights."""

_ODD = re.compile(r"[^\w.+ -]|^\.")


def offer(model: "Model", upload: Upload) -> JSON:
    """The kind of a file, and the effect of each way to use it on the model that is shown."""
    form = registry.by_content(Content.of(bytes(upload.data)))
    refused, opened = "", None
    try:
        opened = upload.opened()
    except LoadError as error:
        refused = _reason(upload, error)
    weights, misfit = _weights(model, upload, form)
    inputs, outputs = wired_values(opened) if opened else ([], [])
    return {
        "title": form.title if form is not None else "",
        "nodes": len(opened.proto.graph.node) if opened else 0,
        "initializers": len(opened.proto.graph.initializer) if opened else 0,
        "inputs": [_wired(opened, value) for value in inputs[:WIRED]],
        "outputs": [_wired(opened, value) for value in outputs[:WIRED]],
        "refused": refused,
        "note": misfit or _note(form, opened),
        "arrays": _arrays(upload, form, opened),
        "weights": weights,
        "torch": _converting(upload, form, refused),
    }


def _wired(opened: "Model | None", value: "Value") -> JSON:
    """An input or output that can be wired, as the page shows it."""
    label = str(opened.fact(value)) if opened else ""
    return {"name": printable(value.name), "label": printable(label)}


def _reason(upload: Upload, error: LoadError) -> str:
    """The refusal of a file, with the file's name in the browser in place of the number of its bytes."""
    text = str(error).removeprefix(f"cannot load {Content.of(bytes(upload.data)).label}: ")
    text = text.partition(" Where you trust it, ")[0]  # the page shows the statement for that
    if upload.data.lstrip()[:1] == b"{" and b'"weight_map"' in upload.data:
        text = "it lists files of weights that lie beside it: run model.files.load_weights(path) in a cell"
    return printable(f"{upload.name}: {text}")


def _note(form: Format | None, opened: "Model | None") -> str:
    """A note on missing parts: external data of the model, or torch for a file that torch converts."""
    if form is not None and form.convert is not None:
        return missing_torch()
    if opened is not None and any(is_external(tensor) for tensor in opened.proto.graph.initializer):
        return "Its weights lie in files beside it, which do not come along: onnxlab.load(path) opens it with them."
    return ""


def _arrays(upload: Upload, form: Format | None, opened: "Model | None") -> int:
    """The number of arrays in a file that can be used for an input or an initializer."""
    if opened is not None:
        return len(opened.proto.graph.initializer) if form is not None and form.name == "npz" else 0
    try:
        upload.array()
    except EditError:
        return 0
    return 1


# -- weights -----------------------------------------------------------------------------------------------------------


def _weights(model: "Model", upload: Upload, form: Format | None) -> tuple[JSON | None, str]:
    """The effect of applying a file of weights, and the reason why it cannot be applied."""
    if form is None or not form.weights:
        return None, ""
    try:
        return _preview(matched(model, upload, dry_run=True)), ""
    except EditError as error:
        return None, printable(str(error))


def _preview(report: "WeightReport") -> JSON:
    misfits = [f"{name}: {why}" for name, why in report.misfits.items()]
    lists = (list(report.missing), list(report.extra), misfits)
    shown = [[printable(f"{text:.200}") for text in texts[:SHOWN]] for texts in lists]
    return {
        "replaced": len(report.replaced), "missing": shown[0], "extra": shown[1], "misfits": shown[2],
        "more": [len(texts) - len(few) for texts, few in zip(lists, shown, strict=True)],
    }  # fmt: skip


def statement(upload: Upload, report: "WeightReport") -> str:
    """Python for applying the weights of a file."""
    strict = "" if not report.missing and not report.extra else ", strict=False"
    return f"model.files.load_weights({upload.name!r}{strict})"


def matched(model: "Model", upload: Upload, dry_run: bool) -> "WeightReport":
    """Replace initializers by the tensors of a file that have their names, or only report the effect.

    Raises:
        EditError: the file holds no weights, or a tensor has another shape or type than the initializer.
    """
    form = registry.by_content(Content.of(bytes(upload.data)))
    if form is None or not form.weights:
        raise EditError(f"{upload.name} holds no weights: choose a .safetensors or .npz file, or a training checkpoint")
    with tempfile.TemporaryDirectory(prefix="onnxlab-") as folder:
        # no character of the name may have a meaning in a path
        path = Path(folder) / (_ODD.sub("_", upload.name)[-100:] or "weights")
        path.write_bytes(upload.data)
        try:
            return model.files.load_weights(path, strict=False, dry_run=dry_run)
        except LoadError as error:
            raise EditError(str(error).replace(str(path), upload.name)) from None


# -- models ------------------------------------------------------------------------------------------------------------


def opened(upload: Upload) -> "Model":
    """The model in a file that the page sent, for the caller alone.

    Raises:
        ProtocolError: the file is no model.
    """
    try:
        return upload.taken()
    except LoadError as error:
        raise ProtocolError("failed", _reason(upload, error)) from error


def _converting(upload: Upload, form: Format | None, refused: str) -> str:
    """The statement by which torch converts a file; a page cannot request it, since it runs code of the file."""
    if form is None or form.convert is None:
        return ""
    inputs = ", inputs=['float32[N,3,224,224]']" if refused else ""
    return f"onnxlab.show(onnxlab.load({upload.name!r}, trust=True{inputs}))"
