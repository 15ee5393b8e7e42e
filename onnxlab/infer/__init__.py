"""Live type and shape inference beside a ModelGraph.

engine.py     Inference: facts of all values, brought up to date after every commit
walk.py       one node, one scope: our rule, else onnx's C++ rule, else what the schema says
calls.py      model-local functions, walked once per distinct call
operators.py  what a node does apart from names; the memo of inferred facts
native.py     onnx's per-node C++ inference behind facts
sources.py    facts of graph inputs and initializers, declared types
symbols.py    names for what is unknown
types.py      TypeProto and fact
"""

from onnxlab.infer.engine import Inference

__all__ = ["Inference"]
