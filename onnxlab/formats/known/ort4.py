"""ORT format in version 4, for ONNX Runtime before 1.13: without the types that choose kernels. Written on request."""

from typing import Any

import onnx

from onnxlab.formats.base.format import Format, Written
from onnxlab.formats.known import ort


def _write(model: onnx.ModelProto, extra: Any) -> Written:
    from onnxlab.formats.ort.saving import written

    return written(model, extra, 4)


FORMAT = Format(
    "ort4", "ORT format, version 4", (), lambda content: False, None, _write, ort.FORMAT.losses,
    holds_external_data=False,
)  # fmt: skip
