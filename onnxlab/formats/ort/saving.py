"""Writing models in ORT format, by ourselves where that suffices, else by onnxruntime where it is installed."""

import tempfile
from pathlib import Path
from typing import Any

import onnx

from onnxlab.errors import SaveError
from onnxlab.formats.base.format import FormatLoss, Written
from onnxlab.formats.ort.decoding import OrtExtra
from onnxlab.formats.ort.encoding import encode
from onnxlab.formats.ort.preparing import losses as lost_by_kind
from onnxlab.formats.ort.preparing import prepared, without_kernels


def written(model: onnx.ModelProto, extra: Any, version: int) -> Written:
    """A model in a version of ORT format.

    Raises:
        SaveError: the format lacks a type of the model, or only onnxruntime could write the model and is not installed.
    """
    extra = extra if isinstance(extra, OrtExtra) else None
    lost = list(lost_by_kind(model))
    if refused := [loss for loss in lost if loss.refused]:
        raise SaveError("; ".join(map(str, refused[:3])))
    ready = prepared(model)
    if nodes := without_kernels(ready):
        shown = ", ".join(nodes[:4]) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
        return Written(_by_onnxruntime(model, shown, version), _told(lost, []))
    data, dropped = encode(ready, extra, version)
    return Written(data, _told(lost, [str(entry) for entry in dropped]))


def losses(model: onnx.ModelProto, extra: Any) -> list[FormatLoss]:
    """The parts of a model that ORT format does not hold."""
    lost = list(lost_by_kind(model))
    if isinstance(extra, OrtExtra):
        gone = [entry for entry in extra.optimizations if entry.present(model.graph) is None]
        why = "left out: an edit touched one of its nodes"
        lost += [FormatLoss("runtime optimization", str(entry), why) for entry in gone]
    try:
        nodes = without_kernels(prepared(model))
    except SaveError as error:
        return [*lost, FormatLoss("types", "of values", str(error), refused=True)]
    if nodes and not _can_ask():
        why = "ONNX Runtime has no kernel for it, and onnxruntime, which writes it in others, is not installed"
        lost += [FormatLoss("type", label, why, refused=True) for label in nodes]
    elif nodes:
        lost.append(
            FormatLoss(
                "nodes", ", ".join(nodes[:4]), "onnxruntime writes their functions out, or Casts to float32 around them"
            )
        )
    return lost


def _told(lost: list[FormatLoss], dropped: list[str]) -> str:
    """The sentence on lost parts, without those that have another form in the file, such as constants."""
    kinds: dict[str, int] = {}
    for loss in lost:
        if loss.what not in ("constant", "name"):
            kinds[loss.what] = kinds.get(loss.what, 0) + 1
    parts = [f"{kind} ({count})" for kind, count in kinds.items()] + [
        f"runtime optimization {entry}" for entry in dropped
    ]
    return f"ORT format does not hold all of this model; lost or inlined: {', '.join(parts)}" if parts else ""


def _can_ask() -> bool:
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


def _by_onnxruntime(model: onnx.ModelProto, nodes: str, version: int) -> bytes:
    """The bytes that onnxruntime itself writes: functions written out, Casts around nodes without float16 kernels."""
    if not _can_ask():
        raise SaveError(
            f"ONNX Runtime has no kernel, or none for float16, of {nodes}: when it loads ONNX it writes functions out "
            "and inserts Casts; install onnxruntime to write this model"
        )
    if version != 6:
        raise SaveError(f"only onnxruntime can write this model, for want of kernels of {nodes}: it writes version 6")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.add_session_config_entry("session.save_model_format", "ORT")
    with tempfile.TemporaryDirectory(prefix="onnxlab-") as folder:
        target = Path(folder) / "model.ort"
        options.optimized_model_filepath = str(target)
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            return target.read_bytes()
        except Exception as error:  # onnxruntime raises many kinds of errors
            raise SaveError(f"onnxruntime cannot write this model: {error}") from error
