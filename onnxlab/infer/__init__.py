"""Live type and shape inference beside a ModelGraph.

Files:
    dropin/     The functions of onnx.shape_inference, with their signatures, results and exceptions.
    facts/      Facts and protos: types to facts and back, symbols, facts of what a model stores and declares.
    live/       Facts that follow every commit, and what an edit did to them.
    questions/  Questions about facts: why a dim is what it is, what if a symbol had a size, how much memory.
    rules/      Operators apart from the names of values, and the rules that infer them.
    walk/       Inference of nodes, scopes, bodies and function calls: from facts of inputs to facts of outputs.
"""

from onnxlab.infer.dropin.functions import infer_function_output_types, infer_node_outputs, infer_shapes
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.live.live_inference import Inference

__all__ = ["Inference", "Policy", "infer_function_output_types", "infer_node_outputs", "infer_shapes"]
