"""Whether rounding alone makes outputs that differ: noise of one rounding after each node changes them as much.

Functions that end in 0 or 1 are off by a rounding of 1 there, whatever their magnitude (`judge.RESOLVED`): Gelu(-5) is
-1.5e-6, or -1.8e-6, and times a score of 1e9 that decides a softmax.
"""

import numpy as np
import onnx
from onnx import helper

import onnxlab
from tests.hostile.judge import RESOLVED, SATURATING
from tests.hostile.trial import limits

_SEEDS = 6
_NOISE = float(np.finfo(np.float32).eps)
_END = RESOLVED * 1e-4
"""The error of a function that ends in 0 or 1, with the tolerance of DESIGN §8."""


def noisy(proto, model):
    """The model with each number of 32 bits that a node of the main graph makes times 1, or one rounding beside it."""
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    nodes = list(copy.graph.node)
    del copy.graph.node[:]
    for node in nodes:
        copy.graph.node.append(node)
        written = copy.graph.node[-1]
        for slot, name in enumerate(node.output):
            if not name or model.fact(name).dtype != "float32":
                continue
            written.output[slot] = f"{name} exact"
            scaled = f"{name} scaled" if node.op_type in SATURATING else name
            copy.graph.node.extend(_with_noise("Mul", f"{name} exact", scaled, 1 - _NOISE, 1 + _NOISE))
            if scaled != name:
                copy.graph.node.extend(_with_noise("Add", scaled, name, -_END, _END))
    return copy


def _with_noise(operator, source, target, low, high):
    """Nodes that combine a value with random numbers of its shape."""
    noise = f"{target} noise"
    yield helper.make_node("RandomUniformLike", [source], [noise], low=low, high=high)
    yield helper.make_node(operator, [source, noise], [target])


def is_amplified(proto, feeds, output, differs):
    """Whether some noise makes of an output by NumPy what `differs`, as what is to be judged does.

    Args:
        proto: the model.
        feeds: its inputs.
        output: name of the output.
        differs: of an array by NumPy, whether it is beyond the tolerance from the one without noise.
    """
    model = onnxlab.load(proto)
    rough = onnxlab.load(noisy(proto, model))
    return any(
        differs(rough.run(feeds, outputs=[output], exact=True, seed=seed, limits=limits())[output])
        for seed in range(_SEEDS)
    )
