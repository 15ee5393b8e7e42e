"""Small models for the Numba provider, run by it and by NumPy alone."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from tests.execution.support.internals import programs_of


class Recipe:
    """A model under construction: nodes in a row, initializers as they come."""

    def __init__(self, opset=21):
        self.nodes, self.constants, self.inputs = [], [], []
        self.opset = opset

    def input(self, name, array, dims=None):
        elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, elem_type, dims or list(array.shape)))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op_type, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        domain = attributes.pop("domain", "")
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], domain=domain, **attributes))
        return name

    def nodes_of(self, op_type, count, *inputs, **attributes):
        """A node of several outputs; their names."""
        first = self.node(op_type, *inputs, **attributes)
        self.nodes[-1].output.extend(f"{first}.{number}" for number in range(1, count))
        return list(self.nodes[-1].output)

    def model(self, *outputs, infer=True):
        infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "recipe", self.inputs, infos, self.constants)
        versions = {"": self.opset, "com.microsoft": 1, "ai.onnx.ml": 3}
        opsets = [helper.make_opsetid(*item) for item in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return onnx.shape_inference.infer_shapes(model) if infer else model


class Both:
    """A model with two runners: regions compiled in the foreground, and NumPy."""

    def __init__(self, model, threads=1, **options):
        graph = ModelGraph(model)
        fact = Inference(graph).fact
        self.hot = Runner(graph, fact, [Eager(threads, **options), NumpyProvider()])
        self.cold = Runner(graph, fact)

    def regions(self):
        programs = programs_of(self.hot)
        calls = [instruction.call for program in programs for instruction in program.instructions]
        return [call for call in calls if type(call).__name__ == "Region"]

    def run(self, feeds):
        return self.hot.run(feeds, keep=False), self.cold.run(feeds, keep=False)


class Eager(NumbaProvider):
    """Takes any region, however small, and compiles it at once."""

    def __init__(self, threads=1, background=False, precise=False):
        super().__init__(threads, background=background, precise=precise, least=0)


def check(model, feeds, tolerance=2e-6, threads=1, compiled=True, **options):
    """Run both ways and compare, relative to each output's largest magnitude; returns the compiled results."""
    both = Both(model, threads, **options)
    ours, theirs = both.run(feeds)
    regions = both.regions()
    if compiled:
        assert regions, str(both.hot.partition())
        assert not [region.reason for region in regions if region.reason]
    for name, expected in theirs.items():
        assert_close(ours[name], expected, tolerance, name)
    return ours


def assert_close(actual, expected, tolerance, name="", least=0.0):
    """Differences are within a share of the largest magnitude, or of `least`, whichever is more."""
    assert actual.dtype == expected.dtype, name
    assert actual.shape == expected.shape, name
    if expected.dtype.name == "bfloat16":  # types for which NumPy's comparisons have no NaN
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, err_msg=name)
        return
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=1e-30).astype(np.float64)
    np.testing.assert_array_equal(actual[~finite], expected[~finite], err_msg=name)
    error = np.abs(actual[finite].astype(np.float64) - expected[finite]).max(initial=0.0)
    assert error <= max(tolerance * scale, least), f"{name}: {error} of {scale}"


FLOAT = TensorProto.FLOAT
