"""ORT format (.ort): models as ONNX Runtime keeps them for itself, on FlatBuffers."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from onnxlab.formats.base.format import Content, Format, Loss, Opened, Written


def _recognizes(content: Content) -> bool:
    return content.head[4:8] == b"ORTM"


def _read(content: Content) -> Opened:
    from onnxlab.formats.ort.decoding import decode

    return Opened(*decode(content.data))


def _write(model: onnx.ModelProto, extra: Any) -> Written:
    from onnxlab.formats.ort.saving import written

    return written(model, extra, 6)


def _losses(model: onnx.ModelProto, extra: Any) -> Sequence[Loss]:
    from onnxlab.formats.ort.saving import losses

    return losses(model, extra)


def _notes(extra: Any, message: Any) -> Mapping[str, str]:
    from onnxlab.formats.ort.runtime_optimizations import notes

    return notes(extra.optimizations, message) if extra is not None and isinstance(message, onnx.NodeProto) else {}


FORMAT = Format(
    "ort", "ORT format", (".ort",), _recognizes, _read, _write, _losses, rank=10, holds_external_data=False,
    notes=_notes,
)  # fmt: skip
