"""Words of the field for a set of nodes: "attention", "residual block", "conv·bn·relu"."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile

from onnxlab.graph.query.parameter_scopes import COUNTED
from onnxlab.ops import layer_operators

ACTIVATIONS = {
    "Relu": "relu", "LeakyRelu": "leaky relu", "PRelu": "prelu", "Gelu": "gelu", "Erf": "gelu", "Sigmoid": "sigmoid",
    "HardSwish": "hard-swish", "HardSigmoid": "hard-sigmoid", "Clip": "clip", "Tanh": "tanh", "Elu": "elu",
    "Softplus": "softplus", "Mish": "mish", "Swish": "silu", "QuickGelu": "gelu", "FastGelu": "gelu",
}  # fmt: skip
NORMS = {
    "BatchNormalization": "batch norm", "LayerNormalization": "layer norm", "InstanceNormalization": "instance norm",
    "GroupNormalization": "group norm", "RMSNormalization": "RMS norm", "SimplifiedLayerNormalization": "RMS norm",
    "SkipLayerNormalization": "layer norm", "SkipSimplifiedLayerNormalization": "RMS norm", "LRN": "LRN",
}  # fmt: skip
POOLS = {
    "MaxPool": "max pool", "AveragePool": "average pool", "GlobalAveragePool": "global pool",
    "GlobalMaxPool": "global pool", "LpPool": "pool", "ReduceMean": "mean", "ReduceMax": "max",
}  # fmt: skip
SINGLE = {
    "Softmax": "softmax", "LogSoftmax": "softmax", "Resize": "resize", "Upsample": "resize", "STFT": "STFT",
    "NonMaxSuppression": "NMS", "TopK": "top-k", "Concat": "concat", "TreeEnsembleClassifier": "tree ensemble",
    "TreeEnsembleRegressor": "tree ensemble", "Loop": "loop", "If": "if", "Scan": "scan",
    "QuantizeLinear": "quantize", "DequantizeLinear": "dequantize",
}  # fmt: skip
QUANTIZING = ("QuantizeLinear", "DequantizeLinear")
"""Operators that name a group where nothing else does."""
LEAST_TOLD = 2
MIXED = ("convolutions + attention", "branches")
"""Words that are too general for groups whose parts have words of their own."""
_LAYER = "transformer layer"
_WHOLE = (_LAYER, "attention", "residual block", "MLP", "inverted residual", "NMS")
"""Parts that a group is named after even where it has only one of them."""
MOST_SUMMED = 2
"""Most kinds of parts that a group is named after."""
_MEANINGLESS = re.compile(r"(onnx::.*|val|p2o.*|helper.*|const.*|graph.*|m|model|[\\W\\d_]*)$", re.IGNORECASE)
_MATMULS_OF_ATTENTION = 2
_MATMULS_OF_LAYER = 6
LEAST_LEVELS = 2
"""Least number of changes of size in a feature pyramid."""
MOST_AROUND = 3
"""Most nodes of a unit that is named after its Concat."""


def describe(ops: Mapping[str, int], depthwise: int = 0) -> str:
    """The word for nodes with these operators; "" where there is none.

    Args:
        ops: number of nodes by operator.
        depthwise: number of convolutions with a group for each channel.
    """
    count = Counter(ops)
    convs = sum(count[op] for op in layer_operators("convolution"))
    products = sum(count[op] for op in layer_operators("product"))
    adds = count["Add"] + count["Sum"]
    recurrent = [op for op in layer_operators("recurrent") if count[op]]
    attends = any(count[op] for op in layer_operators("attention")) or (
        count["Softmax"] and products >= _MATMULS_OF_ATTENTION
    )
    if recurrent:
        return _recurrent(count, recurrent)
    if attends:
        return _attention(count, convs, products)
    if convs:
        return _convolution(count, convs, adds, depthwise)
    if count["NonMaxSuppression"]:
        return "NMS"
    if products:
        return _product(count, products)
    return _light(count)


def _recurrent(count: Counter[str], recurrent: list[str]) -> str:
    name = "LSTM" if recurrent[0] == "DynamicQuantizeLSTM" else recurrent[0]
    number = sum(count[op] for op in recurrent)
    return f"{name} ×{number}" if number > 1 else name


def _attention(count: Counter[str], convs: int, products: int) -> str:
    blocks = max(count["Softmax"], sum(count[op] for op in layer_operators("attention") if op != "RotaryEmbedding"))
    if convs > blocks:
        return MIXED[0]
    activations = sum(count[op] for op in ACTIVATIONS)
    if products >= _MATMULS_OF_LAYER * blocks and activations:
        # a layer with cross-attention has two attentions, but one MLP
        layers = activations if blocks % activations == 0 else blocks
        return _LAYER if layers == 1 else f"{layers} {_LAYER}s"
    return "attention" if blocks == 1 else f"attention ×{blocks}"


def _convolution(count: Counter[str], convs: int, adds: int, depthwise: int) -> str:
    pools = [word for op, word in POOLS.items() if count[op] and op.endswith("Pool") and "Global" not in op]
    squeezes = count["GlobalAveragePool"] + count["ReduceMean"] and count["Mul"]
    upsamples = count["ConvTranspose"] or count["Resize"] or count["Upsample"]
    if depthwise and convs > 1:
        return "inverted residual" + (" + SE" if squeezes else "")
    if convs > 1 and count["Concat"]:
        if count["Resize"] + count["Upsample"] >= LEAST_LEVELS:
            return "feature pyramid"
        return "dense layer" if count["Concat"] == 1 and convs == 2 and count["BatchNormalization"] else MIXED[1]
    if convs > 1 and adds and not upsamples:
        return "residual block" + (" + SE" if squeezes else "")
    words = [f"conv ×{convs}" if convs > 1 else "conv"]
    words += ["bn"] if count["BatchNormalization"] else []
    words += [_activation(count)] if _has_activation(count) else []
    words += pools[:1] + (["upsample"] if upsamples else [])
    return " · ".join(words)


def _product(count: Counter[str], products: int) -> str:
    if any(count[op] for op in layer_operators("lookup")) and products == 1 and not _has_activation(count):
        return "embedding + linear"
    if products > 1 and _has_activation(count):
        return "MLP"
    words = ["linear" if products == 1 else f"linear ×{products}"]
    words += [_activation(count)] if _has_activation(count) else []
    words += ["softmax"] if count["Softmax"] or count["LogSoftmax"] else []
    return " · ".join(words)


def _light(count: Counter[str]) -> str:
    if count["Exp"] and count["ReduceSum"] and count["Div"]:
        return SINGLE["Softmax"]
    for op, word in SINGLE.items():
        if count[op] and op not in QUANTIZING and (op != "Concat" or count.total() <= MOST_AROUND):
            return word
    looks_up = any(count[op] for op in layer_operators("lookup"))
    if looks_up and count["Add"] and any(count[op] for op in NORMS):
        return "embedding"
    for op, word in {**NORMS, **POOLS}.items():
        if count[op] and op not in ("ReduceMean", "ReduceMax"):
            return word
    if count["ReduceMean"] and (count["Sqrt"] or count["Pow"]):
        return "layer norm" if count["Sub"] else "RMS norm"
    if looks_up:
        return "embedding" if count["Add"] or sum(count.values()) < 6 else "lookup"
    if _has_activation(count):
        return _activation(count)
    mean = [POOLS["ReduceMean"]] if count["ReduceMean"] else []
    return next(iter([*mean, *(SINGLE[op] for op in QUANTIZING if count[op])]), "")


def summed_up(parts: Sequence[str]) -> str:
    """The words of the parts of a group with how often they come: "residual block ×2 + attention ×2"; "" for many."""
    count = Counter(part.partition(" ×")[0] for part in parts if part)
    telling = {word: number for word, number in count.items() if number > 1 or word in _WHOLE}
    if not 0 < len(telling) <= MOST_SUMMED:
        return ""
    if len(telling) > 1:  # in few words: the other part says what is around
        telling = {"attention" if word == _LAYER else word: number for word, number in telling.items()}
    return " + ".join(f"{word} ×{number}" if number > 1 else word for word, number in telling.items())


def normalizes(ops: Sequence[str]) -> bool:
    """Whether operators are a layer normalization, or the first part of one, in single operators."""
    word = describe(Counter(ops))
    return "ReduceMean" in ops and (word in ("layer norm", "RMS norm") or (word == "mean" and "Sub" in ops))


def _has_activation(count: Counter[str]) -> bool:
    return any(count[op] for op in ACTIVATIONS)


def _activation(count: Counter[str]) -> str:
    if (count["HardSigmoid"] and count["Mul"]) or (count["Clip"] and count["Mul"] and count["Div"]):
        return "hard-swish"
    if count["Sigmoid"] and count["Mul"]:
        return "silu"
    return next((word for op, word in ACTIVATIONS.items() if count[op]), "")


def common_name(names: Sequence[str]) -> str:
    """The common part of names: "res2_0" of "gpu_0/res2_0_branch2a" and "gpu_0/res2_0_branch2b"; "" for little."""
    telling = [name for name in names if name and not COUNTED.match(name)]
    if len(telling) < LEAST_TOLD:
        return ""
    common = _common_start(min(telling), max(telling))
    cut = max(common.rfind(mark) for mark in "/._")
    common = common[: cut if cut > 0 else 0].strip("/._")
    last = common.rpartition("/")[2].rpartition(".")[2]
    return last if len(last) > LEAST_TOLD and not _MEANINGLESS.match(last) else ""


def _common_start(left: str, right: str) -> str:
    """The common start of two texts; of a sorted list the first and the last decide."""
    return "".join(
        character for character, _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    )
