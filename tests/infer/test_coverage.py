"""How much is known of the corpus without its value_info: ranks, and dims in terms of the inputs."""

import onnx

from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import Fact, MapFact, OptionalFact, SequenceFact, TensorFact
from onnxlab.shapes.expressions import symbol_atoms
from tests.corpus import Corpus

# model: why a part of its dims depends on data
DEPENDS_ON_DATA = {
    "script_control": "a Loop whose condition the body computes, and what is stacked or joined from its iterations",
    "silero_vad_if": "an If over the sampling rate, whose branches return other sizes",
    "string_ops": "StringSplit and StringNormalizer, whose sizes are those of the texts",
}


def shape_known(fact: Fact, inputs: set[int]) -> tuple[bool, bool]:
    """(whether the rank is known, whether every dim follows from the model's inputs)."""
    while isinstance(fact, (SequenceFact, OptionalFact)):
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


def test_coverage_of_the_corpus(corpus: Corpus) -> None:
    ranks, dims = {}, {}
    for name in corpus:
        model = onnx.load(corpus[name], load_external_data=False)
        del model.graph.value_info[:]
        graph = ModelGraph(model)
        inference = Inference(graph)
        values = [vid for node in graph.main.node_ids for vid in graph.nodes[node].outputs if vid]
        found = [shape_known(inference.fact(vid), set(graph.main.inputs)) for vid in values]
        ranks[name] = sum(rank for rank, _ in found) / len(found)
        dims[name] = sum(dim for _, dim in found) / len(found)
    assert sum(ranks.values()) / len(ranks) >= 0.98
    assert sum(dims.values()) / len(dims) >= 0.95
    assert {name for name, share in dims.items() if share < 0.95} <= set(DEPENDS_ON_DATA)
