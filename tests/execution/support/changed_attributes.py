"""onnx's node cases with each attribute changed to what it should not be: compiled and NumPy have to agree.

All of them: `python -m bench regions`. Each is run with its inputs as inputs, and with all but the first as constants.
"""

from collections import Counter

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numba.rules import registry
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from tests.execution.support.regions import Eager, assert_close

_EACH = 4  # cases of an operator
_OTHERS = {
    onnx.AttributeProto.INT: (-3, -2, -1, 0, 1, 2, 3, 5, 8, 16, 99),
    onnx.AttributeProto.FLOAT: (-1.0, 0.0, 1e30, float("nan")),
    onnx.AttributeProto.STRING: ("nonsense", "", "VALID", "SAME_UPPER", "linear", "nearest"),
}


def outcomes():
    """(operator, attribute, value, what differs or "") of every change."""
    NumbaProvider().prepare()  # enters the rules
    seen = Counter()
    for case in load_model_tests(kind="node"):
        model, arrays = case.model, case.data_sets[0][0] if case.data_sets else None
        if model is None or arrays is None or len(model.graph.node) != 1 or model.functions:
            continue
        node = model.graph.node[0]
        seen[node.domain, node.op_type] += 1
        fits = (node.domain, node.op_type) in registry.RULES and seen[node.domain, node.op_type] <= _EACH
        if fits and all(isinstance(array, np.ndarray) for array in arrays):
            for constant in (False, True) if len(arrays) > 1 else (False,):
                yield from _of_case(model, arrays, constant)


def _of_case(model, arrays, constant):
    feeds = {info.name: array for info, array in zip(model.graph.input, arrays, strict=False)}
    with_constants = onnx.ModelProto.FromString(model.SerializeToString())
    for info in with_constants.graph.output:
        info.type.tensor_type.ClearField("shape")
    for info in list(with_constants.graph.input)[1:] if constant else ():
        with_constants.graph.initializer.append(numpy_helper.from_array(feeds.pop(info.name), info.name))
        with_constants.graph.input.remove(info)
    node = with_constants.graph.node[0]
    version = next((entry.version for entry in model.opset_import if entry.domain == node.domain), 1)
    before = list(node.attribute)
    for name, kind in onnx.defs.get_schema(node.op_type, version, node.domain).attributes.items():
        for value in _values(name, kind.type.value, before):  # type: ignore[attr-defined]
            changed = onnx.ModelProto.FromString(with_constants.SerializeToString())
            del changed.graph.node[0].attribute[:]
            changed.graph.node[0].attribute.extend(attribute for attribute in before if attribute.name != name)
            if value != []:
                changed.graph.node[0].attribute.append(helper.make_attribute(name, value))
            else:
                changed.graph.node[0].attribute.add(name=name, type=onnx.AttributeProto.INTS)
            yield node.op_type, name, value, _difference(changed, feeds)


def _values(name, kind, attributes):
    if kind != onnx.AttributeProto.INTS:
        return _OTHERS.get(kind, ())
    base = next((list(attribute.ints) for attribute in attributes if attribute.name == name), [1, 1]) or [1, 1]
    return ([-number for number in base], [number + 1 for number in base], base[:-1], [*base, 1], [0] * len(base),
            [-1] * len(base), [99] * len(base), [0, 1], [-1, 0, 0, -1], [])  # fmt: skip


def _difference(model, feeds):
    results = []
    for providers in ([Eager(), NumpyProvider()], None):
        graph = ModelGraph(onnx.ModelProto.FromString(model.SerializeToString()))
        try:
            results.append(Runner(graph, Inference(graph).fact, providers).run(feeds, keep=False))
        except Exception as error:
            results.append(error)
    ours, theirs = results
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return "" if type(ours) is type(theirs) else f"{ours!r} and {theirs!r}"[:300]
    try:
        for name, expected in theirs.items():
            if isinstance(expected, np.ndarray):
                assert_close(ours[name], expected, 1e-2 if expected.dtype.itemsize < 4 else 1e-3, name)
    except AssertionError as error:
        return str(error)[:300]
    return ""
