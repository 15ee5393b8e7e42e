"""The verdicts that need other libraries: silent accepts and numbers.

A silent accept: `onnxlab.load` succeeds and `Model.check` returns no diagnostic of any severity; `onnx.checker` refuses
the file with its full check; and onnxruntime makes no session of it, optimizations off. Not counted is what only one of
the two refuses, and what onnxruntime merely has no kernel for (NotImplemented).
"""

import re

import numpy as np
import onnx

from tests.hostile import divergence
from tests.hostile.bases import HALVES
from tests.hostile.trial import Broken, limits, parsed

RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
    "Dropout",
    "TrainableDropout",
}
_OTHERWISE = {
    "Attention": lambda node: len(node.output) > 3 and node.output[3],
    "MaxUnpool": lambda node: len(node.input) == 3,
    "Resize": lambda node: len(node.input) > 2 and node.input[2] and _mode(node) == b"align_corners",
    "Scan": lambda node: _passes_on(node),
    "TopK": lambda node: any(attribute.name == "sorted" and not attribute.i for attribute in node.attribute),
}
"""Operators that onnxruntime computes otherwise than onnx's own node cases expect, and when.

The scores that Attention returns have the lowest number where they are masked, not -inf. Indices of MaxUnpool count
in the output that the pool had, not in the larger one of `output_shape`. Scales of Resize that make a fractional length
stretch the corners to that length rounded down. A Scan whose body passes a state on as it came ends with numbers from
elsewhere, other ones with and without optimizations; onnx.reference has the first state. ONNX leaves open in which
order a TopK with sorted=0 has its numbers.
"""

_SCORED = frozenset(("Attention", "FlexAttention", "GroupQueryAttention", "MultiHeadAttention"))
SATURATING = frozenset(("Erf", "GRU", "Gelu", "LSTM", "Mish", "RNN", "Sigmoid", "Softmax", "Swish", "Tanh"))
RESOLVED = 1e-2
"""Functions that end in 0 or 1 are approximated with an error of a float32's rounding of 1, whatever their magnitude,
and some multiply that by their argument: Sigmoid(-35) is 0 for onnxruntime, Gelu(-5.7) is 3e-7 for NumPy, since erf is
1. With the tolerance of 1e-4 this asks for 1e-6."""

_BASE = 9
"""The most with which all powers of integers up to itself fit into 32 bits."""

_UNABLE = re.compile(
    r"NOT_IMPLEMENTED|NotImplemented|no kernel|not implemented|is not supported|under development"
    r"|Unsupported model IR version",
    re.I,
)
"""What onnxruntime says where it does not know a part of ONNX, which tells nothing of the model."""


