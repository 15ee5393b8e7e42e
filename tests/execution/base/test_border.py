"""Results of a provider from outside are checked, and it cannot write to its inputs."""

import numpy as np
import pytest
from onnx import helper

import onnxlab
from onnxlab.execution.base.provider import Provider, Step, SubgraphClaim

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Outside(Provider):
    """Compiles every Neg to what it is given."""

    name = "outside"

    def __init__(self, compiled):
        self._compiled = compiled

    def get_capability(self, view):
        return [SubgraphClaim((node.id,)) for node in view.nodes if node.op_type == "Neg"]

    def compile(self, part, view):
        return self._compiled(part)


def model():
    node, vi = helper.make_node, helper.make_tensor_value_info
    nodes = [node("Neg", ["x"], ["n"], name="negate"), node("Add", ["n", "n"], ["y"]), node("Add", ["y", "x"], ["z"])]
    graph = helper.make_graph(nodes, "g", [vi("x", 1, [2, 3])], [vi("z", 1, [2, 3])])
    return onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


def run(compiled, x=X):
    return model().run({"x": x}, providers=[Outside(compiled), "numpy"])["z"]


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda x: [-x.astype(np.float64)], r"returned float64\[2,3\] for 'n'; expected float32\[2,3\]"),
        (lambda x: [-x[:1]], r"returned float32\[1,3\] for 'n'; expected float32\[2,3\]"),
        (lambda x: [(-x).ravel()], r"returned float32\[6\] for 'n'; expected float32\[2,3\]"),
        (lambda x: [-x, -x], "returned 2 values; expected 1"),
        (lambda x: [], "returned 0 values; expected 1"),
        (lambda x: None, "returned None; expected a list of 1 arrays"),
        (lambda x: {"n": -x}, "returned dict; expected a list of 1 arrays"),
        (lambda x: [None], "returned None for 'n'; expected a NumPy array"),
        (lambda x: [(-x).tolist()], "returned list for 'n'; expected a NumPy array"),
        (lambda x: [x.astype("U")], r"returned <U\d+\[2,3\] for 'n'; expected an array in the machine's byte order"),
        (lambda x: [(-x).astype(">f4")], r"returned >f4\[2,3\] for 'n'"),
    ],
)
def test_outputs_are_checked(compute, message):
    with pytest.raises(onnxlab.OnnxlabError, match=rf"provider 'outside': the part of .*negate.* {message}"):
        run(lambda part: lambda context, x: compute(x))


@pytest.mark.parametrize("compute", [lambda x: [-x], lambda x: (-x,), lambda x: -x])
def test_lists_tuples_and_an_array_alone_are_taken(compute):
    np.testing.assert_array_equal(run(lambda part: lambda context, x: compute(x)), -X)


def test_inputs_cannot_be_written_to():
    def careless(context, x):
        x *= -1
        return [x]

    fed = X.copy()
    with pytest.raises(onnxlab.OnnxlabError, match="read-only"):
        run(lambda part: careless, fed)
    np.testing.assert_array_equal(fed, X)
    actual = run(lambda part: lambda context, x: [x], fed)  # the inputs are no buffers to write to
    np.testing.assert_array_equal(actual, 3 * X)
    np.testing.assert_array_equal(fed, X)


def test_what_cannot_be_called_is_left_to_numpy():
    for odd in (None, 3, [1], np.ones(2), [Step("negate", "Neg", 7, np.negative, ("x",), ("n",))]):
        with pytest.warns(UserWarning, match="provider 'outside' compiled the part of .*negate.* to"):
            np.testing.assert_array_equal(run(lambda part, odd=odd: odd), -X)


def test_own_providers_keep_their_arrays():
    """No view is made for those that are trusted: their buffers may be used again."""
    from onnxlab.execution.run import provider_names

    assert all(provider.capabilities.trusted for provider in provider_names.named(["numba", "onnxruntime", "numpy"]))
