"""Nodes in the words of another opset version: what `graph.edits.conversion` puts into a model."""

from onnxlab.graph.opsets.bodies import is_written_with_bodies
from onnxlab.graph.opsets.converting import Found, converted
from onnxlab.graph.opsets.fitting import same, since

__all__ = ["Found", "converted", "is_written_with_bodies", "same", "since"]
