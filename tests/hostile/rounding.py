"""Whether rounding alone makes outputs that differ: noise of one rounding after each node changes them as much."""

import numpy as np
import onnx
from onnx import helper

import onnxlab
from tests.hostile.trial import limits

_SEEDS = 6
_NOISE = float(np.finfo(np.float32).eps)


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
            factor = {"low": 1 - _NOISE, "high": 1 + _NOISE}
            copy.graph.node.append(
                helper.make_node("RandomUniformLike", [f"{name} exact"], [f"{name} factor"], **factor)
            )
            copy.graph.node.append(helper.make_node("Mul", [f"{name} exact", f"{name} factor"], [name]))
    return copy


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
