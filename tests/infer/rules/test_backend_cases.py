"""Facts against ONNX's own node cases: the arrays that each operator must give, with sizes given and symbolic."""

import functools
import warnings
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import UNKNOWN, symbol
from tests.infer.live.test_truth import Binding, contradictions


@functools.cache
def cases() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow and divide by zero on purpose
        return list(load_model_tests(kind="node"))


def value_of(stored: Any) -> Any:
    return onnx.numpy_helper.to_array(stored) if isinstance(stored, onnx.TensorProto) else stored


def give_symbols(model: onnx.ModelProto, arrays: dict[str, Any], binding: Binding) -> None:
    """Replace every dim of every input by a symbol of its own, bound to the size that it has."""
    for info in model.graph.input:
        array = arrays.get(info.name)
        if isinstance(array, np.ndarray) and info.type.HasField("tensor_type"):
            for axis, (dim, size) in enumerate(zip(info.type.tensor_type.shape.dim, array.shape, strict=False)):
                dim.dim_param = f"{info.name}_{axis}"
                (monomial,) = symbol(dim.dim_param).terms
                binding.values[monomial[0]] = size


@pytest.mark.parametrize("with_symbols", [False, True], ids=["sizes", "symbols"])
@pytest.mark.slow
def test_no_fact_contradicts_a_node_case(with_symbols: bool) -> None:
    wrong: list[str] = []
    known = total = 0
    for case in cases():
        model = onnx.ModelProto.FromString(case.model.SerializeToString())
        inputs, outputs = case.data_sets[0]
        feeds = {info.name: value_of(proto) for info, proto in zip(model.graph.input, inputs, strict=False)}
        expected = {info.name: value_of(proto) for info, proto in zip(model.graph.output, outputs, strict=False)}
        binding = Binding()
        if with_symbols:
            give_symbols(model, feeds, binding)
        graph = ModelGraph(model)
        inference = Inference(graph)
        for name, array in {**feeds, **expected}.items():
            fact = inference.fact(graph.resolve_value(name))
            wrong += [f"{case.name}: {name}: {text}" for text in contradictions(fact, array, binding)]
            if name in expected:
                total += 1
                known += fact.shape is not None or not isinstance(array, np.ndarray)
                if fact is UNKNOWN:
                    wrong.append(f"{case.name}: {name} is unknown")
        if not with_symbols:
            wrong += [f"{case.name}: {d}" for d in inference.diagnostics if d.severity == "error"]
    assert wrong == []
    assert known / total > 0.9, f"ranks of {known} of {total} outputs are known"
