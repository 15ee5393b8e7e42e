"""Random nodes of ai.onnx.ml, on the providers at hand and through ONNX Runtime."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import onnxlab
from onnxlab import dtypes
from onnxlab.execution.numba.provider import NumbaProvider
from tests.support.oracle import new_session

TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def node_model(op_type, x, attributes, outputs, version):
    node = helper.make_node(op_type, ["x"], [f"y{n}" for n in range(outputs)], domain="ai.onnx.ml", **attributes)
    info = helper.make_tensor_value_info("x", dtypes.from_numpy(x.dtype), list(x.shape))
    graph = helper.make_graph([node], "g", [info], [onnx.ValueInfoProto(name=name) for name in node.output])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def check_everywhere(data, feeds, expected=None, compared=None, rtol=1e-4):
    """Assert that NumPy and Numba give what ONNX Runtime gives: labels equal, NaN and Inf at the same places."""
    if expected is None:
        expected = new_session(data, None).run(None, feeds)
    for providers in (["numpy"], [NumbaProvider(background=False, least=0), "numpy"]):
        outputs = list(onnxlab.load(data).run(feeds, providers=providers).values())
        for number, (theirs, ours) in enumerate(zip(expected, outputs, strict=True)):
            if compared is None or number in compared:
                assert_same(np.asarray(theirs), np.asarray(ours), rtol, f"output {number} on {providers[0]}")
    return expected


def assert_same(theirs, ours, rtol, label):
    assert theirs.shape == ours.shape, label
    if theirs.dtype.kind not in "fc":
        assert (theirs == ours).all(), f"{label}: {theirs.ravel()[:9]} and {ours.ravel()[:9]}"
        return
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(theirs[~finite], ours[~finite], label)
    if finite.any():
        largest = np.abs(theirs[finite]).max()
        np.testing.assert_allclose(ours[finite], theirs[finite], rtol, rtol * largest, err_msg=label)


def check_node(op_type, x, attributes, outputs=1, version=1, compared=None):
    return check_everywhere(node_model(op_type, x, attributes, outputs, version), {"x": x}, compared=compared)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def samples(rng, columns, special=False, dtype=np.float32):
    x = np.round(floats(rng, 20, columns), 1)
    if special:
        x[::4, 0], x[1, 1], x[2, 1] = np.nan, np.inf, -np.inf
    return x.astype(dtype)


class Trees:
    """Random trees: attributes of their nodes, and (tree, node) of every leaf."""

    def __init__(self, rng, features, missing=False):
        self._rng, self._features, self._mode = rng, features, str(rng.choice(MODES))
        self._mixed = bool(rng.integers(2))
        names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
        self.nodes, self.leaves = {f"nodes_{name}": [] for name in names}, []
        for tree in range(int(rng.integers(1, 5))):
            self._grow(tree, int(rng.integers(4)), [])
        if missing:
            self.nodes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(self.nodes["nodes_modes"])).tolist()

    def _grow(self, tree, depth, seen):
        node, at = len(seen), len(self.nodes["nodes_modes"])
        seen.append(node)
        row = [tree, node, int(self._rng.integers(self._features)), float(np.float32(round(self._rng.normal(), 1)))]
        for column, item in zip(self.nodes.values(), [*row, "LEAF", 0, 0], strict=False):
            column.append(item)
        if depth and self._rng.random() < 0.8:
            self.nodes["nodes_modes"][at] = str(self._rng.choice(MODES)) if self._mixed else self._mode
            for branch in ("nodes_truenodeids", "nodes_falsenodeids"):
                self.nodes[branch][at] = self._grow(tree, depth - 1, seen)
        else:
            self.leaves.append((tree, node))
        return node

    def votes(self, kind, targets, which):
        """Attributes of the votes: for one target ("one", or its number), for a random one or for all."""
        leaves = [leaf for leaf in self.leaves for _ in range(targets if which == "all" else 1)]
        ids = [n % targets for n in range(len(leaves))] if which == "all" else (
            self._rng.integers(targets, size=len(leaves)).tolist() if which == "some" else [which] * len(leaves)
        )  # fmt: skip
        weights = np.round(floats(self._rng, len(leaves)), 2)
        if self._rng.integers(2):
            weights = np.abs(weights)
        return {
            f"{kind}_treeids": [tree for tree, _ in leaves], f"{kind}_nodeids": [node for _, node in leaves],
            f"{kind}_ids": ids, f"{kind}_weights": weights.tolist(),
        }  # fmt: skip


def as_tensors(attributes, names):
    """The attributes with lists of floats replaced by tensors of float64."""
    converted = dict(attributes)
    for name in names:
        if name in converted:
            converted[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(converted.pop(name), np.float64))
    return converted
