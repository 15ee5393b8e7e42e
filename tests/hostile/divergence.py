"""Where outputs differ from another runtime's, and whether ONNX says what the node there computes of its inputs."""

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


def begins_at_special(proto, folder, feeds, ours, least):
    """Whether the first node whose outputs differ reads NaN, infinities or numbers from LARGE on.

    A node reads its inputs and what its bodies capture. False where no node is found, or onnxruntime does not tell
    the inner values.

    Args:
        proto: the model.
        folder: where its external data is.
        feeds: {input: array}.
        ours: function of a list of names to {name: value}.
        least: the least magnitude that counts of a whole output.
    """
    names = [name for node in proto.graph.node for name in node.output if name]
    try:
        data = with_outputs(proto.SerializeToString(), names).SerializeToString()
        arrays = new_session(data, folder).run(names, {name: np.asarray(array) for name, array in feeds.items()})
    except Exception:
        return False
    theirs = dict(zip(names, arrays, strict=True))
    own = ours(names)
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if any(name and close(own[name], theirs[name], name, least) for name in node.output):
            read = [_value(name, feeds, theirs, constants, folder) for name in sorted(_names(node))]
            return any(map(is_special, read))
    return False


def _value(name, feeds, theirs, constants, folder):
    if name in feeds:
        return np.asarray(feeds[name])
    if name in theirs:
        return theirs[name]
    return onnx.numpy_helper.to_array(constants[name], str(folder)) if name in constants else None


def _names(node):
    """All names that a node and the nodes of its bodies read."""
    found = set(node.input)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            found.update(*(_names(inner) for inner in body.node))
    return found


def close(found, expected, name, least=1e-30):
    """What is beyond DESIGN §8 between two outputs, "" where nothing is.

    An output whose numbers are all below `least` is compared as if one of them was that large.
    """
    if isinstance(expected, (list, tuple)) or isinstance(found, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return "another sequence"
        return next(filter(None, (close(*pair, name, least) for pair in zip(found, expected, strict=True))), "")
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        return ""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{found.shape} for {expected.dtype}{expected.shape}"
    if expected.dtype.kind in "OSU":
        return "" if (found.astype(str) == expected.astype(str)).all() else "other strings"
    if expected.dtype.kind in "iub":
        away = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0)
        return "" if away <= (expected.dtype.itemsize == 1 and expected.dtype.kind != "b") else "other integers"
    tolerance = 1e-4 if expected.dtype.itemsize >= 4 else 2e-3
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return "other places of NaN or infinity"
    scale = np.abs(expected[finite]).max(initial=least)
    return "" if np.abs(found[finite] - expected[finite]).max(initial=0) <= tolerance * scale else "other numbers"
