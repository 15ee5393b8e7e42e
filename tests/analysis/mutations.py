"""Models broken in every way that a field can be: each mutation is one small change somewhere in a ModelProto."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxlab import dtypes
from onnxlab.graph.protos.tensors import field_length
from tests.graph.support.models import branches, chain


def messages(message: Any) -> Iterator[Any]:
    """A message and all messages in it."""
    pending = [message]
    while pending:
        current = pending.pop()
        yield current
        for descriptor, value in current.ListFields():
            if descriptor.message_type is not None:
                pending += list(value) if descriptor.is_repeated else [value]


def names(model: onnx.ModelProto) -> list[str]:
    """Every name of a value in the model, "" and an unheard one."""
    names_used = {"", "unheard"}
    for message in messages(model):
        if isinstance(message, onnx.NodeProto):
            names_used.update((*message.input, *message.output))
    return sorted(names_used)


_INTEGERS = (0, 1, 2, 3, 7, 8, 9, 13, 14, 17, 21, 22, 99, -1, 1 << 31)


def mutate(model: onnx.ModelProto, rng: random.Random) -> str:
    """Change one field somewhere; returns what was done."""
    weights = {"TensorShapeProto": 0.2, "Dimension": 0.1, "TypeProto": 0.4, "Tensor": 0.4}
    candidates = list(messages(model))
    message = rng.choices(candidates, [weights.get(item.DESCRIPTOR.name, 1) for item in candidates])[0]
    fields = [item for item in message.DESCRIPTOR.fields if item.name not in ("metadata_props", "doc_string")]
    present = [descriptor for descriptor, _ in message.ListFields()]
    descriptor = rng.choice(present if present and rng.random() < 0.7 else fields)
    where = f"{message.DESCRIPTOR.name}.{descriptor.name}"
    if descriptor.is_repeated:
        return f"{_mutate_repeated(getattr(message, descriptor.name), descriptor, model, rng)} {where}"
    if descriptor.message_type is not None:
        if message.HasField(descriptor.name):
            message.ClearField(descriptor.name)
            return f"clear {where}"
        getattr(message, descriptor.name).SetInParent()
        return f"set empty {where}"
    if message.HasField(descriptor.name) and rng.random() < 0.4:
        message.ClearField(descriptor.name)
        return f"clear {where}"
    value = _scalar(descriptor, model, rng)
    setattr(message, descriptor.name, value)
    return f"set {where} to {value!r}"


def _mutate_repeated(items: Any, descriptor: Any, model: onnx.ModelProto, rng: random.Random) -> str:
    kind = rng.choice(("delete", "repeat", "swap", "add")) if len(items) else "add"
    position = rng.randrange(len(items)) if len(items) else 0
    if kind == "delete":
        del items[position]
    elif kind == "add":
        if descriptor.message_type is not None:
            items.add()
        else:
            items.append(_scalar(descriptor, model, rng))
    else:
        deep = descriptor.message_type is not None
        copies = [type(item).FromString(item.SerializeToString()) if deep else item for item in items]
        if kind == "repeat":
            copies.insert(position, copies[position])
        else:
            copies.insert(rng.randrange(len(copies)), copies.pop(position))
        del items[:]
        items.extend(copies)
    return kind


def _scalar(descriptor: Any, model: onnx.ModelProto, rng: random.Random) -> Any:
    if descriptor.enum_type is not None:
        return rng.choice(descriptor.enum_type.values).number
    if descriptor.cpp_type == descriptor.CPPTYPE_STRING:
        if descriptor.type == descriptor.TYPE_BYTES:
            return rng.choice((b"", b"1234", b"12345678"))
        return rng.choice((*names(model), "ai.onnx", "Relu", "Loop", "local", "then_branch", "axis"))
    if descriptor.cpp_type in (descriptor.CPPTYPE_FLOAT, descriptor.CPPTYPE_DOUBLE):
        return 0.5
    number = rng.choice(_INTEGERS)
    wide = descriptor.cpp_type in (descriptor.CPPTYPE_INT64, descriptor.CPPTYPE_UINT64)
    signed = descriptor.cpp_type in (descriptor.CPPTYPE_INT64, descriptor.CPPTYPE_INT32)
    number = number if wide or number < 1 << 31 else 5
    return number if signed else abs(number)


def tensors() -> onnx.ModelProto:
    """Initializers of every element type, raw and typed, sparse ones, tensors in attributes."""
    graph = helper.make_graph(
        [
            helper.make_node("Constant", [], ["c"], "c", value=numpy_helper.from_array(np.ones(3, np.float32))),
            helper.make_node("Constant", [], ["s"], "s", sparse_value=sparse("in_attribute")),
            helper.make_node("Add", ["c", "c"], ["y"], "add"),
        ],
        "tensors", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        sparse_initializer=[sparse("sparse")],
    )  # fmt: skip
    for elem_type in sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}):
        name = TensorProto.DataType.Name(elem_type).lower()
        for raw in (False, True):
            tensor = graph.initializer.add(name=f"{name}_{raw}", dims=[2, 4], data_type=elem_type)
            if raw and elem_type != TensorProto.STRING:
                tensor.raw_data = bytes(1024)[: _raw_size(elem_type)]
            elif elem_type == TensorProto.STRING:
                tensor.string_data.extend([b"a"] * 8)
            elif not raw:
                field = helper.tensor_dtype_to_field(elem_type)
                count = field_length(elem_type, 8)
                getattr(tensor, field).extend([1] * count)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=11)


def _raw_size(elem_type: int) -> int:
    return (8 * dtypes.bits(elem_type) + 7) // 8


def sparse(name: str) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        helper.make_tensor(name, TensorProto.FLOAT, [2], [1.0, 2.0]),
        helper.make_tensor(f"{name}_indices", TensorProto.INT64, [2], [1, 4]),
        [2, 3],
    )


def bases() -> list[onnx.ModelProto]:
    """Valid models that together use most of onnx.proto."""
    old = chain()
    old.ir_version, old.opset_import[0].version = 3, 9
    del old.graph.initializer[:]
    old.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3, 1, 1]))
    loop = helper.make_model(loops(), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return [chain(), branches(), tensors(), old, loop, calls()]


def loops() -> onnx.GraphProto:
    """A Loop whose body has an initializer of its own and reads a value from outside."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "one"], ["sum"], "add"),
            helper.make_node("Add", ["sum", "outer"], ["next"], "add_outer"),
            helper.make_node("Identity", ["go"], ["go_on"], "same"),
        ],
        "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("state", TensorProto.FLOAT, [1])],
        [info("go_on", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [1])],
        [numpy_helper.from_array(np.ones(1, np.float32), "one")],
    )
    return helper.make_graph(
        [
            helper.make_node("Neg", ["x"], ["outer"], "neg"),
            helper.make_node("Loop", ["count", "", "x"], ["y"], "loop", body=body),
        ],
        "loops",
        [info("x", TensorProto.FLOAT, [1]), info("count", TensorProto.INT64, [])],
        [info("y", TensorProto.FLOAT, [1])],
    )


def calls() -> onnx.ModelProto:
    """Functions with attributes that call each other, one with an overload."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    scaled = helper.make_node("Elu", ["v"], ["w"], "elu")
    scaled.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    inner = helper.make_function("local", "Inner", ["v"], ["w"], [scaled], opsets, attributes=["alpha"])
    outer = helper.make_function(
        "local", "Outer", ["a"], ["b"], [helper.make_node("Inner", ["a"], ["b"], domain="local", alpha=0.5)], opsets
    )
    again = helper.make_function("local", "Outer", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opsets)
    again.overload = "again"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Outer", ["x"], ["y"], "call", domain="local")], "calls", [x], [y])
    return helper.make_model(graph, functions=[inner, outer, again], opset_imports=opsets, ir_version=10)
