"""Small models written as text, and what most tests do with them."""

import time

import onnx

from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.shapes import UNKNOWN, symbol

HEADER = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>\n'


def model(text: str) -> onnx.ModelProto:
    """The model of an onnx.parser text without its header."""
    return onnx.parser.parse_model(HEADER + text)


def graph(text: str) -> ModelGraph:
    return ModelGraph(model(text))


def runner(text: str, **options) -> Runner:
    """A runner that follows edits and knows what onnx infers."""
    proto = onnx.shape_inference.infer_shapes(model(text), data_prop=True)
    model_graph = ModelGraph(proto)

    def fact(value):
        record = model_graph.values[value]
        if record.info is None:
            return UNKNOWN
        return fact_of_type(record.info.type, lambda axis: symbol(f"{record.name}.{axis}"))

    run = Runner(model_graph, fact, **options)
    model_graph.followers.append(run.invalidate)
    return run


def value(run: Runner, name: str) -> int:
    """Id of a value of the main graph."""
    return run.graph.main.names[name]


def node(run: Runner, output: str) -> int:
    """Id of the node that makes a value."""
    return run.graph.values[value(run, output)].producer[0]


CHAIN = """
chain (float[n, 4] x) => (float[n, 4] d) {
    a = Relu (x)
    b = Add (a, x)
    c = Neg (b)
    d = Mul (c, a)
}
"""


def fastest(attempt, limit=1.0, times=4):
    """Seconds of the first attempt below `limit`, else of the fastest: other tests may hold both cores a while."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        attempt()
        durations.append(time.perf_counter() - start)
        if durations[-1] < limit:
            break
    return min(durations)