def checker_refuses(path):
    """The reason of onnx.checker against a file, "" where there is none."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def session(path):
    """(session, why there is none)."""
    from tests.support.oracle import new_session

    try:
        return new_session(path.read_bytes(), path.parent), ""
    except Exception as error:
        return None, str(error)


def silence(case, path, model):
    """Raise Broken where a model was accepted without a word that both others refuse."""
    if model is None or path.suffix != ".onnx":
        return
    case.asking("onnx.checker")
    checker = checker_refuses(path)
    if not checker:
        return
    case.asking("onnxruntime")
    _, why = session(path)
    if why and not _UNABLE.search(why):
        raise Broken("silent", gist(checker), f"{checker[:300]} / {why[:300]}")


def gist(text):
    """The innermost error without what differs from case to case: names, numbers, node texts."""
    text = re.split(r"\[(?:Shape|Type)InferenceError\] ", text.strip())[-1]
    line = re.sub(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|-?\d+|/[\w/.-]+", "…", text.splitlines()[0])
    return line[:80]


def numbers(case, path, model, ours):
    """Raise Broken where a valid model's outputs differ from onnxruntime's beyond DESIGN §8."""
    if ours is None or path.suffix != ".onnx":
        return
    feeds, outputs = ours
    proto = parsed(path.read_bytes())
    if proto is None or not is_comparable(proto) or rounds_scores(proto, feeds) or overflows(proto, feeds):
        return
    case.asking("onnx.checker")
    if checker_refuses(path):
        return
    case.asking("onnxruntime")
    reference, _ = session(path)
    if reference is None:
        return
    try:
        arrays = reference.run(list(outputs), {name: np.asarray(array) for name, array in feeds.items()})
    except Exception:
        return
    case.oracle = False
    for (name, array), theirs in zip(outputs.items(), arrays, strict=True):
        if problem := divergence.close(array, theirs, name, least(proto)):
            if divergence.is_excused(proto, path.parent, feeds, model, limits, least(proto)):
                return
            np.savez(case.folder / "feeds.npz", **feeds)
            kinds = ", ".join(sorted({node.op_type for node in _nodes(proto)}))[:60]
            raise Broken("number", f"{problem} by {kinds}", f"{name}: {shown(array)} for {shown(theirs)}")


def is_comparable(proto):
    """Whether the numbers of a model are those of onnxruntime: nothing in it is drawn, or known to differ."""
    return not any(node.op_type in RANDOM or _OTHERWISE.get(node.op_type, _never)(node) for node in _nodes(proto))


def rounds_scores(proto, feeds):
    """Whether onnxruntime rounds scores of attention to 16 bits.

    Of a score of 8 that is an error of 0.004, and so is the weight's that it becomes: no element is within 0.002 then.
    """
    halves = any(getattr(array, "dtype", None) in HALVES for array in feeds.values())
    return halves and any(node.op_type in _SCORED for node in _nodes(proto))


def overflows(proto, feeds):
    """Whether powers of integers may leave what a double holds exactly, or what 32 bits do.

    onnxruntime computes them as doubles and converts those back, which C leaves undefined beyond the type.
    """
    arrays = [array for array in tensors(feeds.values()) if array.dtype.kind in "iu"]
    ends = (int(end) for array in arrays for end in (array.min(initial=0), array.max(initial=0)))
    largest = max(map(abs, ends), default=0)
    return largest > _BASE and any(node.op_type == "Pow" for node in _nodes(proto))


def quantizes_by_zero(feeds):
    """Whether the scale by which a node case of onnx divides its output is 0: what becomes of 0 ÷ 0 as an integer?

    onnxruntime has the least integer, onnx.reference 0, and C leaves it undefined.
    """
    return not np.all(np.asarray(feeds.get("y_scale", 1)))


def tensors(values):
    """The arrays of feeds, those in sequences too; scalars as arrays."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from tensors(value)
        elif not isinstance(value, dict) and value is not None:
            yield np.asarray(value)


def underflows(proto, feeds):
    """The magnitude that counts where a weight of a softmax may be subnormal and multiply a number from LARGE on, or 0.

    A weight of 4e-40 may be 0 as well (flushed, or by another exp), and of 3e38 that makes 0.1.
    """
    if not any(node.op_type == "Softmax" or node.op_type in _SCORED for node in _nodes(proto)):
        return 0.0
    floats = [array for array in tensors(feeds.values()) if array.dtype in (np.float32, np.float64)]
    finite = [np.abs(array[np.isfinite(array)]).max(initial=0) for array in floats]
    largest = max(map(float, finite), default=0.0)
    return largest * float(np.finfo(np.float32).tiny) / 1e-4 if largest > divergence.LARGE else 0.0


def least(proto):
    """The least magnitude that counts of a whole output."""
    return RESOLVED if any(node.op_type in SATURATING for node in _nodes(proto)) else 1e-30


def _never(node):
    return False


def _mode(node):
    return next(
        (attribute.s for attribute in node.attribute if attribute.name == "coordinate_transformation_mode"), b""
    )


def _passes_on(node):
    """Whether a body has an input for an output."""
    bodies = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return any({value.name for value in body.input} & {value.name for value in body.output} for body in bodies)


def _nodes(proto):
    """All nodes, those of bodies and functions too."""
    waiting = [*proto.graph.node, *(node for function in proto.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                waiting.extend(body.node)


def shown(value):
    return " ".join(repr(value)[:300].split())
