"""Models whose structure is hostile: nests, circles, odd names and types, data that do not fit."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.mutants import INTEGERS, TEXTS
from tests.hostile.oversized import SIZES, VALUES, model


def nested_bodies(case):
    """A model with If in If, hundreds deep."""
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    for level in range(case.pick((5, 20, 30))):
        body = helper.make_graph(nodes, f"b{level}", [], [onnx.ValueInfoProto(name="y")])
        nodes = [
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                then_branch=body,
                else_branch=body
                if level < 3
                else helper.make_graph(
                    [helper.make_node("Neg", ["x"], ["y"])], "e", [], [onnx.ValueInfoProto(name="y")]
                ),
            )
        ]
    return model(nodes, constants=[numpy_helper.from_array(np.array(True), "c")])


def nested_functions(case):
    """Functions that call each other, once or twice a level."""
    levels, times = case.pick(((20, 2), (100, 1), (400, 1), (1000, 1), (60, 2)))
    functions = []
    for level in range(levels):
        below, domain = (f"f{level - 1}", "f") if level else ("Relu", "")
        calls = [helper.make_node(below, [f"v{number}"], [f"v{number + 1}"], domain=domain) for number in range(times)]
        functions.append(
            helper.make_function(
                "f",
                f"f{level}",
                ["v0"],
                [f"v{times}"],
                calls,
                [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)],
            )
        )
    return model([helper.make_node(f"f{levels - 1}", ["x"], ["y"], domain="f")], functions=functions, domains=["f"])


def function_circle(case):
    count = 1 + case.upto(4)
    functions = [
        helper.make_function(
            "f",
            f"f{number}",
            ["a"],
            ["b"],
            [helper.make_node(f"f{(number + 1) % count}", ["a"], ["b"], domain="f")],
            [helper.make_opsetid("f", 1)],
        )
        for number in range(count)
    ]
    return model([helper.make_node("f0", ["x"], ["y"], domain="f")], functions=functions, domains=["f"])


def node_circle(case):
    """Nodes that read each other, or two that make the same value."""
    count = 2 + case.upto(5)
    nodes = [helper.make_node("Add", ["x", f"v{(number + 1) % count}"], [f"v{number}"]) for number in range(count)]
    return model([*nodes, helper.make_node("Relu", ["v0"], ["y" if case.chance(0.7) else "v1"])])


def long_names(case):
    name = case.pick(("a/" * 1500 + "b", "n" * 10**6, "a." * 3000, "/" * 5000, "x" * 300))
    return model(
        [helper.make_node("Relu", ["x"], [name], name=name), helper.make_node("Neg", [name], ["y"], domain="")]
    )


def odd_names(case):
    text, other = case.pick(TEXTS), case.pick(TEXTS)
    nodes = [
        helper.make_node("Relu", ["x"], [text], name=other),
        helper.make_node(case.pick(("Neg", other)), [text], ["y"], name=text),
    ]
    proto = model(nodes)
    proto.graph.name, proto.producer_name, proto.graph.doc_string = other, text, text
    return proto


def doubled_names(case):
    """The same name for an input, an initializer and an output; nodes of one name."""
    name = case.pick(("x", "y", "w"))
    weights = [numpy_helper.from_array(np.ones((2, 3), np.float32), name) for _ in range(2)]
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="n"),
        helper.make_node("Neg", [name], [case.pick(("y", "z"))], name="n"),
    ]
    return model(nodes, [*VALUES[0], *VALUES[0][: case.upto(1)]], [*VALUES[1], *VALUES[1]], weights[: 1 + case.upto(1)])


def wrong_data(case):
    """An initializer whose dims and data do not fit."""
    dims = [case.pick(SIZES) for _ in range(1 + case.upto(2))]
    tensor = TensorProto(name="w", data_type=case.pick(range(26)), dims=dims)
    field = case.pick(("raw_data", "float_data", "int64_data", "int32_data", "string_data", ""))
    if field == "raw_data":
        tensor.raw_data = case.rng.bytes(case.upto(40))
    elif field == "string_data":
        tensor.string_data.extend([b"\xff\xfe", b"a"])
    elif field:
        getattr(tensor, field).extend([1] * case.upto(8))
    return model([helper.make_node("Add", ["x", "w"], ["y"])], constants=[tensor])


def wrong_types(case):
    """Element types that do not exist, and values that are no tensors."""
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], constants=[helper.make_tensor("w", 1, [1], [1.0])])
    kind = case.upto(3)
    if kind == 0:
        proto.graph.input[0].type.tensor_type.elem_type = case.pick((0, 24, 27, 99, 2**31 - 1, -1))
    elif kind == 1:
        proto.graph.initializer[0].data_type = case.pick((0, 24, 27, 99, 2**31 - 1, -1))
    elif kind == 2:
        proto.graph.input[0].type.map_type.key_type = 7
    else:
        kind = proto.graph.input[0].type
        for _ in range(case.pick((1, 5, 80))):
            kind = kind.sequence_type.elem_type if case.chance(0.5) else kind.optional_type.elem_type
        kind.SetInParent()
    return proto


def sparse(case):
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    rows = helper.make_tensor("", TensorProto.INT64, [2], [case.pick(SIZES), case.pick(SIZES)])
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])])
    proto.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, rows, [case.pick(SIZES) for _ in range(1 + case.upto(1))])
    )
    return proto


def opsets(case):
    """Versions that do not exist, twice or not at all."""
    proto = model([helper.make_node("Relu", ["x"], ["y"])], ir=case.pick((0, 1, 2, 3, 9, 99, 2**31)))
    proto.opset_import[0].version = case.pick((*INTEGERS, 8, 13))
    if case.chance(0.3):
        proto.opset_import.add(domain=case.pick(TEXTS), version=case.pick(INTEGERS))
    if case.chance(0.2):
        del proto.opset_import[:]
    return proto


def empty(case):
    proto = onnx.ModelProto()
    if case.chance(0.5):
        proto.graph.SetInParent()
        proto.ir_version = case.pick((0, 9))
    if case.chance(0.3):
        proto.graph.node.add(op_type=case.pick(("", "Relu")))
    return proto


def bodies_without(case):
    """Control flow that lacks what it needs, or has it wrong."""
    op_type, name = case.pick((("If", "then_branch"), ("Loop", "body"), ("Scan", "body"), ("SequenceMap", "body")))
    inputs = [helper.make_tensor_value_info(f"i{number}", case.pick((1, 7, 9)), []) for number in range(case.upto(3))]
    outputs = [onnx.ValueInfoProto(name=f"o{number}") for number in range(case.upto(3))]
    body = helper.make_graph(
        [helper.make_node("Identity", ["x"], [output.name]) for output in outputs], "b", inputs, outputs
    )
    attributes = {name: body} if case.chance(0.8) else {}
    if op_type == "Scan" and case.chance(0.5):
        attributes["num_scan_inputs"] = case.pick(INTEGERS)
    return model(
        [helper.make_node(op_type, ["x", "x", "x"][: case.upto(3)], ["y", "z"][: 1 + case.upto(1)], **attributes)]
    )


def strings(case):
    """Strings that are no UTF-8, or long, through every operator of strings."""
    items = [case.pick((b"\xff", b"a" * 10**5, b"", "é".encode(), b"\xed\xa0\x80", b"1e999")) for _ in range(3)]
    tensor = TensorProto(name="s", data_type=8, dims=[3], string_data=items)
    op_type, inputs = case.pick(
        (
            ("StringNormalizer", "s"),
            ("StringConcat", "s s"),
            ("StringSplit", "s"),
            ("Cast", "s"),
            ("Equal", "s s"),
            ("Unique", "s"),
        )
    )
    attributes = {"to": case.pick((1, 7, 8, 9))} if op_type == "Cast" else {}
    return model([helper.make_node(op_type, inputs.split(), ["y"], **attributes)], [], constants=[tensor])


def regular(case):
    """Regular expressions that take for ever, or are none."""
    pattern = case.pick(
        ("(a+)+b", "(a|a)*b", "((a*)*)*c", "(", "[", "a{1000000}", "(?=a)", "\\1", "(?R)", "a" * 10**5, "(a?){40}a{40}")
    )
    tensor = TensorProto(name="s", data_type=8, dims=[1], string_data=[b"a" * case.pick((5, 40, 10**5)) + b"c"])
    return model([helper.make_node("RegexFullMatch", ["s"], ["y"], pattern=pattern)], [], constants=[tensor])


def equations(case):
    letters = "".join(random.Random(case.seed).choices("ijkl.,-> A…é1", k=case.upto(12)))
    return model(
        [
            helper.make_node(
                "Einsum",
                ["x"] * (1 + case.upto(3)),
                ["y"],
                equation=case.pick((letters, "ij,jk->ik", "ii->i", "...->...", "i" * 60)),
            )
        ]
    )


def metadata(case):
    proto = model([helper.make_node("Relu", ["x"], ["y"])])
    for _ in range(case.pick((1, 3, 2000))):
        case.pick((proto.metadata_props, proto.graph.metadata_props, proto.graph.node[0].metadata_props)).add(
            key=case.pick(TEXTS), value=case.pick(TEXTS)
        )
    return proto


def training(case):
    proto = model([helper.make_node("Relu", ["x"], ["y"])])
    info = proto.training_info.add()
    info.algorithm.node.add(op_type="Add", input=["x", "y"], output=["z"])
    info.algorithm.output.add(name="z")
    info.initialization_binding.add(key="x", value="z")
    info.update_binding.add(key=case.pick(("w", "x", "")), value="z")
    return proto


def sequences(case):
    """Sequences and optionals where tensors are expected, and the other way round."""
    ops = (
        "SequenceConstruct",
        "SequenceAt",
        "SequenceLength",
        "SequenceInsert",
        "SequenceErase",
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SplitToSequence",
        "SequenceEmpty",
        "Identity",
        "Add",
    )
    nodes, last = [], "x"
    for number in range(1 + case.upto(4)):
        op_type = case.pick(ops)
        attributes = {"axis": case.pick(INTEGERS)} if op_type == "ConcatFromSequence" else {}
        inputs = [] if op_type == "SequenceEmpty" else [last, *["x", "i"][: case.upto(2)]]
        nodes.append(helper.make_node(op_type, inputs, [f"v{number}"], **attributes))
        last = f"v{number}"
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    return model(nodes, constants=[numpy_helper.from_array(np.array(case.pick(INTEGERS), np.int64), "i")])


def deep_messages(case):
    """Graph attributes in each other, up to what protobuf reads and beyond."""
    graph = onnx.GraphProto(name="inner")
    graph.node.add(op_type="Relu", input=["x"], output=["y"])
    for _ in range(case.pick((10, 30, 45, 60))):
        outer = onnx.GraphProto(name="b")
        node = outer.node.add(op_type=case.pick(("If", "Mystery")), input=["x"], output=["y"])
        node.attribute.add(name="then_branch", type=5).g.CopyFrom(graph)
        graph = outer
    proto = model([])
    proto.graph.CopyFrom(graph)
    return proto


def unread_declarations(case):
    """Declarations that contradict what is made."""
    proto = model([helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])])
    for name in ("t", "none", "x", "t"):
        proto.graph.value_info.append(
            helper.make_tensor_value_info(name, case.pick((1, 7, 8)), [case.pick((2, "n", 2**62, -1))])
        )
    proto.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", case.pick((1, 7)), [case.pick((2, 5, "k")), case.pick((3, "k"))])
    )
    return proto


def quantization(case):
    proto = model(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=case.pick(INTEGERS)),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ]
    )
    proto.graph.initializer.append(
        numpy_helper.from_array(case.rng.standard_normal(case.pick((1, 2, 3))).astype(np.float32), "s")
    )
    proto.graph.initializer.append(helper.make_tensor("z", case.pick((2, 3, 17, 21, 22, 23)), [1], [0]))
    annotation = proto.graph.quantization_annotation.add(tensor_name=case.pick(("x", "none", "")))
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="none")
    return proto


def duplicate_functions(case):
    """Two functions of one name, one with the name of an operator, one that takes too much."""
    bodies = [helper.make_node("Neg", ["a"], ["b"])]
    opset = [helper.make_opsetid("", case.pick((1, 20, 99)))]
    functions = [
        helper.make_function(
            case.pick(("f", "")), "Relu", case.pick((["a"], ["a", "a"], ["a", "c"])), ["b"], bodies, opset
        )
        for _ in range(1 + case.upto(1))
    ]
    return model(
        [helper.make_node("Relu", ["x"], ["y"], domain=functions[0].domain)], functions=functions, domains=["f"]
    )


PLAIN = (
    nested_bodies,
    nested_functions,
    function_circle,
    node_circle,
    long_names,
    odd_names,
    doubled_names,
    wrong_data,
    wrong_types,
    sparse,
    opsets,
    empty,
    bodies_without,
    strings,
    regular,
    equations,
    metadata,
    training,
    sequences,
    deep_messages,
    unread_declarations,
    quantization,
    duplicate_functions,
)
