"""The memory of a run over its schedule, against sums made by hand and against real arrays."""

import json
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.cli import main
from onnxlab.errors import NameLookupError
from tests.support import corpus

HEADER = '<ir_version: 9, opset_import: ["" : 18]> g (float[n,256] x) => (float[n,256] y)'
ROW = 1024  # bytes of x for n = 1


def parsed(body: str) -> onnxlab.Model:
    return onnxlab.load(onnx.parser.parse_model(f"{HEADER} {{ {body} }}"))


def test_values_live_from_their_node_to_their_last_reader() -> None:
    memory = parsed("a = Neg(x) b = Transpose(a) c = Transpose(b) y = Add(c, a)").memory(n=2, share="none")
    assert memory.curve == (2 * 2 * ROW, 3 * 2 * ROW, 4 * 2 * ROW, 4 * 2 * ROW)
    assert memory.peak_step == 2
    assert memory.inputs == 2 * ROW
    assert [allocation.values for allocation in memory.alive(0)] == [("x",), ("a",)]
    assert {allocation.values for allocation in memory.alive()} == {("x",), ("a",), ("b",), ("c",)}


def test_views_and_results_written_over_inputs_take_nothing_more() -> None:
    body = "a = Neg(x) b = Identity(a) y = Relu(b)"
    assert set(parsed(body).memory(n=1).curve) == {2 * ROW}
    assert parsed(body).memory(n=1, share="none").peak == 3 * ROW
    # a later node reads the value again, so it is not overwritten
    assert parsed("a = Neg(x) b = Relu(a) y = Add(a, b)").memory(n=1).peak == 4 * ROW
    # an input is the caller's, and a view of a weight is the weight
    assert parsed("y = Relu(x)").memory(n=1).peak == 2 * ROW
    body = "w = Constant <value = float[4] {1, 2, 3, 4}> () v = Identity(w) z = ReduceSum(v) y = Add(x, z)"
    assert [allocation.values for allocation in parsed(body).memory(n=1).allocations] == [("x",), ("z",), ("y",)]


def test_free_memory_waits_for_the_next_value_of_its_shape() -> None:
    body = "a = Neg(x) b = Transpose(a) t = Transpose(b) s = ReduceSum(t) c = Add(x, s) d = Neg(c) y = Add(d, c)"
    planned = parsed(body).memory(n=256, share="onnxruntime")
    reused = [allocation.values for allocation in planned.allocations if len(allocation.values) > 1]
    assert reused == [("a", "t", "c")]
    assert (
        len(parsed(body.replace("a = Neg", "a = Concat <axis = 0>")).memory(n=256, share="onnxruntime").allocations) > 4
    )
    wide = "a = Neg(x) s = ReduceSum(a) t = Expand(s, w) u = ReduceSum(t) c = Add(x, u) y = Neg(c)"
    wide = f"w = Constant <value = int64[2] {{512, 256}}> () {wide}"
    assert parsed(wide).memory(n=256).peak < parsed(wide).memory(n=256, share="onnxruntime").peak


def test_sizes_are_given_or_told_by_inputs_or_assumed() -> None:
    model = parsed("y = Neg(x)")
    assert (model.memory().dims, model.memory().assumed) == ({"n": 1}, ("n",))
    array = np.zeros((5, 256), np.float32)
    assert (model.memory(inputs={"x": array}).dims, model.memory(inputs={"x": array}).assumed) == ({"n": 5}, ())
    model.run(array)
    assert model.memory().peak == 2 * 5 * ROW
    assert model.memory({"n": 3}).peak == 2 * 3 * ROW
    assert "n=7 (assumed)" not in str(model.memory(n=7))
    with pytest.raises(NameLookupError, match="no input of the model has a symbolic dim 'batch'; they have n"):
        model.memory(batch=2)
    with pytest.raises(ValueError, match="a dim is an int"):
        model.memory(n=-1)


def test_what_is_inside_of_a_node_counts_while_it_runs() -> None:
    model = onnxlab.load(corpus.path("silero_vad_if"))
    memory = model.memory(inputs=corpus.inputs("silero_vad_if", corpus.path("silero_vad_if")))
    assert memory.steps[memory.peak_step].inside > 100_000
    assert "inside of" in str(memory)


@pytest.mark.parametrize("name", ["rapidocr_cls", "light_squeezenet", "bert_base", "gpt2_kv"])
def test_sizes_are_those_of_real_arrays(name: str) -> None:
    path = corpus.path(name)
    model, feeds = onnxlab.load(path), corpus.inputs(name, path)
    memory = model.memory(inputs=feeds, share="none")
    names = [allocation.values[0] for allocation in memory.allocations if allocation.first_step >= 0]
    arrays = model.run(feeds, names, strict=False)
    wrong = [
        (allocation.values[0], allocation.nbytes, arrays[allocation.values[0]].nbytes)
        for allocation in memory.allocations
        if allocation.first_step >= 0 and allocation.nbytes != arrays[allocation.values[0]].nbytes
    ]
    assert wrong == []
    assert memory.open == ()


def test_an_empty_model_and_what_has_no_size() -> None:
    empty = onnxlab.load(
        onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 18]> g (float[2] x) => (float[2] x) {}')
    )
    assert (empty.memory().peak, empty.memory().curve) == (0, ())
    assert "peak 0 B" in str(empty.memory())
    assert empty.memory().to_svg().startswith("<svg")
    memory = parsed("i = NonZero(x) f = Cast <to = 1> (i) s = ReduceSum(f) y = Add(x, s)").memory(n=1)
    assert set(memory.open) == {"i", "f"}
    assert "of unknown size, not counted: i, f" in str(memory)
    assert "at least" in str(memory)


def test_names_in_the_picture_are_no_markup() -> None:
    model = parsed("y = Neg(x)")
    model.nodes[0].name = "<script>&"
    assert "<script>" not in model.memory(n=1).to_svg()


def test_the_curve_of_many_steps_is_short() -> None:
    memory = onnxlab.load(corpus.path("deep_chain_12k")).memory()
    assert len(memory.curve) > 10_000
    assert len(memory.to_svg()) < 60_000
    assert all(len(line) < 400 for line in str(memory).splitlines())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = parsed("a = Neg(x) y = Transpose(a)").save(tmp_path / "m.onnx")
    assert main(["memory", str(path), "n=4", "--json", "--svg", str(tmp_path / "curve.svg")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["peak"] == 3 * 4 * ROW
    assert answer["at_peak"][0]["nbytes"] == 4 * ROW
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
    assert main(["memory", str(path), "n"]) == 2
    assert "write symbol=size" in capsys.readouterr().err
