"""Small models for the tests of inference."""

from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper, parser

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import Fact


def parsed(text: str) -> ModelGraph:
    """A graph from onnx's text format; opset 20 unless the text says otherwise."""
    if "<" not in text.split("(")[0]:
        text = '<ir_version: 9, opset_import: ["" : 20, "local" : 1]> ' + text
    return ModelGraph(parser.parse_model(text))


def fact(graph: ModelGraph, name: str, inference: Inference | None = None) -> Fact:
    """The fact of a value by name, from scratch unless an inference is given."""
    return (inference or Inference(graph)).fact(graph.resolve_value(name))


def one_node(
    op_type: str,
    inputs: Sequence[tuple[int, Sequence[int | str | None] | None] | onnx.TensorProto | None],
    outputs: int = 1,
    opset: int = 21,
    domain: str = "",
    **attributes: object,
) -> tuple[list[Fact], Inference]:
    """Facts of a node's outputs for inputs that are (element type, shape), tensors (known values) or absent."""
    names = [f"x{slot}" if operand is not None else "" for slot, operand in enumerate(inputs)]
    outputs_named = [f"y{slot}" for slot in range(outputs)]
    node = helper.make_node(op_type, names, outputs_named, name="node", domain=domain, **attributes)
    infos, tensors = [], []
    for name, operand in zip(names, inputs, strict=True):
        if isinstance(operand, TensorProto):
            operand.name = name
            tensors.append(operand)
        elif operand is not None:
            infos.append(helper.make_tensor_value_info(name, *operand))
    outs = [onnx.ValueInfoProto(name=name) for name in outputs_named]
    graph = helper.make_graph([node], "one", infos, outs, tensors)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    wrapped = ModelGraph(helper.make_model(graph, opset_imports=imports, ir_version=10))
    inference = Inference(wrapped)
    return [inference.fact(wrapped.resolve_value(name)) for name in outputs_named], inference


def ints(*items: int) -> onnx.TensorProto:
    """An int64 vector initializer."""
    return helper.make_tensor("", TensorProto.INT64, [len(items)], items)


def shape_chain() -> ModelGraph:
    """A Reshape whose target is computed from the input's dims, inside and outside of bodies and functions."""
    return parsed("""
        agraph (float[batch, seq, 64] x, bool flag, int64 n, float[64, 32] kernel) => (float[?, ?] y, z, w, f)
        <int64[1] zero = {0}, int64[1] one = {1}, int64[1] left = {-1}, int64[1] axis = {0}>
        {
            dims = Shape(x)
            batch = Gather(dims, zero)
            seq = Gather(dims, one)
            rows = Mul(batch, seq)
            target = Concat <axis = 0> (rows, left)
            flat = Reshape(x, target)
            m = MatMul(flat, kernel)
            y = Relu(m)
            z = If (flag) <
                then_branch = then () => (t) { t = Concat <axis = 0> (m, m) },
                else_branch = other () => (e) { e = Neg(m) }
            >
            w = Loop (n, flag, m) <
                body = loop (int64 i, bool c, v) => (c2, v2) { c2 = Identity(c)  v2 = Add(v, v) }
            >
            f = local.halves <axis = 1> (y)
        }
        <opset_import: ["" : 20], domain: "local">
        halves <axis> (a) => (out)
        {
            size = Constant <value_ints = [16, 16]> ()
            left, right = Split <axis: int = @axis> (a, size)
            out = Mul(left, right)
        }
    """)
