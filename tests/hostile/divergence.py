"""The place where outputs differ from another runtime's, and whether ONNX agrees with the node there."""

import numpy as np
import onnx

from tests.support.oracle import new_session, with_outputs

LARGE = 1e18
"""From here on a sum may be finite, infinite or NaN by the order of its terms, of which DESIGN §8 says nothing."""


def is_special(value):
    """Whether an array of floats has NaN, an infinity or a magnitude from LARGE on."""
    if isinstance(value, (list, tuple)):
        return any(map(is_special, value))
    if not isinstance(value, np.ndarray) or value.dtype.kind in "iubOSU":
        return False
    with np.errstate(all="ignore"):
        return not (np.abs(value.astype(np.float64)) < LARGE).all()


def is_excused(proto, folder, feeds, model, limits, least):
    """Whether no node of the main graph is to blame for outputs that differ.

    A node is to blame where it makes something else of the same inputs as onnxruntime, unless it reads NaN, infinities
    or numbers from LARGE on. A node reads its inputs, its attributes, and what its bodies capture. Where every node
    agrees, rounding was amplified: by a power of 0 and of 1e-7, say. False where onnxruntime tells no inner values.

    Args:
        proto: the model.
        folder: where its external data is.
        feeds: {input: array}.
        model: the same, loaded here.
        limits: of the runs of single nodes.
        least: the least magnitude that counts of a whole output.
    """
    names = [name for node in proto.graph.node for name in node.output if name]
    try:
        data = with_outputs(proto.SerializeToString(), names).SerializeToString()
        arrays = new_session(data, folder).run(names, {name: np.asarray(array) for name, array in feeds.items()})
        ours = model.run(feeds, outputs=names, limits=limits(), seed=0)
    except Exception:
        return False
    theirs = dict(zip(names, arrays, strict=True))
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    makers = {name: node for node in model.nodes for name in (value.name for value in node.outputs if value)}
    for node in proto.graph.node:
        outputs = [name for name in node.output if name]
        if any(close(ours[name], theirs[name], name, least) for name in outputs):
            read = {name: _value(name, feeds, theirs, constants, folder) for name in sorted(_names(node))}
            if any(map(is_special, (*read.values(), *_numbers(node)))):
                continue
            feeds_alone = {name: value for name, value in read.items() if value is not None and name not in constants}
            alone = model.subgraph([makers[outputs[0]]]).run(feeds_alone, limits=limits(), seed=0)
            if any(close(alone[name], theirs[name], name, least) for name in outputs):
                return False
    return True


def _numbers(node):
    """The numbers in the attributes of a node, as arrays."""
    for attribute in node.attribute:
        yield np.array([attribute.f, *attribute.floats], np.float32)
        if attribute.HasField("t"):
            yield onnx.numpy_helper.to_array(attribute.t)


def _value(name, feeds, theirs, constants, folder):
    if name in feeds:
        return np.asarray(feeds[name])
    if name in theirs:
        return theirs[name]
    return onnx.numpy_helper.to_array(constants[name], str(folder)) if name in constants else None


def _names(node):
    """All names that a node and the nodes of its bodies read."""
    names = set(node.input)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            names.update(*(_names(inner) for inner in body.node))
    return names


def close(actual, expected, name, least=1e-30):
    """The difference beyond DESIGN §8 between two outputs, "" where there is none.

    An output whose numbers are all below `least` is compared as if one of them was that large.
    """
    if isinstance(expected, (list, tuple)) or isinstance(actual, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return "another sequence"
        return next(filter(None, (close(*pair, name, least) for pair in zip(actual, expected, strict=True))), "")
    if not isinstance(expected, np.ndarray) or not isinstance(actual, np.ndarray):
        return ""
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        return f"{actual.dtype}{actual.shape} for {expected.dtype}{expected.shape}"
    if expected.dtype.kind in "OSU":
        return "" if (actual.astype(str) == expected.astype(str)).all() else "other strings"
    if expected.dtype.kind in "iub":
        away = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max(initial=0)
        return "" if away <= (expected.dtype.itemsize == 1 and expected.dtype.kind != "b") else "other integers"
    tolerance = 1e-4 if expected.dtype.itemsize >= 4 else 2e-3
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True) or not np.isfinite(actual[finite]).all():
        return "other places of NaN or infinity"
    scale = np.abs(expected[finite]).max(initial=least)
    return "" if np.abs(actual[finite] - expected[finite]).max(initial=0) <= tolerance * scale else "other numbers"
