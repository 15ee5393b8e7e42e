"""Operators, declarations and graphs of hostile sizes: 2^62 of something, thousands of nodes, polynomials."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.mutants import INTEGERS

SIZES = (0, 1, 2, 65, 2**20, 2**31, 2**40, 2**53, 2**62, 2**63 - 1, -1, -(2**63))


VALUES = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])], [onnx.ValueInfoProto(name="y")]


def model(nodes, inputs=VALUES[0], outputs=VALUES[1], constants=(), opset=20, functions=(), domains=(), ir=9):
    opsets = [helper.make_opsetid("", opset), *[helper.make_opsetid(domain, 1) for domain in domains]]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), initializer=list(constants))
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=ir)


def integers(case, name, count):
    """An int64 constant of hostile sizes; sometimes a graph input of a hostile length, or a tensor with odd dims."""
    items = [case.pick(SIZES) for _ in range(count)]
    way = case.upto(5)
    if way == 0:
        return [helper.make_tensor_value_info(name, TensorProto.INT64, [case.pick(SIZES)])], []
    if way == 1:
        return [], [TensorProto(name=name, data_type=7, dims=[case.pick(SIZES)], int64_data=items)]
    return [], [numpy_helper.from_array(np.array(items, np.int64), name)]


# operator: (inputs, how many numbers its constant has)
BY_SIZE = {
    "Reshape": ("x s", 2),
    "Expand": ("x s", 3),
    "Tile": ("x s", 2),
    "Unsqueeze": ("x s", 2),
    "Squeeze": ("x s", 1),
    "ConstantOfShape": ("s", 2),
    "Pad": ("x s", 4),
    "Slice": ("x s s", 2),
    "Gather": ("x s", 2),
    "TopK": ("x s", 1),
    "OneHot": ("s s x", 1),
    "Range": ("s s s", 1),
    "Resize": ("x   s", 2),
    "Split": ("x s", 2),
    "ReduceSum": ("x s", 1),
    "SplitToSequence": ("x s", 2),
    "CumSum": ("x s", 1),
    "Trilu": ("x s", 1),
    "GatherND": ("x s", 2),
    "EyeLike": ("s", 2),
    "CenterCropPad": ("x s", 2),
    "BlackmanWindow": ("s", 1),
    "HannWindow": ("s", 1),
    "DFT": ("x s", 1),
    "Upsample": ("x s", 2),
    "AffineGrid": ("x s", 4),
    "Col2Im": ("x s s", 2),
    "MaxUnpool": ("x s s", 2),
    "ScatterND": ("x s x", 2),
    "Compress": ("x s", 2),
    "MelWeightMatrix": ("s s s s s", 1),
    "STFT": ("x s x s", 1),
    "NonMaxSuppression": ("x x s", 1),
    "BitShift": ("s s", 1),
    "ReverseSequence": ("x s", 2),
}


def sizes(case, op_type):
    """An operator with sizes of its result as numbers."""
    names, count = BY_SIZE[op_type]
    inputs, constants = integers(case, "s", 1 if case.chance(0.2) else count)
    attributes = (
        {"kernel_shape": [2, 2]} if op_type == "MaxUnpool" else {"direction": "LEFT"} if op_type == "BitShift" else {}
    )
    nodes = [helper.make_node(op_type, names.split(" "), ["y"], **attributes)]
    if case.chance(0.3):
        nodes = [
            helper.make_node(op_type, names.split(" "), ["t"], **attributes),
            helper.make_node("Shape", ["t"], ["y"]),
        ]
    return model(nodes, [*VALUES[0], *inputs], constants=constants, opset=case.pick((9, 13, 17, 18, 20, 21)))


# operator: (inputs, attributes, each of which becomes a hostile number or list of these)
BY_ATTRIBUTE = {
    "Split": ("x", {"num_outputs": 1, "axis": 1}),
    "Concat": ("x x", {"axis": 1}),
    "Transpose": ("x", {"perm": 2}),
    "Conv": ("x x", {"pads": 4, "strides": 2, "dilations": 2, "group": 1, "kernel_shape": 2}),
    "MaxPool": ("x", {"kernel_shape": 2, "pads": 4, "strides": 2, "dilations": 2, "ceil_mode": 1, "storage_order": 1}),
    "AveragePool": ("x", {"kernel_shape": 2, "pads": 4, "strides": 2, "dilations": 2, "count_include_pad": 1}),
    "ConvTranspose": ("x x", {"output_shape": 2, "output_padding": 2, "group": 1, "pads": 4, "strides": 2}),
    "LpPool": ("x", {"kernel_shape": 2, "p": 1}),
    "LRN": ("x", {"size": 1}),
    "Flatten": ("x", {"axis": 1}),
    "DepthToSpace": ("x", {"blocksize": 1}),
    "SpaceToDepth": ("x", {"blocksize": 1}),
    "Cast": ("x", {"to": 1}),
    "RandomNormal": ("", {"shape": 3}),
    "RandomUniform": ("", {"shape": 3, "dtype": 1}),
    "Softmax": ("x", {"axis": 1}),
    "ArgMax": ("x", {"axis": 1, "keepdims": 1}),
    "Gather": ("x x", {"axis": 1}),
    "Multinomial": ("x", {"sample_size": 1}),
    "EyeLike": ("x", {"k": 1, "dtype": 1}),
    "LSTM": ("x x x", {"hidden_size": 1}),
    "GRU": ("x x x", {"hidden_size": 1}),
    "Shape": ("x", {"start": 1, "end": 1}),
    "Hardmax": ("x", {"axis": 1}),
    "LayerNormalization": ("x x", {"axis": 1}),
    "GroupNormalization": ("x x x", {"num_groups": 1}),
    "RoiAlign": ("x x x", {"output_height": 1, "sampling_ratio": 1}),
    "Attention": ("x x x", {"q_num_heads": 1, "kv_num_heads": 1}),
    "QuantizeLinear": ("x x", {"axis": 1, "block_size": 1}),
    "ImageDecoder": ("x", {}),
    "TfIdfVectorizer": ("x", {"max_gram_length": 1, "ngram_counts": 2, "ngram_indexes": 2}),
    "Optional": ("x", {}),
    "Einsum": ("x x", {}),
    "GatherElements": ("x x", {"axis": 1}),
    "MeanVarianceNormalization": ("x", {"axes": 3}),
}


def attributes(case, op_type):
    """An operator with hostile attributes."""
    names, counts = BY_ATTRIBUTE[op_type]
    chosen = {}
    for name, count in counts.items():
        if case.chance(0.7):
            numbers = [case.pick(INTEGERS) for _ in range(count + case.upto(1) - case.upto(1))]
            chosen[name] = numbers if numbers and (count > 1 or case.chance(0.05)) else case.pick(INTEGERS)
    dims = [[2, 3], [1, 2, 5, 5], [0, 3], ["n", 3], [2**31, 3], [1, 2, "h", "w"]]
    x = helper.make_tensor_value_info("x", case.pick((1, 1, 1, 2, 3, 7, 10)), case.pick(dims))
    return model(
        [helper.make_node(op_type, names.split(), ["y"], **chosen)], [x], opset=case.pick((9, 13, 17, 18, 20, 23))
    )


def declared_sizes(case):
    """Inputs with dims that no memory has."""
    dims = [case.pick((*SIZES, "n", "")) for _ in range(case.pick((1, 2, 3, 65, 100)))]
    x = helper.make_tensor_value_info("x", case.pick((1, 7, 8, 9, 10, 16, 22)), dims)
    return model([helper.make_node(case.pick(("Relu", "Neg", "Shape", "NonZero", "Identity")), ["x"], ["y"])], [x])


def polynomials(case):
    """Sizes that are polynomials of polynomials."""
    nodes, last = [], "x"
    for number in range(case.pick((2, 6, 12))):
        nodes += [
            helper.make_node("Shape", [last], [f"s{number}"]),
            helper.make_node("Mul", [f"s{number}"] * 2, [f"m{number}"]),
            helper.make_node(case.pick(("Add", "Mul", "Div", "Sub")), [f"m{number}", f"s{number}"], [f"q{number}"]),
            helper.make_node("ConstantOfShape", [f"q{number}"], [f"c{number}"]),
        ]
        last = f"c{number}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])
    return model([*nodes, helper.make_node("Identity", [last], ["y"])], [x])


def wide_node(case):
    """Thousands of inputs or outputs of one node."""
    count = case.pick((500, 3000))
    if case.chance(0.5):
        return model([helper.make_node(case.pick(("Concat", "Sum", "Max", "Relu")), ["x"] * count, ["y"], axis=0)])
    return model(
        [
            helper.make_node(
                case.pick(("Split", "Relu", "Mystery")), ["x"], [*(f"v{number}" for number in range(count)), "y"]
            )
        ]
    )


def many_nodes(case):
    """Long chains of one operator."""
    count, op_type = (
        case.pick((100, 2000)),
        case.pick(("Relu", "Neg", "Identity", "Shape", "Unsqueeze", "NonZero", "Not", "Mystery")),
    )
    nodes = [
        helper.make_node(op_type, [f"v{number}" if number else "x"], [f"v{number + 1}"]) for number in range(count)
    ]
    return model([*nodes, helper.make_node("Identity", [f"v{count}"], ["y"])])


PLAIN = (declared_sizes, polynomials, wide_node, many_nodes)
