"""Constants computed outside of the main graph: nodes of bodies and functions, run in a model of their own."""

from collections.abc import Mapping, Sequence

import onnx

from onnxlab.errors import OnnxlabError
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import TrialRuns
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos import tensors
from onnxlab.infer import Inference
from onnxlab.transforms.rewriting import Array, Rewriting


def evaluated(
    rewriting: Rewriting, nodes: Sequence[NodeRecord], folded: Mapping[int, NodeRecord], values: Sequence[int]
) -> dict[int, Array]:
    """The outputs of some nodes of one scope that read constants, by value id; nothing where they cannot run.

    Args:
        rewriting: the graph.
        nodes: the nodes.
        folded: nodes by id that read constants and each other alone.
        values: ids of the values to compute.
    """
    needed: dict[int, NodeRecord] = {}
    constants: dict[str, Array] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.id in needed:
            continue
        needed[node.id] = node
        for vid in node.inputs:
            if not vid:
                continue
            value = rewriting.graph.values[vid]
            maker = rewriting.maker(value)
            array = rewriting.constant(value)
            if array is not None:
                constants[value.name] = array
            elif maker is not None and maker.id in folded:
                waiting.append(maker)
    graph = rewriting.graph
    names = {graph.values[vid].name: vid for vid in values}
    model = _model(graph, list(needed.values()), constants, list(names))
    try:
        alone = ModelGraph(model)
        outputs = TrialRuns(Runner(alone, Inference(alone).fact))({}, list(names))
    except OnnxlabError:
        return {}
    return {names[name]: array for name, array in outputs.items()}


def _model(
    graph: ModelGraph, nodes: list[NodeRecord], constants: Mapping[str, Array], outputs: Sequence[str]
) -> onnx.ModelProto:
    root = graph.root(graph.scopes[nodes[0].scope])
    order = {ident: place for place, ident in enumerate(graph.index.topological(graph.scopes[nodes[0].scope]))}
    result = onnx.ModelProto(ir_version=10)
    result.opset_import.extend((root.proto if root.is_function else graph.header).opset_import)
    result.graph.name = "constants"
    result.graph.node.extend(node.proto for node in sorted(nodes, key=lambda node: order.get(node.id, -1)))
    result.graph.initializer.extend(tensors.from_array(array, name) for name, array in constants.items())
    result.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return result
