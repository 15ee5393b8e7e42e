"""Whether an edit by hand changed what a model computes: the model as it was, and as it is, on inputs of every kind."""

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.transforms.verification import Judgment
from onnxlab.transforms.verification_runs import Subject, Trust
from onnxlab.transforms.verified_rewrites import compared


def prove(before: ModelGraph, after: ModelGraph, trust: Trust) -> Judgment:
    """Run two models on the same inputs of every kind and compare their outputs, by name."""
    return compared(Subject(before, Inference(before)), Subject(after, Inference(after)), trust)
