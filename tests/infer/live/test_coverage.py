"""The known share of the corpus without its value_info: ranks, and dims in terms of the inputs."""

from collections.abc import Iterator
from pathlib import Path

import onnx

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import Fact, MapFact, OptionalFact, SequenceFact, TensorFact
from onnxlab.shapes.expressions import symbol_atoms
from tests.support.corpus import Corpus

# model: why a part of its dims depends on data
DEPENDS_ON_DATA = {
    "silero_vad_if": "an If over the number of frames, whose branches return other ranks, and all behind it",
    "string_ops": "StringSplit, whose size is that of the longest text",
}


def shape_known(fact: Fact, inputs: set[int]) -> tuple[bool, bool]:
    """(whether the rank is known, whether every dim follows from the model's inputs)."""
    while isinstance(fact, (SequenceFact, OptionalFact)):
        if isinstance(fact, SequenceFact) and fact.length == 0:
            return True, True
        fact = fact.elem
    if isinstance(fact, MapFact):
        return True, True
    if not isinstance(fact, TensorFact) or fact.shape is None:
        return False, False
    named = all(
        isinstance(atom.key, str) or (atom.key[0] == "unknown" and atom.key[3] in inputs)  # type: ignore[index]
        for atom in symbol_atoms(*fact.shape)
    )
    return True, named


def made(graph: ModelGraph) -> Iterator[int]:
    """Ids of the values that nodes make, those of bodies included; functions count by their calls."""
    for node in graph.nodes.values():
        if not graph.root(graph.scopes[node.scope]).is_function:
            yield from filter(None, node.outputs)


def coverage(path: Path) -> tuple[float, float]:
    """Shares of values of known rank, and of known dims, with the model's value_info removed."""
    model = onnx.load(path, load_external_data=False)
    del model.graph.value_info[:]
    graph = ModelGraph(model)
    inference = Inference(graph)
    known = [shape_known(inference.fact(vid), set(graph.main.inputs)) for vid in made(graph)]
    return sum(rank for rank, _ in known) / len(known), sum(dim for _, dim in known) / len(known)


def test_coverage_of_the_corpus(corpus: Corpus) -> None:
    shares = {name: coverage(corpus[name]) for name in corpus}
    assert sum(rank for rank, _ in shares.values()) / len(shares) >= 0.995
    assert sum(dims for _, dims in shares.values()) / len(shares) >= 0.97
    assert {name for name, (_, dims) in shares.items() if dims < 0.95} <= set(DEPENDS_ON_DATA)
