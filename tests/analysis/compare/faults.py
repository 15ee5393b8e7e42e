"""Models with one planted fault: a weight that is off, a wrong attribute, a rounding that is dropped."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.analysis.compare.error import error
from onnxlab.errors import OnnxlabError
from tests.analysis.diff.truth import copied, renamed_and_shuffled
from tests.support import corpus

MODELS = (
    "bert_base", "gpt2_kv", "light_squeezenet", "lstm_gru", "magika", "rapidocr_cls", "rapidocr_rec", "resnet50",
    "silero_vad_op18_ifless", "stft_audio", "whisper_encoder", "mobilenet_fp16", "tashkeel_bilstm_int8", "minilm_int8",
)  # fmt: skip
VISIBLE = 1e-3
"""Relative difference that a fault makes at its own node at least: what is below shows nowhere."""

KINDS = ("weight", "attribute", "rounding")


@dataclass(frozen=True, slots=True)
class Fault:
    """A pair of models; in the second everything has another name and another place.

    Attributes:
        node: label of the guilty node in the first one.
    """

    a: onnxlab.Model
    b: onnxlab.Model
    inputs: dict[str, Any]
    node: str
    kind: str
    model: str


SMALL = ("lstm_gru", "stft_audio", "silero_vad_op18_ifless", "tashkeel_bilstm_int8")


def planted(seed: int, kind: str = "", models: Sequence[str] = MODELS) -> Fault:
    """The fault of a seed; drawn again until it shows."""
    rng = random.Random(seed)
    while True:
        name, chosen = rng.choice(models), kind or KINDS[seed % len(KINDS)]
        path = corpus.path(name)
        base = onnx.load(path)
        for number, node in enumerate(base.graph.node):
            node.name = f"node_{number}"
        pair = {"weight": _weight, "attribute": _attribute, "rounding": _rounding}[chosen](base, rng)
        if pair is None:
            continue
        a, b, guilty = pair
        feeds = corpus.inputs(name, path)
        shows = _shows(a, b, guilty, feeds)
        if shows:
            shuffled, _ = renamed_and_shuffled(b, rng)
            return Fault(onnxlab.load(a), onnxlab.load(shuffled), feeds, guilty, chosen, name)


def _shows(a: onnx.ModelProto, b: onnx.ModelProto, guilty: str, feeds: dict[str, Any]) -> bool:
    """Whether the fault makes a difference at its node that roundings do not."""
    output = next(node.output[0] for node in a.graph.node if node.name == guilty)
    try:
        array, other = (onnxlab.load(copied(model)).run(feeds, [output], strict=False)[output] for model in (a, b))
    except OnnxlabError:
        return False
    off = error(array, other)
    return VISIBLE < off.relative < float("inf") and array.shape == other.shape


Pair = tuple[onnx.ModelProto, onnx.ModelProto, str]


def _weight(base: onnx.ModelProto, rng: random.Random) -> Pair | None:
    b = copied(base)
    readers = Counter(name for node in b.graph.node for name in node.input)
    tensors = {tensor.name: tensor for tensor in b.graph.initializer if tensor.data_type in (1, 10)}
    choices = [(node, name) for node in b.graph.node for name in node.input if name in tensors and readers[name] == 1]
    if not choices:
        return None
    node, name = rng.choice(choices)
    array = numpy_helper.to_array(tensors[name]).copy()
    array *= array.dtype.type(1.05)
    tensors[name].CopyFrom(numpy_helper.from_array(array, name))
    return base, b, node.name


def _attribute(base: onnx.ModelProto, rng: random.Random) -> Pair | None:
    b = copied(base)
    choices = [(node, item) for node in b.graph.node for item in node.attribute if item.type in (1, 2, 7)]
    if not choices:
        return None
    node, item = rng.choice(choices)
    if item.type == onnx.AttributeProto.FLOAT:
        item.f = item.f * 1.5 + 0.1
    elif item.type == onnx.AttributeProto.INT:
        item.i = rng.choice((item.i + 1, item.i - 1, -item.i))
    elif item.ints:
        at = rng.randrange(len(item.ints))
        item.ints[at] += rng.choice((1, -1))
    return base, b, node.name


def _rounding(base: onnx.ModelProto, rng: random.Random) -> Pair | None:
    """A value is rounded to 1/32 in the first model, and passed on in the second."""
    a = copied(base)
    graph = a.graph
    version = next(entry.version for entry in a.opset_import if entry.domain in ("", "ai.onnx"))
    places = [at for at, node in enumerate(graph.node) if node.op_type in ("Conv", "MatMul", "Gemm", "Add", "Relu")]
    if version < 11 or not places:
        return None
    at = rng.choice(places)
    source = graph.node[at].output[0]
    if source in {output.name for output in graph.output}:
        return None
    for node in graph.node:
        node.input[:] = ["rounded" if name == source else name for name in node.input]
    scales = [numpy_helper.from_array(np.float32(number), name) for name, number in (("fine", 32), ("coarse", 1 / 32))]
    graph.initializer.extend(scales)
    steps = [
        helper.make_node("Mul", [source, "fine"], ["scaled"], "scale_up"),
        helper.make_node("Round", ["scaled"], ["whole"], "round_here"),
        helper.make_node("Mul", ["whole", "coarse"], ["rounded"], "scale_down"),
    ]
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    del graph.node[:]
    graph.node.extend([*nodes[: at + 1], *steps, *nodes[at + 1 :]])
    b = copied(a)
    b.graph.node[at + 2].op_type = "Identity"
    return a, b, "round_here"
