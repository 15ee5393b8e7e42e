"""ORT format (.ort): models as ONNX Runtime keeps them for itself, on FlatBuffers."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from onnxlab.formats.base.format import Content, Format, FormatLoss, OpenedFile, Written


def _recognizes(content: Content) -> bool:
    return content.head[4:8] == b"ORTM"


def _read(content: Content) -> OpenedFile:
    from onnxlab.formats.ort.decoding import decode

    return OpenedFile(*decode(content.data))


def _write(model: onnx.ModelProto, extra: Any) -> Written:
    from onnxlab.formats.ort.saving import written

    return written(model, extra, 6)


def _losses(model: onnx.ModelProto, extra: Any) -> Sequence[FormatLoss]:
    from onnxlab.formats.ort.saving import losses

    return losses(model, extra)


def _notes(extra: Any, message: Any) -> Mapping[str, str]:
    from onnxlab.formats.ort.runtime_optimizations import notes

    if extra is None or not isinstance(message, onnx.NodeProto):
        return {}
    provider = extra.providers.get(tuple(message.output))
    return {**({"Execution provider": provider} if provider else {}), **notes(extra.optimizations, message)}


_COLUMNS = ("Optimizer", "Action", "Nodes", "Makes")


def _table(extra: Any) -> tuple[Mapping[str, str], tuple[str, ...], Sequence[tuple[str, ...]]]:
    """The version, the order of nodes in the file, and the runtime optimizations that it holds."""
    if extra is None:
        return {}, (), ()
    details = {"Version": extra.version, "Kernels": f"of {len(extra.kernel_types)} operators, by types"}
    if not extra.order:
        details["Order"] = "nodes are stored in another order than they run in"
    rows = [record.texts() for record in extra.optimizations]
    return details, _COLUMNS if rows else (), rows


FORMAT = Format(
    "ort", "ORT format", (".ort",), _recognizes, _read, _write, _losses, rank=10, holds_external_data=False,
    notes=_notes, table=_table,
)  # fmt: skip
