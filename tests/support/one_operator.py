"""The smallest model of an operator, made from its schema."""

from typing import Any

import onnx
from onnx import helper

from onnxlab.schemas import Schema

_VALUES: dict[str, Any] = {"int": 1, "float": 0.5, "string": "x", "ints": [1], "floats": [0.5], "strings": ["x"]}


def element_type(name: str) -> int | None:
    """The element type that "tensor(float)" names, None for what is no tensor."""
    inner = name.removeprefix("tensor(").removesuffix(")")
    number = {"float": 1, "double": 11}.get(inner) or onnx.TensorProto.DataType.DESCRIPTOR.values_by_name.get(
        inner.upper()
    )
    return (number if isinstance(number, int) else number.number) if name.startswith("tensor(") and number else None


def sound(schema: Schema) -> onnx.ModelProto | None:
    """A model of one node with the fewest inputs, outputs and attributes; None where it cannot be made."""
    if any(spec.type not in _VALUES for spec in schema.attributes.values() if spec.required):
        return None
    types: dict[str, int] = {}
    for formal in schema.inputs:
        allowed = schema.type_constraints.get(formal.type_str, (formal.type_str,))
        chosen = "tensor(float)" if "tensor(float)" in allowed else allowed[0]
        if (elem_type := element_type(chosen)) is None:
            return None
        types[formal.name] = elem_type
    least = max(schema.min_input, 1)
    inputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in list(types.items())[:least]]
    node = helper.make_node(
        schema.op_type,
        [info.name for info in inputs],
        [f"{formal.name}_made" for formal in schema.outputs[: max(schema.min_output, 1)]],
        domain=schema.domain,
        **{name: _VALUES[spec.type] for name, spec in schema.attributes.items() if spec.required},
    )
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "one", inputs, outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(schema.domain, schema.since_version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)
