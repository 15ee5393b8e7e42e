"""Nodes in the words of another opset version: what `graph.edits.opset_conversion` puts into a model.

Files:
    attribute_references  Nodes of functions that take attributes from the call, with some that a call could give in
                          their place.
    broadcasting          Operators between versions that broadcast otherwise: before ai.onnx 7 by attributes, before
                          8 not at all.
    changes_of_meaning    The versions of ai.onnx in which operators got another meaning or other words, with what
                          writes them anew.
    facts                 The known facts of the values around a node that is converted: their types, and the elements
                          of constants.
    function_bodies       The nodes that a node stands for, by the function that its operator's schema carries. Works
                          on messages alone.
    node_conversion       Nodes in the words of another version of ai.onnx, by onnx's version converter. Works on
                          messages alone.
    node_rewrites         Conversions that onnx's adapters lack: ways down, operators with another meaning, axes
                          counted from the end.
    resizing              Upsample and Resize between versions: where an output element lies in the input, and the
                          inputs it is told by.
    rewordings            Other operators whose words or defaults changed: casts, pads, samples, groups, constants,
                          masks.
    schema_fit            Whether a node is one of an operator's version: arity, attributes, and the types that are
                          known.
"""

from onnxlab.graph.edits.opsets.broadcasting import needs_one_shape
from onnxlab.graph.edits.opsets.function_bodies import is_written_with_bodies
from onnxlab.graph.edits.opsets.node_conversion import Found, converted
from onnxlab.graph.edits.opsets.schema_fit import same, since

__all__ = ["Found", "converted", "is_written_with_bodies", "needs_one_shape", "same", "since"]
