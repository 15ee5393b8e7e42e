"""ONNX by its specification, on request: what a model in Glow's dialect computes, in operators of ai.onnx."""

from collections.abc import Sequence
from typing import Any

import onnx

from onnxlab.formats.base.format import Content, Format, FormatLoss, Written


def _recognizes(content: Content) -> bool:
    return False  # its files are ONNX


def _write(model: onnx.ModelProto, extra: Any) -> Written:
    from onnxlab.formats.glow import standard

    lost = standard.losses(model)
    if refused := [loss for loss in lost if loss.refused]:
        raise ValueError("; ".join(map(str, refused[:3])))
    kinds = dict.fromkeys(loss.what for loss in lost)
    warning = f"ONNX does not hold what Glow says besides: {', '.join(kinds)}" if kinds else ""
    return Written(standard.standard(model).SerializeToString(), warning)


def _losses(model: onnx.ModelProto, extra: Any) -> Sequence[FormatLoss]:
    from onnxlab.formats.glow import standard

    return standard.losses(model)


FORMAT = Format(
    "standard", "ONNX by its specification", (), _recognizes, None, _write, _losses, rank=90, holds_external_data=False,
)  # fmt: skip
