"""Live type and shape inference beside a ModelGraph.

engine.py     Inference: facts of all values, brought up to date after every commit
walk.py       one node, one scope: our rule, else onnx's C++ rule, else what the schema says
sifting.py    facts before and after a rule: what it reads, which of its answers can be true
calls.py      model-local functions, walked once per distinct call
explain.py    why a dim is what it is: the way back, with what provenance.py and losses.py find out at each node
radius.py     what an edit did to the facts, in words; first_refusal.py the first node that cannot accept it
whatif.py     all shapes with numbers for symbols; memory.py bytes of values and how many live at once
operators.py  what a node does apart from names; the memo of inferred facts
catalogue.py  which operator each node is, by signature.py: its bytes without names and notes; known.py: of any graph
native.py     onnx's per-node C++ inference behind facts
sources.py    facts of graph inputs and initializers, declared types
symbols.py    names for what is unknown
types.py      TypeProto and fact; encoding.py facts as the bytes of TypeProtos
policy.py     what declared types count
dropin.py     infer_shapes, infer_node_outputs, infer_function_output_types, in the place of onnx's
refusals.py   which problems they raise, and as what
writer.py     facts written into the messages of a model
"""

from onnxlab.infer.dropin import infer_function_output_types, infer_node_outputs, infer_shapes
from onnxlab.infer.engine import Inference
from onnxlab.infer.policy import Policy

__all__ = ["Inference", "Policy", "infer_function_output_types", "infer_node_outputs", "infer_shapes"]
