"""Limits of memory and time hold for weights, made-up inputs, patterns and nesting too."""

import contextlib
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import LimitError, OnnxlabError, RunError
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.limits import Limits
from onnxlab.ops.onnx.tensor.string import regex_full_match
from onnxlab.shapes import SequenceFact, tensor
from tests.execution.base.test_synthetic_inputs import made

FLOAT = TensorProto.FLOAT
X = helper.make_tensor_value_info("x", FLOAT, [2, 3])
ONES = np.ones((2, 3), np.float32)


def model(nodes, inputs=(X,), initializers=(), sparse=(), functions=(), opset=20):
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    graph = helper.make_graph(
        nodes, "g", inputs, [onnx.ValueInfoProto(name="y")], initializers, sparse_initializer=sparse
    )
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)


@pytest.mark.parametrize("dims", [[2**62, 2**62], [1] * 65, [10**6, 10**7]])
def test_made_up_inputs_ask_for_memory(dims):
    x = helper.make_tensor_value_info("x", FLOAT, dims)
    lab = onnxlab.load(model([helper.make_node("Relu", ["x"], ["y"])], [x]))
    if len(dims) > 64:
        assert lab.sample_inputs()["x"].shape == ()
    else:
        with pytest.raises(LimitError, match="a made-up array for 'x' needs"):
            lab.sample_inputs()


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT4, TensorProto.BOOL])
@pytest.mark.parametrize("dims", [[2**40, 2**62, 0], [0, 2**62], [2**60, 0]])
def test_made_up_inputs_without_elements_may_be_too_large(kind, dims):
    x = helper.make_tensor_value_info("x", kind, dims)
    lab = onnxlab.load(model([helper.make_node("Identity", ["x"], ["y"])], [x]))
    with pytest.raises(LimitError, match=r"'x' has no elements, but no array has the shape \[.*0.*\]"):
        lab.sample_inputs()


def test_made_up_inputs_of_chosen_sizes_ask_too():
    x = helper.make_tensor_value_info("x", FLOAT, ["n", "n"])
    lab = onnxlab.load(model([helper.make_node("Relu", ["x"], ["y"])], [x]))
    with pytest.raises(LimitError):
        lab.runner.sample_inputs(sizes={"n": 2**31 - 1})
    with pytest.raises(LimitError):
        lab.runner.run_nodes([lab.nodes[0].id], limits=Limits(bytes=10))


def test_sequences_in_sequences_are_made_up_once_each():
    fact = tensor(FLOAT, 2)
    for _ in range(40):
        fact = SequenceFact(fact)
    value = made(fact)
    for _ in range(39):
        (value,) = value
    assert len(value) == 2


def test_external_weights_count_in_the_run_that_reads_them(tmp_path):
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(1 << 40)
    weight = TensorProto(name="w", data_type=FLOAT, dims=[1 << 38], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    onnx.save_model(model([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[weight]), tmp_path / "m.onnx")
    lab = onnxlab.load(tmp_path / "m.onnx")
    for providers in (None, ["numba", "numpy"]):
        with pytest.raises(LimitError, match=r"tensor 'w' needs 1\.1 TB.* the limit is 1\.1 GB"):
            lab.run({"x": ONES}, limits=Limits(bytes=1 << 30), providers=providers)
    with pytest.raises(LimitError, match=r"tensor 'w' needs 1\.1 TB"):
        lab.run({"x": ONES})


def test_a_weight_read_once_is_free_in_the_next_run(tmp_path):
    weight = helper.make_tensor("w", FLOAT, [100_000], np.zeros(100_000, np.float32).tobytes(), raw=True)
    proto = model([helper.make_node("Slice", ["w", "a", "b"], ["y"])], [], [weight, *_ends()])
    onnx.save_model(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=1000)
    lab = onnxlab.load(tmp_path / "m.onnx")
    with pytest.raises(LimitError, match=r"tensor 'w' needs 400\.0 kB"):
        lab.run({}, limits=Limits(bytes=300_000))
    assert lab.run({}, limits=Limits(bytes=500_000))["y"].shape == (3,)
    assert lab.run({}, limits=Limits(bytes=300_000))["y"].shape == (3,)


def _ends():
    return [helper.make_tensor(name, TensorProto.INT64, [1], [end]) for name, end in (("a", 0), ("b", 3))]


def test_a_sparse_weight_asks_before_it_is_made_dense():
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", FLOAT, [1], [1.0]), helper.make_tensor("i", TensorProto.INT64, [1], [0]), [1 << 38]
    )
    lab = onnxlab.load(model([helper.make_node("Neg", ["w"], ["y"])], [], sparse=[sparse]))
    with pytest.raises(LimitError, match="made dense"):
        lab.run({})


def test_a_pattern_that_backtracks_is_matched_at_once():
    start = time.perf_counter()
    assert regex_full_match("(a+)+b")(np.array(["a" * 4000 + "c", "aab"], object)).tolist() == [False, True]
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "a{2000}", "(", "\ud800"])
def test_what_is_no_pattern_of_re2_is_refused(pattern):
    with pytest.raises(ValueError, match="is no regular expression"):
        regex_full_match(pattern)(np.array(["a"], object))


