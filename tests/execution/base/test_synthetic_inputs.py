import tracemalloc

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab import dtypes
from onnxlab.errors import LimitError
from onnxlab.execution.base import synthetic_inputs
from onnxlab.execution.base.synthetic_inputs import ordinary, synthesize
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits
from onnxlab.shapes import MapFact, OptionalFact, SequenceFact, TensorFact, floor_div, known, symbol, tensor
from onnxlab.shapes.arithmetic import broadcast
from tests.execution.support.models import node, runner


def made(fact, sizes=None):
    return synthesize(fact, np.random.default_rng(0), {} if sizes is None else sizes)


def test_dtype_shape_and_sizes_that_agree():
    sizes = {"seq": 5}
    n, seq = symbol("n"), symbol("seq")
    first = made(tensor(dtypes.FLOAT16, n, seq, 3), sizes)
    second = made(tensor(dtypes.INT32, n * seq, seq - 1), sizes)
    assert (first.dtype, first.shape) == (np.float16, (2, 5, 3))
    assert (second.dtype, second.shape) == (np.int32, (10, 4))
    assert sizes == {"seq": 5, "n": 2}


@pytest.mark.parametrize("elem_type", dtypes.ELEM_TYPES)
def test_every_element_type(elem_type):
    array = made(tensor(elem_type, 3))
    assert (array.dtype, array.shape) == (dtypes.to_numpy(elem_type), (3,))


def test_what_is_known_is_used():
    fact = TensorFact(dtypes.INT64, (2,), known(np.array([3, 4])))
    assert made(fact).tolist() == [3, 4]


def test_sequences_optionals_and_maps():
    word = tensor(dtypes.FLOAT, 2)
    assert [item.shape for item in made(SequenceFact(word))] == [(2,), (2,)]
    assert made(OptionalFact(word)).shape == (2,)
    assert set(map(type, made(MapFact(dtypes.STRING, word)))) == {str}


def test_indices_stay_in_range_and_shapes_are_harmless():
    run = runner(
        """
    g (int64[n] ids, int64[r] target, float[3, 4] table, bool[n] attention_mask) => (y, z, m) {
        u = Unsqueeze (ids, axes)
        y = Gather (table, u)
        z = Reshape (table, target)
        m = Not (attention_mask)
    }""".replace("=> (y, z, m) {", "=> (y, z, m) <int64[1] axes = {0}> {")
    )
    results = run.run_nodes([node(run, "u"), node(run, "y"), node(run, "z"), node(run, "m")])
    assert results["u"].min() >= 0
    assert results["u"].max() < 3
    assert results["z"].size == 12
    assert not results["m"].any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert_base", "gpt2_kv", "resnet50", "whisper_encoder", "rapidocr_cls", "magika"])
def test_whole_models_run_on_made_up_inputs(corpus, name):
    proto = onnx.shape_inference.infer_shapes(onnx.load(corpus[name]), data_prop=True)
    run = Runner(ModelGraph(proto, corpus[name].parent))
    results = run.run_nodes(run.graph.main.order())
    assert all(name in results for name in run.graph.snapshot().main.outputs)


def test_too_little_memory_is_a_limit():
    def draw(rng, shape, dtype):
        raise MemoryError("no room")

    with pytest.raises(LimitError, match="made-up array for 'x': no room"):
        synthesize(tensor(dtypes.FLOAT, 3), np.random.default_rng(0), {}, draw, Limits.usual(), "x")


def test_sizes_that_do_not_fit_each_other_are_made_up():
    n, m = symbol("n"), symbol("m")
    assert made(tensor(dtypes.FLOAT, broadcast(n, m)), {"n": 8, "m": 6}).ndim == 1
    assert made(tensor(dtypes.FLOAT, floor_div(n, m)), {"n": 8, "m": 0}).ndim == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bool, np.int8, np.int64])
def test_numbers_drawn_in_chunks_are_those_drawn_at_once(dtype, monkeypatch):
    whole = ordinary(np.random.default_rng(3), (5, 7, 9), np.dtype(dtype))
    monkeypatch.setattr(synthetic_inputs, "_CHUNK", 10)
    np.testing.assert_array_equal(ordinary(np.random.default_rng(3), (5, 7, 9), np.dtype(dtype)), whole)


def test_large_inputs_take_little_more_memory_than_they_are():
    tracemalloc.start()
    try:
        array = ordinary(np.random.default_rng(0), (1 << 25,), np.dtype(bool))
        assert tracemalloc.get_traced_memory()[1] < 2 * array.nbytes
    finally:
        tracemalloc.stop()


def test_made_up_inputs_keep_within_limits_that_are_given():
    model = onnxlab.load(onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (bool[1048576, 64] x) => (bool[m, n] y) { y = Not (x) }'
    ))  # fmt: skip
    with pytest.raises(LimitError, match="a made-up array for 'x'"):
        model.sample_inputs(limits=Limits(bytes="60MB"))
    assert model.sample_inputs(limits=Limits(bytes="80MB"))["x"].nbytes == 1 << 26
