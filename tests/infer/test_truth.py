"""Facts against the arrays of a real run: on every model of the corpus nothing contradicts them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from onnxlab import dtypes
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import VARIES, Expr, Fact, MapFact, SequenceFact, TensorFact, replace_symbols
from onnxlab.shapes.arithmetic import sole_atom
from onnxlab.shapes.expressions import Atom
from tests.corpus import NAMES, Corpus
from tests.oracle import Oracle

Feeds = dict[str, np.ndarray]


class Binding:
    """Values of symbols, learned from where a dim or element is a lone symbol; later sightings must agree."""

    def __init__(self) -> None:
        self.values: dict[Atom, int] = {}

    def contradiction(self, dim: Any, seen: int) -> str:
        if dim is VARIES:
            return ""
        if isinstance(dim, Expr):
            dim = replace_symbols(dim, self.values.get)
        atom = sole_atom(dim) if isinstance(dim, Expr) else None
        if atom is not None and not atom.function and atom.definition is None:
            self.values[atom] = seen
            return ""
        if isinstance(dim, Expr):
            return ""  # depends on what nothing observed
        return "" if dim == seen else f"{dim} is {seen}"


def contradictions(fact: Fact, value: Any, binding: Binding) -> list[str]:
    """What is wrong about a fact of a value of a run."""
    if isinstance(fact, SequenceFact) and isinstance(value, list):
        return [
            text for item in value if not isinstance(item, dict) for text in contradictions(fact.elem, item, binding)
        ]
    if isinstance(fact, MapFact) or not isinstance(fact, TensorFact):
        return []
    array = np.asarray(value)
    found = []
    if fact.elem_type not in (0, dtypes.from_numpy(array.dtype)):
        found.append(f"{fact} is {array.dtype}")
    if fact.shape is None:
        return found
    if len(fact.shape) != array.ndim:
        return [*found, f"{fact} has shape {array.shape}"]
    for dim, seen in zip(fact.shape, array.shape, strict=True):
        if text := binding.contradiction(dim, seen):
            found.append(f"{fact} has shape {array.shape}: {text}")
    if fact.known is not None:
        for item, seen in zip(fact.known.items, array.ravel().tolist(), strict=True):
            if isinstance(item, Expr) and seen != int(seen):
                continue
            if item is not None and (text := _element(item, seen, binding)):
                found.append(f"{fact} = {fact.known} holds {seen}: {text}")
    return found


def _element(item: Any, seen: Any, binding: Binding) -> str:
    if isinstance(item, Expr):
        return binding.contradiction(item, int(seen))
    if isinstance(item, float):
        return "" if np.isclose(item, seen, equal_nan=True) else f"{item} is {seen}"
    return "" if item == seen else f"{item} is {seen}"


def observed(path: Any, feeds: Feeds, ort_run: Oracle) -> dict[str, Any]:
    """Every value of the main graph that onnxruntime can give, initializers left out."""
    model = onnx.load(path, load_external_data=False)
    names = [name for node in model.graph.node for name in node.output if name]
    return ort_run(path, feeds, names)


@pytest.mark.parametrize("name", NAMES)
def test_no_fact_contradicts_a_run(name: str, corpus: Corpus, feeds: Callable[[str], Feeds], ort_run: Oracle) -> None:
    path = corpus[name]
    model = onnx.load(path, load_external_data=False)
    del model.graph.value_info[:]
    graph = ModelGraph(model, path.parent)
    inference = Inference(graph)
    given = feeds(name)
    binding, wrong = Binding(), []
    for value_name, array in {**given, **observed(path, given, ort_run)}.items():
        fact = inference.fact(graph.resolve_value(value_name))
        wrong += [f"{value_name}: {text}" for text in contradictions(fact, array, binding)]
    assert wrong == []
    assert [d for d in inference.diagnostics if d.severity == "error"] == []
