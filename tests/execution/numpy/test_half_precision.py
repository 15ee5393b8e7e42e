"""Small floats held as float32 between nodes: the same bits as without."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab import dtypes
from onnxlab.errors import RunError
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.ops.base.registry import all_traits

HALF = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
CHANNELS = 4
PER_CHANNEL = [np.linspace(0.5, 1.5, CHANNELS)] * 2
INT = lambda *items: np.array(items, np.int64)  # noqa: E731
KERNEL = {"kernel_shape": [2, 2]}
# op: (further inputs, floats as lists of the half's type; attributes; outputs)
CASES = {
    "ArgMax": ([], {"axis": 1}, 1), "ArgMin": ([], {"axis": 1}, 1), "AveragePool": ([], KERNEL, 1),
    "BatchNormalization": ([*PER_CHANNEL, *PER_CHANNEL], {}, 1), "Conv": ([np.ones((3, CHANNELS, 2, 2)) / 7], {}, 1),
    "Clip": ([np.array(-0.5), np.array(2.1)], {}, 1),
    "Concat": ([np.ones((1, 1, 6, 6))], {"axis": 1}, 1), "ConvTranspose": ([np.ones((CHANNELS, 2, 2, 2)) / 7], {}, 1),
    "DepthToSpace": ([], {"blocksize": 2}, 1), "Expand": ([INT(2, 1, 1, 1)], {}, 1),
    "Gather": ([INT(1, 0)], {"axis": 1}, 1),
    "GatherElements": ([np.zeros((1, 2, 1, 1), np.int64)], {"axis": 1}, 1), "GatherND": ([INT(0, 1)[None]], {}, 1),
    "Gemm": ([np.ones((36, 5)) / 7], {}, 1), "GroupNormalization": (PER_CHANNEL, {"num_groups": 2}, 1),
    "InstanceNormalization": (PER_CHANNEL, {}, 1), "LayerNormalization": ([np.linspace(0, 1, 6)] * 2, {}, 1),
    "LRN": ([], {"size": 3}, 1), "MatMul": ([np.ones((6, 3)) / 7], {}, 1), "MaxPool": ([], KERNEL, 2),
    "Pad": ([INT(0, 0, 1, 1, 0, 0, 0, 2), np.array(0.3)], {}, 1), "Pow": ([np.array(3.0)], {}, 1),
    "ReduceMax": ([INT(1)], {}, 1), "ReduceMean": ([INT(2, 3)], {}, 1), "ReduceMin": ([INT(1)], {}, 1),
    "ReduceSum": ([INT(1)], {}, 1), "ReduceL2": ([INT(1)], {}, 1), "ReduceSumSquare": ([INT(1)], {}, 1),
    "Reshape": ([INT(6, -1)], {}, 1), "Slice": ([INT(1), INT(4), INT(2)], {}, 1),
    "SpaceToDepth": ([], {"blocksize": 2}, 1),
    "Split": ([INT(1, 5), ], {"axis": 3}, 2), "Squeeze": ([INT(0)], {}, 1), "Tile": ([INT(1, 2, 1, 1)], {}, 1),
    "TopK": ([INT(2)], {}, 2), "Transpose": ([], {"perm": [0, 2, 3, 1]}, 1), "Unsqueeze": ([INT(0)], {}, 1),
    "MeanVarianceNormalization": ([], {}, 1), "LpNormalization": ([], {}, 1),
    **dict.fromkeys(["Add", "Div", "Mul", "Sub", "PRelu", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
                     "Max", "Min"], ([np.linspace(-2, 3, 6)], {}, 1)),
}  # fmt: skip


def model_of(op_type: str, dtype: np.dtype) -> onnx.ModelProto:
    """x · x → the operator → negated, all of them small floats."""
    elem = dtypes.from_numpy(dtype)
    further, attributes, outputs = CASES.get(op_type, ([], {}, 1))
    names, tensors = [], []
    for slot, value in enumerate(further):
        array = value if value.dtype == np.int64 else value.astype(dtype)
        tensors.append(numpy_helper.from_array(array, f"c{slot}") if array.dtype == np.int64
                       else helper.make_tensor(f"c{slot}", elem, array.shape, array.tobytes(), raw=True))  # fmt: skip
        names.append(f"c{slot}")
    lead = ["flag", "a"] if op_type == "Where" else ["a"]
    names = ["x"] if op_type == "Where" else names
    output_names = [f"y{number}" for number in range(outputs)]
    nodes = [helper.make_node("Mul", ["x", "w"], ["a"]), helper.make_node("Greater", ["x", "w"], ["flag"])]
    if op_type == "Gemm":
        nodes.append(helper.make_node("Flatten", ["a"], ["flat"], axis=2))
        lead = ["flat"]
    nodes.append(helper.make_node(op_type, lead + names, output_names, **attributes))
    floats = op_type not in ("ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsInf",
                             "IsNaN", "Shape", "Size")  # fmt: skip
    nodes.append(helper.make_node("Neg" if floats else "Identity", ["y0"], ["z"]))
    inputs = [helper.make_tensor_value_info(name, elem, [1, CHANNELS, 6, 6]) for name in ("x", "w")]
    results = [onnx.ValueInfoProto(name=name) for name in ("z", *output_names[1:])]
    graph = helper.make_graph(nodes, op_type, inputs, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def both(model: onnxlab.Model, feeds: dict) -> tuple[dict, dict]:
    """A run that holds values wide, and one that does not."""
    runner = Runner(model.graph, model.inference.fact, (NumpyProvider(),))
    return runner.run(feeds, keep=False), runner.run(feeds, keep=True)


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize(
    "op_type", sorted(name for (domain, name), row in all_traits().items() if row.half and not domain)
)
def test_holding_values_wide_changes_no_bit(op_type, dtype):
    generator = np.random.default_rng(0)
    x, w = ((generator.standard_normal((1, CHANNELS, 6, 6)) * 3).astype(dtype) for _ in range(2))
    x[0, 0, 0, :3] = [0, -0.0, 6e-5]
    model = onnxlab.Model(model_of(op_type, dtype))
    wide, narrow = both(model, {"x": x, "w": w})
    assert list(wide) == list(narrow)
    for name, array in narrow.items():
        assert wide[name].dtype == array.dtype
        assert wide[name].tobytes() == array.tobytes()


CHAIN = """<ir_version: 10, opset_import: ["" : 21]>
g (float16[1,2,4,4] x, float16[2,2,1,1] w) => (float[1,2,4,4] y, float16[1,2,4,4] b) {
    a = Conv (x, w)  b = Relu (a)  low = Constant <value = float16 {0}> ()  high = Constant <value = float16 {6}> ()
    c = Clip (b, low, high)  d = Add (c, a)  e = Sigmoid (d)  y = Cast <to = 1> (e)
}"""


def test_what_is_asked_for_has_its_own_type():
    x, w = (np.random.default_rng(seed).standard_normal(shape).astype(np.float16)
            for seed, shape in enumerate([(1, 2, 4, 4), (2, 2, 1, 1)]))  # fmt: skip
    wide, narrow = both(onnxlab.Model(onnx.parser.parse_model(CHAIN)), {"x": x, "w": w})
    assert (wide["y"].dtype, wide["b"].dtype) == (np.float32, np.float16)
    for name in wide:
        np.testing.assert_array_equal(wide[name], narrow[name])


def test_errors_speak_of_the_types_of_the_model():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float16[n] x, int64[m] s) => (float16[k,l] z) { y = Add (x, x)  r = Reshape (y, s)  z = Neg (r) }"""
    model = onnxlab.Model(onnx.parser.parse_model(text))
    runner = Runner(model.graph, model.inference.fact, (NumpyProvider(),))
    with pytest.raises(RunError, match=r"inputs: y float16\[6\], s int64\[2\]"):
        runner.run({"x": np.ones(6, np.float16), "s": INT(4, 4)}, keep=False)