def test_a_text_with_half_of_a_surrogate_pair_matches_nothing():
    assert regex_full_match(".")(np.array(["\ud800", "ä"], object)).tolist() == [False, True]


def nested(levels):
    def body(level):
        if level == levels:
            return helper.make_node("Relu", ["x"], ["y"])
        return helper.make_node(f"f{level + 1}", ["x"], ["y"], domain="local")

    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    return [helper.make_function("local", f"f{n}", ["x"], ["y"], [body(n)], imports) for n in range(levels + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("levels", [40, 100, 2000])
@pytest.mark.parametrize("numba", [False, True])
def test_functions_in_functions_run_or_are_refused(levels, numba):
    lab = onnxlab.load(model([helper.make_node("f0", ["x"], ["y"], domain="local")], functions=nested(levels)))
    providers = [NumbaProvider(background=False, least=0), "numpy"] if numba else None
    ways = (lambda: lab.run({"x": ONES}, providers=providers)["y"], lambda: lab.profile({"x": ONES}, runs=1))
    if levels < 60:
        assert np.array_equal(ways[0](), ONES)
        ways[1]()
    for way in ways:
        with contextlib.suppress(RunError):  # above 60 levels; plans may hold fewer levels inlined
            way()


def test_functions_in_functions_are_refused_by_their_depth():
    lab = onnxlab.load(model([helper.make_node("f0", ["x"], ["y"], domain="local")], functions=nested(3000)))
    with pytest.raises(RunError, match="nested more than 60 deep"):
        lab.run({"x": ONES})


def test_values_that_follow_from_themselves_are_no_constants():
    nodes = [helper.make_node("Add", ["a", "b"], ["b"]), helper.make_node("Add", ["b", "c"], ["a"])]
    nodes += [helper.make_node("Identity", ["p"], ["q"]), helper.make_node("Identity", ["q"], ["p"])]
    lab = onnxlab.load(model([*nodes, helper.make_node("Mul", ["x", "q"], ["y"])]))
    print(lab.partition([NumbaProvider(background=False, least=0), "numpy"]))
    with pytest.raises(OnnxlabError):
        lab.run({"x": ONES}, providers=[NumbaProvider(background=False, least=0), "numpy"])


@pytest.mark.slow
def test_constants_that_follow_from_thousands_of_nodes_are_made_without_recursion():
    nodes = [helper.make_node("Neg", ["w" if not n else f"v{n}"], [f"v{n + 1}"]) for n in range(3000)]
    nodes += [helper.make_node("Mul", ["x", "v3000"], ["y"])]
    lab = onnxlab.load(model(nodes, initializers=[helper.make_tensor("w", FLOAT, [3], [1, 2, 3])]))
    results = lab.run({"x": ONES}, providers=[NumbaProvider(background=False, least=0), "numpy"])
    assert results["y"][0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(("kind", "item"), [("value_floats", 0.5), ("value_ints", 1), ("value_strings", "ab")])
def test_decoding_a_long_list_asks_the_run(kind, item):
    node = helper.make_node("Constant", [], ["y"], **{kind: [item] * 100_000})
    dtype = {"value_floats": TensorProto.FLOAT, "value_ints": TensorProto.INT64, "value_strings": TensorProto.STRING}
    output = helper.make_tensor_value_info("y", dtype[kind], ["N"])
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(helper.make_graph([node], "g", [], [output]), opset_imports=opsets)
    with pytest.raises(LimitError, match=f"attribute '{kind}', decoded, needs .* the limit is 200.0 kB"):
        onnxlab.load(proto).run({}, limits=Limits(bytes=200_000))
    assert len(onnxlab.load(proto).run({}, limits=Limits(bytes=20_000_000))["y"]) == 100_000
