"""Nodes in the words of another opset version: what `graph.edits.conversion` puts into a model."""

from onnxlab.graph.opsets.converting import Found, converted
from onnxlab.graph.opsets.fitting import same, since

__all__ = ["Found", "converted", "same", "since"]
