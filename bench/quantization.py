"""Models in fewer bits beside onnxruntime.quantization: bytes, how near outputs are on other inputs, time of runs.

Each pair is run in one process, by onnxruntime with one thread and by this package; inputs to compare on are not those
of the calibration.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime import quantization as theirs

import onnxlab
from bench.measure import Figure, Line, timed
from onnxlab.execution.base import background
from tests.support.corpus import path

MODELS = {"resnet50": ("int8",), "bert_base": ("int8", "int8_dynamic"), "whisper_encoder": ("int8", "int8_dynamic")}
"""By model, the forms; onnxruntime 1.31 fails to quantize ResNet-50 for ranges of each run."""
Feeds = Mapping[str, Any]


class _Reader(theirs.CalibrationDataReader):  # type: ignore[misc]
    """Inputs one by one, as onnxruntime's calibration asks for them."""

    def __init__(self, samples: Sequence[Feeds]) -> None:
        self._samples = iter(samples)

    def get_next(self) -> Feeds | None:
        """The next inputs."""
        return next(self._samples, None)


def rows() -> Iterator[Line]:
    """Bytes, distance of outputs and time, by model and form."""
    onnxruntime.set_default_logger_severity(4)
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            yield from _model(name, Path(folder))


def _model(name: str, folder: Path) -> Iterator[Line]:
    samples = [onnxlab.load(path(name)).sample_inputs(seed=seed) for seed in range(5)]
    calibrating, other = samples[:4], samples[4]
    source, result = folder / "source.onnx", str(folder / "theirs.onnx")
    model = onnxlab.load(path(name))
    model.save(source)
    before = _session(source.read_bytes()).run(None, other)

    def static() -> None:
        theirs.quantize_static(
            source, result, _Reader(calibrating), per_channel=True, activation_type=theirs.QuantType.QUInt8
        )

    forms: tuple[tuple[str, dict[str, Any], Callable[[], None]], ...] = (
        ("int8", {"calibrate": calibrating}, static),
        ("int8_dynamic", {}, lambda: theirs.quantize_dynamic(source, result, per_channel=True)),
    )
    for form, options, quantize in [entry for entry in forms if entry[0] in MODELS[name]]:
        ours = onnxlab.load(path(name))
        took = timed(lambda: ours.quantize(form, verify=False, **options))  # type: ignore[arg-type]  # noqa: B023
        other_took = timed(quantize)
        data, other_data = ours.to_bytes(), Path(result).read_bytes()
        yield Figure(
            f"{name} {form}: bytes", len(data) / len(other_data), "times", note="of onnxruntime.quantization's"
        )
        yield Figure(f"{name} {form}: time of the tool", took / other_took, "times", note="of the same")
        sessions = _session(data), _session(other_data)
        near = [_distance(session.run(None, other), before) for session in sessions]
        yield Figure(f"{name} {form}: error of outputs", 100 * near[0], "%", note=f"theirs {100 * near[1]:.3g} %")
        times = [min(timed(lambda: run.run(None, other)) for _ in range(20)) for run in sessions]  # noqa: B023
        yield Figure(f"{name} {form}: run by onnxruntime", times[0] / times[1], "times", note="of theirs")
        for _ in range(4):
            ours.run(other)
            background.wait()
        pace = min(timed(lambda: ours.run(other)) for _ in range(20))  # noqa: B023
        yield Figure(f"{name} {form}: run here", pace / times[0], "times", note="of onnxruntime's run of it")


def _session(data: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _distance(now: list[Any], before: list[Any]) -> float:
    """The difference of all outputs as part of them, both as the root of the sum of squares."""
    floats = [pair for pair in zip(now, before, strict=True) if pair[1].dtype.kind == "f"]
    off = sum(float(np.sum(np.square(new.astype(np.float64) - old))) for new, old in floats)
    return float(np.sqrt(off / sum(float(np.sum(np.square(old.astype(np.float64)))) for _, old in floats)))
