"""Facts against the arrays of a real run: on every model of the corpus nothing contradicts them."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnxlab import dtypes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import VARIES, Expr, Fact, MapFact, SequenceFact, TensorFact, replace_symbols
from onnxlab.shapes.arithmetic import sole_atom
from onnxlab.shapes.expressions import Atom
from tests.infer.support.random_models import random_model
from tests.support.corpus import NAMES, Corpus
from tests.support.oracle import Oracle, new_session

Feeds = dict[str, np.ndarray]


class Binding:
    """Values of symbols, learned from where a dim or element is a lone symbol; later sightings must agree."""

    def __init__(self) -> None:
        self.values: dict[Atom, int] = {}

    def contradiction(self, dim: Any, seen: int) -> str:
        if dim is VARIES:
            return ""
        if isinstance(dim, Expr):
            try:
                dim = replace_symbols(dim, self.values.get)
            except ValueError as error:  # a broadcast of sizes that do not broadcast
                return f"{dim} is {seen}, but {error}"
        atom = sole_atom(dim) if isinstance(dim, Expr) else None
        if atom is not None and not atom.function and atom.definition is None:
            self.values[atom] = seen
            return ""
        if isinstance(dim, Expr):
            return ""  # depends on what nothing observed
        return "" if dim == seen else f"{dim} is {seen}"


def contradictions(fact: Fact, value: Any, binding: Binding) -> list[str]:
    """The contradictions of a fact and a value of a run."""
    if isinstance(fact, SequenceFact) and isinstance(value, list):
        return [
            text for item in value if not isinstance(item, dict) for text in contradictions(fact.elem, item, binding)
        ]
    if isinstance(fact, MapFact) or not isinstance(fact, TensorFact):
        return []
    array = np.asarray(value)
    problems = []
    if fact.elem_type not in (0, dtypes.from_numpy(array.dtype)):
        problems.append(f"{fact} is {array.dtype}")
    if fact.shape is None:
        return problems
    if len(fact.shape) != array.ndim:
        return [*problems, f"{fact} has shape {array.shape}"]
    for dim, seen in zip(fact.shape, array.shape, strict=True):
        if text := binding.contradiction(dim, seen):
            problems.append(f"{fact} has shape {array.shape}: {text}")
    if fact.known is not None:
        for item, seen in zip(fact.known.items, array.ravel().tolist(), strict=True):
            if isinstance(item, Expr) and seen != int(seen):
                continue
            if item is not None and (text := _element(item, seen, binding)):
                problems.append(f"{fact} = {fact.known} holds {seen}: {text}")
    return problems


def _element(item: Any, seen: Any, binding: Binding) -> str:
    if isinstance(item, Expr):
        return binding.contradiction(item, int(seen))
    if isinstance(item, float):
        return "" if np.isclose(item, seen, equal_nan=True) else f"{item} is {seen}"
    return "" if item == seen else f"{item} is {seen}"


def observed(path: Path, feeds: Feeds, ort_run: Oracle) -> dict[str, Any]:
    """Every value of the main graph that onnxruntime can give, initializers left out."""
    model = onnx.load(path, load_external_data=False)
    names = [name for node in model.graph.node for name in node.output if name]
    return ort_run(path, feeds, names)


def contradictions_of_run(graph: ModelGraph, inference: Inference, arrays: Mapping[str, Any]) -> list[str]:
    """The contradictions of facts and the values of one run, inputs first, whose sizes bind the symbols."""
    binding = Binding()
    return [
        f"{name}: {text}"
        for name, array in arrays.items()
        for text in contradictions(inference.fact(graph.resolve_value(name)), array, binding)
    ]


def other_feeds(path: Path, feeds: Feeds) -> Iterator[Feeds]:
    """The same inputs with other sizes of every symbolic dim, until one is fit for the model; none without symbols."""
    graph = onnx.load(path, load_external_data=False).graph
    shapes = {info.name: info.type.tensor_type.shape.dim for info in graph.input if info.name in feeds}
    free = {name: [not dim.HasField("dim_value") for dim in dims] for name, dims in shapes.items()}
    if not any(map(any, free.values())):
        return
    for change in (lambda n: n + 8, lambda n: 2 * n, lambda n: n + 32, lambda n: n + 1, lambda n: n):
        sizes = {name: [*feeds[name].shape] for name in feeds}
        for name, dims in shapes.items():
            for axis in range(len(dims)):
                if free[name][axis]:
                    sizes[name][axis] = sizes[name][axis] + 1 if axis == 0 else change(sizes[name][axis])
        yield {name: np.resize(array, sizes[name]) for name, array in feeds.items()}


def corpus_contradictions(path: Path, feeds: Feeds, ort_run: Oracle, twice: bool) -> tuple[list[str], int]:
    """(what is wrong about a model's facts, with the number of runs): at one size, or at another one too."""
    model = onnx.load(path, load_external_data=False)
    del model.graph.value_info[:]
    graph = ModelGraph(model, path.parent)
    inference = Inference(graph)
    wrong = [str(d) for d in inference.diagnostics if d.severity == "error"]
    wrong += contradictions_of_run(graph, inference, {**feeds, **observed(path, feeds, ort_run)})
    for others in other_feeds(path, feeds) if twice else ():
        try:
            arrays = observed(path, others, ort_run)
        except Exception:  # onnxruntime's own kinds, where the model does not take these sizes
            continue
        return wrong + contradictions_of_run(graph, inference, {**others, **arrays}), 2
    return wrong, 1


@pytest.mark.parametrize("name", NAMES)
def test_no_fact_contradicts_a_run(name: str, corpus: Corpus, feeds: Callable[[str], Feeds], ort_run: Oracle) -> None:
    wrong, _ = corpus_contradictions(corpus[name], feeds(name), ort_run, twice="ONNXLAB_LONG" in os.environ)
    assert wrong == []


# fused operators of com.microsoft: FusedMatMul, FusedConv, Attention, QLinear*, …
OPTIMIZED = ("bert_base", "stft_audio", "tashkeel_bilstm_int8", "rapidocr_cls", "resnet101_qdq")


@pytest.mark.parametrize("name", OPTIMIZED)
def test_no_fact_contradicts_a_run_of_an_optimized_model(
    name: str, corpus: Corpus, feeds: Callable[[str], Feeds], tmp_path: Path
) -> None:
    path = optimized(corpus[name], tmp_path)
    assert any(node.domain == "com.microsoft" for node in onnx.load(path).graph.node)
    assert corpus_contradictions(path, feeds(name), Oracle(), twice=True) == ([], 1 if name == "resnet101_qdq" else 2)


def optimized(path: Path, folder: Path, everything: bool = False) -> Path:
    """The model as ONNX Runtime's optimizer writes it; with `everything` also what is for this processor only."""
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if everything else levels.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return folder / "optimized.onnx"


def random_contradictions(seed: int) -> list[str] | None:
    """The contradictions in a random model at both of its sizes; None where onnxruntime refuses it."""
    sample = random_model(seed)
    names = [info.name for info in sample.model.graph.output]
    try:
        session = new_session(sample.model.SerializeToString(), None)
        runs = [{**feeds, **dict(zip(names, session.run(names, feeds), strict=True))} for feeds in sample.feeds]
    except Exception:  # of onnxruntime
        return None
    for info in sample.model.graph.output:
        info.ClearField("type")
    graph = ModelGraph(sample.model)
    inference = Inference(graph)
    wrong = [str(d) for d in inference.diagnostics if d.severity == "error"]
    return wrong + [text for arrays in runs for text in contradictions_of_run(graph, inference, arrays)]


def test_no_fact_contradicts_random_models() -> None:
    outcomes = {seed: random_contradictions(seed) for seed in range(2000 if "ONNXLAB_LONG" in os.environ else 80)}
    assert sum(wrong is not None for wrong in outcomes.values()) >= 0.95 * len(outcomes)
    assert {seed: wrong for seed, wrong in outcomes.items() if wrong} == {}
