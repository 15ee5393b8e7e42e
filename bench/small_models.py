"""Small models on which onnxruntime was once far ahead: pipelines of scikit-learn, loops, graphs, text, int8 speech.

Each is made with fixed random weights, with feeds that are valid for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.pipelines import PIPELINES, Case, Feeds

_ML = "ai.onnx.ml"


class Writer:
    """Nodes and weights of a graph under way; `node` returns the name of what the node makes."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed  # also tells names of different graphs apart
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, array: Any, dtype: Any = np.int64) -> str:
        """Store an array."""
        name = f"c{self.seed}_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def normal(self, *shape: int) -> str:
        """Store random weights, by their fan-in."""
        scale = float(np.prod(shape[1:] if len(shape) > 2 else shape[:1])) ** -0.5
        return self.constant(self.rng.standard_normal(shape) * scale, np.float32)

    def node(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; the names of several outputs come as a list."""
        names = [f"v{self.seed}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def graph(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.GraphProto:
        """The graph, of (name, element type, dims) of inputs and outputs."""
        values = [[helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
        return helper.make_graph(self.nodes, name, values[0], values[1], self.weights)


def _model(graph: onnx.GraphProto, opset: int = 18) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(_ML, 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


# -- text --------------------------------------------------------------------------------------------------------------

_WORDS = (
    "graph",
    "node",
    "edge",
    "tensor",
    "kernel",
    "shape",
    "value",
    "input",
    "output",
    "weight",
    "the",
    "of",
    "and",
)


def text_pipeline() -> Case:
    """Lines to lower case, split at spaces, counted in n-grams, weighted and classified; labels are strings."""
    writer = Writer()
    flat = writer.node("StringNormalizer", "lines", case_change_action="LOWER", is_case_sensitive=1, locale="C")
    words = writer.node("StringSplit", flat, outputs=2, delimiter=" ")[0]
    ids = writer.node("LabelEncoder", words, domain=_ML, keys_strings=list(_WORDS), default_int64=-1,
                      values_int64s=list(range(len(_WORDS))))  # fmt: skip
    pairs = [(first, second) for first in range(8) for second in range(8) if first != second]
    counts = writer.node("TfIdfVectorizer", ids, mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
                         ngram_counts=[0, len(_WORDS)], ngram_indexes=list(range(len(_WORDS) + len(pairs))),
                         pool_int64s=[*range(len(_WORDS)), *(number for pair in pairs for number in pair)],
                         weights=writer.rng.uniform(0.5, 2, len(_WORDS) + len(pairs)).tolist())  # fmt: skip
    scores = writer.node("MatMul", counts, writer.normal(len(_WORDS) + len(pairs), 4))
    best = writer.node("ArgMax", scores, axis=1, keepdims=0)
    label = writer.node("LabelEncoder", best, domain=_ML, keys_int64s=list(range(4)),
                        values_strings=["one", "two", "three", "four"], default_string="")  # fmt: skip
    lines = np.array([" ".join(np.random.default_rng(row).choice(_WORDS, 12)).title() for row in range(6)], object)
    graph = writer.graph("text", [("lines", TensorProto.STRING, ["rows"])],
                         [(label, TensorProto.STRING, ["rows"]), (scores, TensorProto.FLOAT, ["rows", 4])])  # fmt: skip
    return _model(graph, 20), {"lines": lines}


def string_labels() -> Case:
    """Strings that are joined, searched by a pattern, and mapped to numbers."""
    writer = Writer()
    joined = writer.node("StringConcat", "a", "b")
    numbers = writer.node("LabelEncoder", joined, domain=_ML, keys_strings=[f"{a}{b}" for a in _WORDS for b in _WORDS],
                          values_floats=[float(i) for i in range(len(_WORDS) ** 2)], default_float=-1.0)  # fmt: skip
    matches = writer.node("RegexFullMatch", joined, pattern="(node|edge|graph).*")
    chosen = writer.node("Where", matches, numbers, writer.constant(0.0, np.float32))
    rng = np.random.default_rng(0)
    feeds: Feeds = {name: np.array(_WORDS, object)[rng.integers(0, len(_WORDS), 64)] for name in "ab"}
    kinds = [(name, TensorProto.STRING, ["rows"]) for name in "ab"]
    return _model(writer.graph("labels", kinds, [(chosen, TensorProto.FLOAT, ["rows"])]), 20), feeds


# -- graphs ------------------------------------------------------------------------------------------------------------


def graph_network(nodes: int = 64, edges: int = 256, width: int = 16) -> Case:
    """Two rounds of messages along edges, summed at their ends by ScatterElements and ScatterND; a mean over all."""
    writer = Writer()
    first, second = writer.constant(0), writer.constant(1)
    start, end = (writer.node("Gather", "edges", number, axis=0) for number in (first, second))
    state = "x"
    for number in range(2):
        shape = writer.node("Shape", state)
        zeros = writer.node("ConstantOfShape", shape)
        messages = writer.node("Gather", writer.node("MatMul", state, writer.normal(width, width)), start, axis=0)
        if number:
            places = writer.node("Unsqueeze", end, writer.constant([1]))
            sums = writer.node("ScatterND", zeros, places, messages, reduction="add")
        else:
            places = writer.node("Expand", writer.node("Unsqueeze", end, writer.constant([1])),
                                 writer.node("Shape", messages))  # fmt: skip
            sums = writer.node("ScatterElements", zeros, places, messages, axis=0, reduction="add")
        self_loops = writer.node("MatMul", state, writer.normal(width, width))
        state = writer.node("Relu", writer.node("Add", sums, self_loops))
    mean = writer.node("ReduceMean", state, writer.node("Unsqueeze", first, writer.constant([0])), keepdims=0)
    score = writer.node("Softmax", writer.node("MatMul", mean, writer.normal(width, 4)), axis=-1)
    inputs = [("x", TensorProto.FLOAT, ["nodes", width]), ("edges", TensorProto.INT64, [2, "edges"])]
    rng = np.random.default_rng(0)
    feeds: Feeds = {
        "x": rng.standard_normal((nodes, width)).astype(np.float32),
        "edges": rng.integers(0, nodes, (2, edges)),
    }
    return _model(writer.graph("messages", inputs, [(score, TensorProto.FLOAT, [4])])), feeds


# -- loops -------------------------------------------------------------------------------------------------------------


def _flag(name: str) -> tuple[str, int, list[int]]:
    return name, TensorProto.BOOL, []


def decode_loop(steps: int = 12, width: int = 32, words: int = 64) -> Case:
    """A Loop of a recurrent cell that chooses the best next word, and ends at a stop word: `steps` at most."""
    body = Writer(1)
    row = body.node("Gather", body.normal(words, width), "word", axis=0)
    mixed = body.node("Add", body.node("MatMul", row, body.normal(width, width)),
                      body.node("MatMul", "state", body.normal(width, width)))  # fmt: skip
    state = body.node("Tanh", mixed)
    scores = body.node("MatMul", state, body.normal(width, words))
    best = body.node("ArgMax", scores, axis=1, keepdims=0)
    going = body.node("Not", body.node("Equal", body.node("Squeeze", best), body.constant(words)))
    token = body.node("Identity", best)
    inner = body.graph(
        "step",
        [("number", TensorProto.INT64, []), _flag("before"), ("word", TensorProto.INT64, [1]),
         ("state", TensorProto.FLOAT, [1, width])],
        [_flag(going), (best, TensorProto.INT64, [1]), (state, TensorProto.FLOAT, [1, width]),
         (token, TensorProto.INT64, [1])],
    )  # fmt: skip
    writer = Writer()
    yes = writer.constant(True, np.bool_)
    _, final, chosen = writer.node("Loop", writer.constant(steps), yes, "first", "begin", outputs=3, body=inner)
    inputs = [("first", TensorProto.INT64, [1]), ("begin", TensorProto.FLOAT, [1, width])]
    outputs = [(chosen, TensorProto.INT64, None), (final, TensorProto.FLOAT, [1, width])]
    begin = np.random.default_rng(0).standard_normal((1, width)).astype(np.float32)
    return _model(writer.graph("decode", inputs, outputs)), {"first": np.array([3]), "begin": begin}


def branching_loop(steps: int = 16, width: int = 32) -> Case:
    """A Loop whose state takes one of two ways in each step, by an If on its sum, and grows a list by Concat."""
    ways = []
    for number, function in enumerate(("Sigmoid", "Tanh")):
        way = Writer(3 + number)
        out = way.node(function, way.node("MatMul", "state", way.normal(width, width)))
        ways.append(way.graph(f"way{number}", [], [(out, TensorProto.FLOAT, [1, width])]))
    body = Writer(2)
    total = body.node("ReduceSum", "state", keepdims=0)
    positive = body.node("Greater", total, body.constant(0, np.float32))
    state = body.node("If", positive, then_branch=ways[0], else_branch=ways[1])
    grown = body.node("Concat", "history", body.node("Unsqueeze", total, body.constant([0])), axis=0)
    going = body.node("Identity", "before")
    inner = body.graph(
        "step",
        [("number", TensorProto.INT64, []), _flag("before"), ("state", TensorProto.FLOAT, [1, width]),
         ("history", TensorProto.FLOAT, ["grown"])],
        [_flag(going), (state, TensorProto.FLOAT, [1, width]), (grown, TensorProto.FLOAT, ["more"])],
    )  # fmt: skip
    writer = Writer()
    empty, yes = writer.constant(np.zeros(0), np.float32), writer.constant(True, np.bool_)
    final, history = writer.node("Loop", writer.constant(steps), yes, "begin", empty, outputs=2, body=inner)
    outputs = [(final, TensorProto.FLOAT, [1, width]), (history, TensorProto.FLOAT, ["steps"])]
    begin = np.random.default_rng(0).standard_normal((1, width)).astype(np.float32)
    return _model(writer.graph("branching", [("begin", TensorProto.FLOAT, [1, width])], outputs)), {"begin": begin}


# -- sound -------------------------------------------------------------------------------------------------------------


def _quantized_conv(writer: Writer, x: str, inner: int, outer: int, size: int, **attributes: Any) -> str:
    """A convolution in 8 bits as onnxruntime's dynamic quantization writes it."""
    codes, scale, zero = writer.node("DynamicQuantizeLinear", x, outputs=3)
    weights = writer.constant(writer.rng.integers(100, 156, (outer, inner, size)), np.uint8)
    sums = writer.node("ConvInteger", codes, weights, zero, writer.constant(128, np.uint8), **attributes)
    factor = writer.node("Mul", scale, writer.constant(2e-2 / (inner * size) ** 0.5, np.float32))
    product = writer.node("Mul", writer.node("Cast", sums, to=TensorProto.FLOAT), factor)
    bias = writer.constant(writer.rng.standard_normal((1, outer, 1)) * 0.1, np.float32)
    return str(writer.node("Add", product, bias))


def _quantized_product(writer: Writer, x: str, inner: int, outer: int) -> str:
    codes, scale, zero = writer.node("DynamicQuantizeLinear", x, outputs=3)
    weights = writer.constant(writer.rng.integers(100, 156, (inner, outer)), np.uint8)
    sums = writer.node("MatMulInteger", codes, weights, zero, writer.constant(128, np.uint8))
    factor = writer.node("Mul", scale, writer.constant(2e-2 / inner**0.5, np.float32))
    product = writer.node("Mul", writer.node("Cast", sums, to=TensorProto.FLOAT), factor)
    return str(writer.node("Add", product, writer.constant(writer.rng.standard_normal(outer) * 0.1, np.float32)))


def speech_int8(words: int = 40, width: int = 96) -> Case:
    """Text to speech in 8 bits: encoder with attention, dilated convolutions with gates, upsampling to samples."""
    writer = Writer()
    x = writer.node("Gather", writer.normal(200, width), "ids", axis=0)
    for _ in range(2):
        q, k, v = (_quantized_product(writer, x, width, width) for _ in range(3))
        scores = writer.node("MatMul", q, writer.node("Transpose", k, perm=[0, 2, 1]))
        mixed = writer.node("MatMul", writer.node("Softmax", scores, axis=-1), v)
        x = writer.node("LayerNormalization", writer.node("Add", x, mixed), writer.constant(np.ones(width), np.float32),
                        writer.constant(np.zeros(width), np.float32), axis=-1)  # fmt: skip
    x = writer.node("Transpose", x, perm=[0, 2, 1])
    for level, stride in enumerate((4, 4)):
        inner, outer = width >> level, width >> (level + 1)
        for dilation in (1, 2, 4):
            y = _quantized_conv(writer, writer.node("LeakyRelu", x, alpha=0.1), inner, 2 * inner, 5,
                                dilations=[dilation], pads=[2 * dilation] * 2)  # fmt: skip
            a, b = writer.node("Split", y, outputs=2, axis=1, num_outputs=2)
            x = writer.node("Add", x, writer.node("Mul", writer.node("Tanh", a), writer.node("Sigmoid", b)))
        active, weights = writer.node("LeakyRelu", x, alpha=0.1), writer.normal(inner, outer, 2 * stride)
        x = writer.node("ConvTranspose", active, weights, strides=[stride], pads=[stride // 2] * 2)
    sound = writer.node("Tanh", _quantized_conv(writer, x, width // 4, 1, 7, pads=[3, 3]))
    graph = writer.graph("speech", [("ids", TensorProto.INT64, [1, "words"])], [(sound, TensorProto.FLOAT, None)])
    return _model(graph), {"ids": np.random.default_rng(0).integers(0, 200, (1, words))}


def audio_network(samples: int = 8000) -> Case:
    """Made-up audio to words: a spectrogram by STFT, its logarithm, four small convolutions and a classifier."""
    writer = Writer()
    frame = writer.constant(256)
    wave = writer.node("Unsqueeze", "wave", writer.constant([2]))
    spectrum = writer.node("STFT", wave, writer.constant(128), writer.constant(np.hanning(256), np.float32), frame)
    power = writer.node("ReduceSumSquare", spectrum, writer.constant([3]), keepdims=0)
    log = writer.node("Log", writer.node("Add", power, writer.constant(1e-6, np.float32)))
    x, inner = writer.node("Unsqueeze", log, writer.constant([1])), 1
    for outer in (8, 16, 24, 32):
        x = writer.node("Conv", x, writer.normal(outer, inner, 3, 3), strides=[1, 2], pads=[1, 1, 1, 1])
        x, inner = writer.node("Relu", x), outer
    pooled = writer.node("Flatten", writer.node("GlobalAveragePool", x))
    score = writer.node("Softmax", writer.node("MatMul", pooled, writer.normal(32, 10)), axis=-1)
    graph = writer.graph("audio", [("wave", TensorProto.FLOAT, [1, samples])], [(score, TensorProto.FLOAT, [1, 10])])
    time = np.arange(samples) / 16000
    wave_form = np.sin(2 * np.pi * 440 * time) + 0.3 * np.sin(2 * np.pi * 1200 * time * (1 + time))
    return _model(graph), {"wave": wave_form[None].astype(np.float32)}


CASES: dict[str, Callable[[], Case]] = {
    function.__name__: function
    for function in (
        *PIPELINES,
        text_pipeline,
        string_labels,
        graph_network,
        decode_loop,
        branching_loop,
        speech_int8,
        audio_network,
    )
}
"""The models by name; each call makes one and its feeds."""
