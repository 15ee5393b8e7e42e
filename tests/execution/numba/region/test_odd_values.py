"""One odd element reaches the outputs that read it and no others: compiled kernels against NumPy."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.execution.numba.provider import NumbaProvider

RNG = np.random.default_rng(0)
CASES = {}


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def case(op_type, *inputs, **attributes):
    """The first input is planted; the others are constants."""
    CASES[f"{op_type}-{len(CASES)}"] = op_type, inputs, attributes


for c, o, g, k, p, s, d in (
    (3, 5, 1, 3, 1, 1, 1), (17, 19, 1, 1, 0, 1, 1), (8, 8, 8, 3, 1, 1, 1), (16, 16, 4, 3, 1, 2, 1),
    (6, 33, 1, 5, 2, 1, 1), (16, 20, 1, 3, 2, 1, 2), (20, 20, 20, 5, 2, 2, 1), (64, 64, 1, 3, 1, 1, 1),
):  # fmt: skip
    case("Conv", floats(2, c, 13, 15), floats(o, c // g, k, k), floats(o), pads=[p] * 4, group=g, strides=[s] * 2,
         dilations=[d] * 2)  # fmt: skip
case("Conv", floats(2, 7, 31), floats(9, 7, 5), pads=[2, 2])
case("ConvTranspose", floats(1, 5, 9, 11), floats(5, 7, 4, 4), strides=[2, 2], pads=[1] * 4)
for a, b, c in ((5, 7, 3), (33, 17, 40), (64, 1300, 50)):
    case("MatMul", floats(a, b), floats(b, c))
case("Gemm", floats(9, 13), floats(21, 13), floats(21), transB=1)
for op in ("MaxPool", "AveragePool"):
    case(op, floats(2, 19, 13, 15), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
for op in ("GlobalMaxPool", "GlobalAveragePool"):
    case(op, floats(2, 19, 13, 15))
for op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"):
    for axes in ([1], [2], [0], [1, 2]):
        case(op, floats(5, 7, 19), np.array(axes))
for axis in (0, 1, 2):
    case("Softmax", floats(5, 7, 19), axis=axis)
    case("LogSoftmax", floats(5, 7, 19), axis=axis)
case("LayerNormalization", floats(5, 7, 19), floats(19), floats(19))
case("InstanceNormalization", floats(2, 7, 5, 9), floats(7), floats(7))
case("LRN", floats(2, 7, 5, 9), size=3)
for mode in ("nearest", "linear", "cubic"):
    for scales in ([1, 1, 2, 1.7], [1, 1, 0.5, 0.6]):
        case("Resize", floats(1, 3, 9, 11), None, np.float32(scales), mode=mode)
case("LSTM", floats(6, 3, 4), floats(1, 20, 4), floats(1, 20, 5), hidden_size=5)
case("GRU", floats(6, 3, 4), floats(1, 15, 4), floats(1, 15, 5), hidden_size=5)
for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Erf", "Softplus", "Elu", "HardSwish", "Sign",
           "Floor", "LeakyRelu", "Clip"):  # fmt: skip
    case(op, floats(5, 37))
for op in ("Max", "Min", "Mul", "Div", "Pow", "Greater"):
    case(op, floats(5, 37), np.abs(floats(5, 37)))
case("TopK", floats(5, 37), np.array([3]))
case("ArgMax", floats(5, 37), axis=1)


def model(name):
    op_type, inputs, attributes = CASES[name]
    names = ["" if array is None else f"x{n}" for n, array in enumerate(inputs)]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    constants = [numpy_helper.from_array(array, f"x{n}") for n, array in enumerate(inputs) if n and array is not None]
    infos = [helper.make_tensor_value_info("x0", 1, inputs[0].shape)]
    if op_type == "TopK":
        node.output.append("places")
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return onnxlab.load(proto), inputs[0]


@pytest.mark.parametrize("name", CASES)
def test_one_odd_element(name):
    loaded, x = model(name)
    rng = np.random.default_rng(1)
    for odd in (np.nan, np.inf, -np.inf, 3e38, 1e30, 1e-42):
        planted = x.copy()
        planted.reshape(-1)[rng.integers(x.size)] = odd
        plain, compiled = (
            loaded.run({"x0": planted}, providers=providers)["y"]
            for providers in (["numpy"], [NumbaProvider(background=False, least=0), "numpy"])
        )
        finite = np.isfinite(plain)
        np.testing.assert_array_equal(compiled[~finite], plain[~finite], f"{odd}")
        usual = finite & (np.abs(plain) < 1e4)
        np.testing.assert_allclose(compiled[usual], plain[usual], 1e-3, 1e-3, err_msg=f"{odd}")
