"""A Rewriting over a model, for tests that look at patterns and rules alone."""

import onnxlab
from onnxlab.transforms.rewriting import Rewriting


def rewriting_of(model: onnxlab.Model) -> Rewriting:
    """The graph of a model as rules see it."""
    return Rewriting(model.graph, model.inference.facts, lambda names: {})
