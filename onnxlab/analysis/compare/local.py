"""Local errors: every node of a model fed with reference values, in one run.

The model is cut at each value with a reference: readers of the value read a new input in its place. Nodes between such
values run together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.analysis.compare.error import Error, error
from onnxlab.analysis.compare.sides import RunSide
from onnxlab.errors import OnnxlabError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos.renaming import Renaming
from onnxlab.infer import Inference


def local_errors(side: RunSide, feeds: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, Error]:
    """Errors by value: what the node of a value computes from reference values, against the reference of the value.

    Args:
        feeds: the inputs of the model.
        reference: by value of its main graph, the array to take for it and to compare with.
    """
    arrays = {name: array for name, array in reference.items() if isinstance(array, np.ndarray)}
    names = _free_names(side.graph, arrays)
    graph = _cut(side.graph, arrays, names)
    inputs = {**feeds, **{names[name]: array for name, array in arrays.items()}}
    cut = RunSide(graph, Inference(graph).fact)
    side.runs += 1
    outputs = list(arrays)
    try:
        recomputed = cut.values(_read(graph, inputs), outputs)
    except OnnxlabError:
        return _one_by_one(cut, _read(graph, inputs), arrays)
    return {name: error(arrays[name], recomputed[name]) for name in outputs}


def _one_by_one(side: RunSide, feeds: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Error]:
    """The local errors, value by value, where a node fails: the failure then counts for its own values alone."""
    errors = {}
    for name, array in arrays.items():
        try:
            errors[name] = error(array, side.values(feeds, [name])[name])
        except OnnxlabError as problem:
            errors[name] = Error(str(problem), relative=float("inf"), sqnr=float("-inf"), cosine=0.0, equal=False)
    return errors


def _read(graph: ModelGraph, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that the cut model has."""
    inputs = {graph.values[vid].name for vid in graph.main.inputs}
    return {name: array for name, array in arrays.items() if name in inputs}


def _free_names(graph: ModelGraph, arrays: Mapping[str, Any]) -> dict[str, str]:
    used = {value.name for value in graph.values.values()}
    names = {}
    for name in arrays:
        spare = f"{name}.reference"
        while spare in used:
            spare += "_"
        used.add(spare)
        names[name] = spare
    return names


def _cut(graph: ModelGraph, arrays: Mapping[str, Any], names: Mapping[str, str]) -> ModelGraph:
    """A copy in which the readers of each value that has an array read an input."""
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    main, renaming = proto.graph, Renaming(names)
    nodes = []
    for node in main.node:
        copy = renaming.node(node)
        copy.output[:] = node.output
        nodes.append(copy)
    del main.node[:]
    main.node.extend(nodes)
    for name, spare in names.items():
        main.input.append(onnx.helper.make_tensor_value_info(spare, dtypes.from_numpy(arrays[name].dtype), None))
    return ModelGraph(proto, graph.base_dir, shared=False)
