"""One node through a kernel and through ONNX Runtime."""

import numpy as np
import onnx
from onnx import helper

from onnxlab import dtypes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from tests.infer.live.test_truth import contradictions_of_run
from tests.ops.support.interpreter import Interpreter, close
from tests.support.oracle import new_session


def model(op_type, inputs, attributes, opset, domain, outputs):
    """A model of one node; None stands for an absent input."""
    names = [f"x{slot}" if value is not None else "" for slot, value in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"y{slot}" for slot in range(outputs)], domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, dtypes.from_numpy(value.dtype), value.shape)
        for name, value in zip(names, inputs, strict=True)
        if value is not None
    ]
    graph = helper.make_graph([node], op_type, infos, [onnx.ValueInfoProto(name=name) for name in node.output])
    opsets = [helper.make_opsetid("", opset if not domain else 17)]
    opsets += [helper.make_opsetid(domain, opset)] if domain else []
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(op_type, *inputs, opset, domain="", outputs=1, **attributes):
    """The kernel's outputs."""
    inputs = tuple(value if value is None else np.asarray(value) for value in inputs)
    proto = model(op_type, inputs, attributes, opset, domain, outputs)
    feeds = {f"x{slot}": value for slot, value in enumerate(inputs) if value is not None}
    return list(Interpreter(proto).run(feeds).values())


def agree(op_type, *inputs, opset, domain="", outputs=1, rtol=1e-5, **attributes):
    """Assert that the kernel gives what ONNX Runtime gives, and return it."""
    inputs = tuple(value if value is None else np.asarray(value) for value in inputs)
    proto = model(op_type, inputs, attributes, opset, domain, outputs)
    feeds = {f"x{slot}": value for slot, value in enumerate(inputs) if value is not None}
    expected = new_session(proto.SerializeToString(), None).run(None, feeds)
    check_facts(proto, feeds, expected)
    results = list(Interpreter(proto).run(feeds).values())
    for reference, ours in zip(expected, results, strict=True):
        text = close(reference, ours, rtol)
        assert text is None, f"{op_type}-{opset} {attributes}: {text}"
    return results


def check_facts(proto, feeds, expected):
    """Assert that what inference says of the outputs, from the inputs' sizes or from symbols for them, is true."""
    arrays = feeds | dict(zip((info.name for info in proto.graph.output), expected, strict=True))
    for symbolic in (False, True):
        copy = onnx.ModelProto.FromString(proto.SerializeToString())
        for info in copy.graph.input if symbolic else ():
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.dim_param = f"{info.name}_{axis}"
        graph = ModelGraph(copy)
        inference = Inference(graph)
        assert contradictions_of_run(graph, inference, arrays) == []
        assert symbolic or [d for d in inference.diagnostics if d.severity == "error"] == []


def floats(*shape, seed=0, dtype=np.float32):
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def ints(*shape, low=-100, high=100, seed=0, dtype=np.int64):
    """Uniform integers."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def i64(*values):
    """A 1-D int64 tensor."""
    return np.array(values, np.int64)
