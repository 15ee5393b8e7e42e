"""Boxes of detectors in the layouts that exporters write, and spectrograms, against numbers that are known."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.notebook.panels import detections, tensor_planes
from onnxlab.notebook.panels.spectrograms import spectrogram
from onnxlab.notebook.panels.tensor_views import Tensors
from onnxlab.notebook.protocol.messages import ProtocolError
from tests.notebook.conftest import Page

Array = np.ndarray[Any, Any]
WIDTH, HEIGHT = 64, 32
BOXES = np.array([[8, 4, 24, 20], [32, 8, 64, 32]], np.float32)
SHARES = (BOXES / [WIDTH, HEIGHT, WIDTH, HEIGHT]).tolist()
CENTERS = np.concatenate([(BOXES[:, :2] + BOXES[:, 2:]) / 2, BOXES[:, 2:] - BOXES[:, :2]], axis=1)


def detector(**outputs: Array) -> onnxlab.Model:
    """A model that takes an image and gives these arrays."""
    kinds = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("int64"): TensorProto.INT64}
    nodes, weights = [], []
    for name, array in outputs.items():
        weights.append(numpy_helper.from_array(array, f"{name}_stored"))
        nodes.append(helper.make_node("Identity", [f"{name}_stored"], [name]))
    nodes.append(helper.make_node("Shape", ["image"], ["size"]))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, HEIGHT, WIDTH])
    ends = [helper.make_tensor_value_info(name, kinds[array.dtype], array.shape) for name, array in outputs.items()]
    graph = helper.make_graph(nodes, "g", [image], ends, weights)
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    model.run({"image": np.zeros((1, 3, HEIGHT, WIDTH), np.float32)})
    return model


def read(model: onnxlab.Model, name: str = "y", layout: str | None = None) -> list[tuple[list[float], float, int]]:
    answer = detections.boxes(model, Tensors(model), model.value(name).id, None, layout)
    assert answer["image"] == model.value("image").id
    return [(box["corners"], box["score"], box["label"]) for box in answer["boxes"]]


def columns(*parts: Any) -> Array:
    return np.concatenate([np.reshape(part, (2, -1)) for part in parts], axis=1).astype(np.float32)


SCORES, LABELS = [0.9, 0.5], [3, 7]
ONE_HOT = np.eye(11)[LABELS] * np.reshape(SCORES, (2, 1))
FULL = np.concatenate([columns(CENTERS, ONE_HOT), np.zeros((200, 15), np.float32)])


@pytest.mark.parametrize(
    "array",
    [
        columns(BOXES, SCORES, LABELS),
        columns(LABELS, SCORES, BOXES),
        columns([0, 0], LABELS, SCORES, BOXES),
        columns([0, 0], BOXES, LABELS, SCORES),
        columns(BOXES / [WIDTH, HEIGHT, WIDTH, HEIGHT], SCORES, LABELS)[None],
        columns(CENTERS, [1, 1], ONE_HOT)[None],
        np.ascontiguousarray(FULL.T)[None],
    ],
    ids=["box-score-class", "class-score-box", "image-class-score-box", "image-box-class-score", "shares", "yolov5",
         "yolov8"],
)  # fmt: skip
def test_rows_of_every_known_layout_are_the_same_boxes(array: Array) -> None:
    boxes = read(detector(y=array))[:2]
    assert np.allclose([corners for corners, _, _ in boxes], SHARES, atol=1e-6)
    assert [(round(score, 6), label) for _, score, label in boxes] == list(zip(SCORES, LABELS, strict=True))


def test_boxes_that_stand_alone_take_scores_and_classes_from_the_other_outputs() -> None:
    model = detector(y=BOXES[None], scores=np.array([[0.2, 0.8]], np.float32), labels=np.array([[5, 6]], np.int64))
    assert [(round(score, 6), label) for _, score, label in read(model)] == [(0.8, 6), (0.2, 5)]
    assert np.allclose(
        read(model, layout="corners, y first")[1][0], np.array(BOXES[0])[[1, 0, 3, 2]] / [64, 32, 64, 32]
    )


def test_what_is_no_list_of_boxes_is_refused(page: Page, model: onnxlab.Model) -> None:
    broken = detector(y=np.full((2, 6), np.nan, np.float32), z=np.zeros((5, 3), np.float32))
    assert read(broken)[0][0] == ["nan"] * 4
    with pytest.raises(ProtocolError, match="no list of boxes"):
        read(broken, "z")
    with pytest.raises(ProtocolError, match="a layout is one of"):
        read(broken, layout="polar")
    page.ask("run", nodes=None)
    assert page.refused("boxes", value=model.value("w").id, item=None, layout=None)["code"] == "nothing"


def test_a_spectrogram_has_its_peak_where_the_tone_is() -> None:
    count, cycles = 16_000, 0.125  # of the sampling rate
    tone = np.sin(2 * np.pi * cycles * np.arange(count))[None].astype(np.float32)
    plane = tensor_planes.plane(tone.shape, None, 1, [0, 0])
    picture = spectrogram(tone, plane, 256)
    codes = np.frombuffer(picture.data, np.uint8).reshape(picture.height, picture.width)
    assert codes.shape[1] <= 256
    loudest = codes.shape[0] - codes.argmax(0)  # counted from below, in shares of half the sampling rate
    assert np.all(np.abs(loudest / codes.shape[0] - 2 * cycles) < 0.01)
    assert picture.high - picture.low == pytest.approx(80)
    tone[0, 8000] = np.nan
    codes = np.frombuffer(spectrogram(tone, plane, 256).data, np.uint8).reshape(codes.shape)
    assert 0 < (codes == tensor_planes.NAN).all(0).sum() < 8
    assert spectrogram(tone[:, :1], tensor_planes.plane((1, 1), None, 1, None), 256).width == 1
