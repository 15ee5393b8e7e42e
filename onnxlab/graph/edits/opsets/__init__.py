"""Nodes in the words of another opset version: what `graph.edits.opset_conversion` puts into a model.

Files:
    attribute_references  Nodes of functions that take attributes from the call, with some that a call could give in
                          their place.
    function_bodies       The nodes that a node stands for, by the function that its operator's schema carries. Works
                          on messages alone.
    node_conversion       Nodes in the words of another version of ai.onnx, by onnx's version converter. Works on
                          messages alone.
    node_rewrites         Conversions that onnx's adapters lack: ways down, operators with another meaning, axes
                          counted from the end.
    schema_fit            Whether a node is one of an operator's version: arity, attributes, and the types that are
                          known.
"""

from onnxlab.graph.edits.opsets.function_bodies import is_written_with_bodies
from onnxlab.graph.edits.opsets.node_conversion import Found, converted
from onnxlab.graph.edits.opsets.schema_fit import same, since

__all__ = ["Found", "converted", "is_written_with_bodies", "same", "since"]
