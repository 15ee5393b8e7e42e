"""Training checkpoints of ONNX Runtime: a model of initializers alone, with the state of the optimizer beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from onnxlab.formats.base.format import Content, Format, FormatLoss, OpenedFile, Written


def _recognizes(content: Content) -> bool:
    return content.head[4:8] == b"ODTC"


def _read(content: Content) -> OpenedFile:
    from onnxlab.formats.ort.checkpoint import decode

    checkpoint = decode(content.data, content.path)
    model = onnx.ModelProto(ir_version=10, producer_name="onnxruntime-training")
    model.opset_import.add(version=21)
    model.graph.name = content.path.stem if content.path is not None else "checkpoint"
    model.graph.initializer.extend(checkpoint.parameters.values())
    return OpenedFile(model, checkpoint)


def _write(model: onnx.ModelProto, extra: Any) -> Written:
    from onnxlab.formats.ort import checkpoint

    lost = [f"{loss.what} {loss.where}" for loss in _losses(model, extra)]
    if isinstance(extra, checkpoint.TrainingCheckpoint):
        written, gone = checkpoint.with_values(extra, list(model.graph.initializer))
        lost += [f"the state of {name!r}" for name in gone]
    else:
        written = checkpoint.of_model(model.graph.initializer)
    return Written(written.to_bytes(), f"a checkpoint does not hold {', '.join(lost[:8])}" if lost else "")


def _losses(model: onnx.ModelProto, extra: Any) -> Sequence[FormatLoss]:
    graph = model.graph
    counts = (("nodes", len(graph.node)), ("inputs", len(graph.input)), ("outputs", len(graph.output)))
    return [
        FormatLoss(part, f"({count})", "left out: a checkpoint has parameters alone") for part, count in counts if count
    ]


def _notes(extra: Any, message: Any) -> Mapping[str, str]:
    if extra is None or not isinstance(message, onnx.TensorProto):
        return {}
    row = next((row for row in extra.table() if row.name == message.name), None)
    if row is None:
        return {}
    norms = {f"Norm of {name}": f"{norm:.6g}" for name, norm in row.momentums.items()}
    steps = {f"Steps of {group.name}": str(group.step) for group in extra.groups if row.name in group.momentums}
    return {"In training": row.group, **steps, **norms}


_COLUMNS = ("Parameter", "Group", "Type", "Mean", "Std", "Least", "Most", "Zeros", "NaN", "Norms of momentums")


def _table(extra: Any) -> tuple[Mapping[str, str], tuple[str, ...], Sequence[tuple[str, ...]]]:
    if extra is None:
        return {}, (), ()
    details = {f"Steps of {group.name}": f"{group.step}, from rate {group.learning_rate:.6g}" for group in extra.groups}
    details |= {name: str(value) for name, value in extra.properties.items()}
    return details, _COLUMNS, [_texts(row) for row in extra.table()]


def _texts(row: Any) -> tuple[str, ...]:
    numbers = (row.mean, row.std, row.minimum, row.maximum)
    return (
        row.name, row.group, f"{row.dtype}[{','.join(map(str, row.shape))}]",
        *("" if number is None else f"{number:.6g}" for number in numbers),
        "" if row.zeros is None else f"{row.zeros:.1%}", "" if row.nan is None else str(row.nan),
        ", ".join(f"{name} {norm:.6g}" for name, norm in row.momentums.items()),
    )  # fmt: skip


FORMAT = Format(
    "checkpoint", "a training checkpoint", (".ckpt",), _recognizes, _read, _write, _losses, rank=11,
    holds_external_data=False, notes=_notes, table=_table, weights=True,
)  # fmt: skip