def plain(model: onnxlab.Model, feeds: dict) -> dict:
    """A run by NumPy as users ask for it."""
    return model.run(feeds, providers=["numpy"])


def test_a_plain_run_does_not_round_between_nodes_as_onnxruntime_does_not():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float16[n] x) => (float16[n] y) {
        a = Mul (x, x)  b = Sigmoid (a)  c = Mul (b, x)  d = Sqrt (c)  y = Mul (d, c) }"""
    proto = onnx.parser.parse_model(text)
    x = np.linspace(0.1, 3, 999).astype(np.float16)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    wide = plain(onnxlab.Model(proto), {"x": x})["y"]
    exact = onnxlab.Model(proto).run({"x": x}, exact=True)["y"]
    assert wide.dtype == exact.dtype == np.float16
    assert (wide != expected).mean() < 0.01 < (exact != expected).mean()


@pytest.mark.parametrize("last", ["i = Cast <to = 7> (b)", "i = ArgMax <axis = 0> (b)", "i = Greater (b, x)",
                                  "r = Reshape (b, s)  i = Cast <to = 7> (r)", "i = Equal (b, x)"])  # fmt: skip
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_what_integers_are_made_of_is_rounded(half, last):
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
    g ({half}[n] x, int64[1] s) => (i) {{ b = Mul (x, x)  {last} }}"""
    dtype = np.dtype(np.float16 if half == "float16" else ml_dtypes.bfloat16)
    feeds = {"x": np.linspace(0.1, 9, 999).astype(dtype), "s": INT(999)}
    proto = onnx.parser.parse_model(text)
    exact = onnxlab.Model(proto).run(feeds, exact=True)["i"]
    np.testing.assert_array_equal(plain(onnxlab.Model(proto), feeds)["i"], exact)


def test_overflow_between_nodes_is_infinite_in_exact_runs_alone():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float16[n] x) => (float16[n] y) { a = Mul (x, x)  b = Sqrt (a)  y = Neg (b) }"""
    proto = onnx.parser.parse_model(text)
    x = np.array([300, 1, np.nan, np.inf, -2, 6e-8], np.float16)
    np.testing.assert_array_equal(plain(onnxlab.Model(proto), {"x": x})["y"], -np.abs(x))
    exact = onnxlab.Model(proto).run({"x": x}, exact=True)["y"]
    np.testing.assert_array_equal(exact, np.array([-np.inf, -1, np.nan, -np.inf, -2, 0], np.float16))
