"""The short campaign, of fixed seeds, and that each kind of fault is found; the long one: `python -m bench hostile`."""

import ctypes
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import onnxlab
from onnxlab.errors import EditError
from tests.hostile import campaign, server
from tests.hostile.divergence import close, is_excused
from tests.hostile.judge import is_comparable, least, overflows, quantizes_by_zero, rounds_scores, underflows
from tests.hostile.rounding import is_amplified
from tests.hostile.trial import Broken, Case, limits

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 15
TRIALS = 300

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the fork server needs Linux")


@pytest.mark.slow
def test_a_short_campaign_breaks_no_promise():
    command = [sys.executable, "-m", "bench.hostile", "--seed", str(SEED), "--trials", str(TRIALS), "--check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-8000:] + done.stdout
    assert f"| trials | {TRIALS} |" in done.stdout


def test_numbers_are_compared_as_precisely_as_their_type_is():
    near = np.linspace(0.1, 1, 5)
    assert not close((near + 1e-3).astype(np.float16), near.astype(np.float16), "y")
    assert close((near + 1e-3).astype(np.float32), near.astype(np.float32), "y") == "other numbers"
    assert close((near + 1e-2).astype(np.float16), near.astype(np.float16), "y") == "other numbers"


def test_what_saturates_is_compared_by_what_onnxruntime_resolves():
    def proto(op_type):
        return helper.make_model(helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", [], []))

    ours, theirs = np.float32([6e-16, 1e-20]), np.float32([0, 0])
    assert close(ours, theirs, "y", least(proto("Exp"))) == "other numbers"
    assert not close(ours, theirs, "y", least(proto("Sigmoid")))
    assert close(ours + np.float32(2e-6), theirs, "y", least(proto("Sigmoid"))) == "other numbers"


def test_scores_of_16_bits_are_not_compared():
    def proto(op_type):
        return helper.make_model(helper.make_graph([helper.make_node(op_type, ["q", "k", "v"], ["y"])], "g", [], []))

    half, single = {"q": np.ones(3, np.float16)}, {"q": np.ones(3, np.float32)}
    assert rounds_scores(proto("Attention"), half)
    assert not rounds_scores(proto("Attention"), single)
    assert not rounds_scores(proto("MatMul"), half)


def outcome(monkeypatch, trial, seconds=None):
    """The answer of the server to a trial that does what it should not."""
    monkeypatch.setattr(server, "generator", lambda name: SimpleNamespace(trial=trial, WEIGHT=1))
    if seconds is not None:
        monkeypatch.setattr(server, "SECONDS", seconds)
    ((child, result),) = server.serve([("made", 1)])
    child.forget()
    return result


def lost(case):
    raise Broken("lost", "a file is gone", "m.onnx")


def crash(case):
    case.step("a kernel that reads address 0")
    ctypes.string_at(0)


def hang(case):
    case.step("for ever")
    while True:
        pass


def asleep(case):
    time.sleep(60)


def greedy(case):
    case.step("bytes(1300000000)")
    assert bytearray(1_300_000_000).count(0) > 0


def oracle(case):
    case.asking("onnxruntime")
    ctypes.string_at(0)


def refused(case):
    case.call("model.undo(to=5)", onnxlab.load().undo, 5)
    raise EditError("not caught")


@pytest.mark.parametrize(
    ("trial", "promise", "words"),
    [
        (lost, "lost", "lost: a file is gone"),
        (crash, "crash", "SIGSEGV in a kernel that reads address 0"),
        (hang, "hang", "for ever"),
        (asleep, "hang", ""),
        (greedy, "memory", "bytes(1300000000)"),
        (oracle, None, ""),
        (refused, "harness", "EditError"),
    ],
    ids=lambda item: getattr(item, "__name__", None),
)
@pytest.mark.slow
def test_every_kind_of_fault_is_found(monkeypatch, trial, promise, words):
    result = outcome(monkeypatch, trial, 1 if promise == "hang" else None)
    assert result["promise"] == promise, result
    assert words in result.get("signature", ""), result


@pytest.mark.slow
def test_an_exception_is_told_by_its_innermost_frame(monkeypatch):
    def trial(case):
        onnxlab.load().graph.label(None)

    result = outcome(monkeypatch, trial)
    assert result["promise"] == "raw"
    assert result["signature"].startswith("raw: AttributeError in graph/")


def test_a_seed_draws_the_same_trial_again(tmp_path):
    drawn = [[Case(5, tmp_path).upto(10**6) for _ in range(3)] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert list(campaign.drawn(20, 3, ("files", "feeds"))) == list(campaign.drawn(20, 3, ("files", "feeds")))
    assert {name for name, _ in campaign.drawn(200, 3)} == set(server.GENERATORS)


@pytest.mark.slow
def test_one_finding_per_signature(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "FOLDER", tmp_path / "findings")
    for module in (server, campaign):
        monkeypatch.setattr(module, "generator", lambda name: SimpleNamespace(trial=lost, WEIGHT=1))
    reports = []
    result = campaign.campaign(3, 0, ("made",), report=reports.append)
    ((signature, finding),) = result.findings.items()
    assert (signature, finding.count, len(reports)) == ("lost: a file is gone", 3, 1)
    assert "--replay made 0" in (finding.folder / "finding.txt").read_text()


@pytest.mark.parametrize(("mode", "sizes", "comparable"), [
    ("align_corners", False, False), ("align_corners", True, True), ("asymmetric", False, True),
])  # fmt: skip
def test_where_onnxruntime_contradicts_onnx_it_is_no_reference(mode, sizes, comparable):
    inputs = ["x", "", "", "s"] if sizes else ["x", "", "s"]
    node = helper.make_node("Resize", inputs, ["y"], coordinate_transformation_mode=mode)
    body = helper.make_graph([node], "b", [], [])
    inside = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    for nodes in ([node], [inside]):
        assert is_comparable(helper.make_model(helper.make_graph(nodes, "g", [], []))) == comparable


@pytest.mark.parametrize(("attributes", "comparable"), [({}, True), ({"sorted": 1}, True), ({"sorted": 0}, False)])
def test_an_order_that_onnx_leaves_open_is_not_compared(attributes, comparable):
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], **attributes)
    assert is_comparable(helper.make_model(helper.make_graph([node], "g", [], []))) == comparable


@pytest.mark.parametrize(("state", "comparable"), [("after", True), ("before", False)])
def test_states_that_a_scan_passes_on_as_they_came_are_not_compared(state, comparable):
    body = parser.parse_graph(
        f"body (float[2] before, float[2] x) => (float[2] {state}, float[2] y)"
        "{ after = Add(before, x) y = Tanh(after) }"
    )
    node = helper.make_node("Scan", ["s", "xs"], ["last", "ys"], num_scan_inputs=1, body=body)
    assert is_comparable(helper.make_model(helper.make_graph([node], "g", [], []))) == comparable


@pytest.mark.parametrize(("scale", "amplified"), [(1.0, False), (1e9, True)])
def test_what_rounding_alone_changes_is_not_compared(scale, amplified):
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"], axis=-1),
    ]  # fmt: skip
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in
             (("x", [4, 8]), ("y", [4, 4]))]  # fmt: skip
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    row = np.random.default_rng(0).standard_normal(8).astype(np.float32) * np.float32(scale)
    feeds = {"x": np.stack([row, row, row, row])}
    exact = onnxlab.load(proto).run(feeds, exact=True)["y"]
    assert is_amplified(proto, feeds, "y", lambda array: bool(np.abs(array - exact).max() > 1e-3)) == amplified


CONSTANTS = {"zero": 0, "small": 1e-7, "thousand": 1e3, "billion": 1e9}


def chained(nodes):
    """A model of v0, float[3], through operators with a constant, or a number as alpha, each."""
    chain = []
    for at, (op_type, *more) in enumerate(nodes):
        constants = [name for name in more if name in CONSTANTS]
        alpha = {"alpha": more[0]} if more and not constants else {}
        chain.append(helper.make_node(op_type, [f"v{at}", *constants], [f"v{at + 1}"], **alpha))
    tensors = [numpy_helper.from_array(np.float32([value]), name) for name, value in CONSTANTS.items()]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("v0", f"v{len(nodes)}")]
    graph = helper.make_graph(chain, "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(("constant", "amplified"), [("thousand", False), ("billion", True)])
def test_the_tail_of_a_function_times_a_large_number_is_not_compared(constant, amplified):
    proto, feeds = chained([("Sigmoid",), ("Mul", constant), ("Softmax",)]), {"v0": np.float32([-20, -20, -21])}
    exact = onnxlab.load(proto).run(feeds, exact=True)["v3"]
    assert is_amplified(proto, feeds, "v3", lambda array: bool(np.abs(array - exact).max() > 0.1)) == amplified


@pytest.mark.parametrize(("theirs", "ours", "excused"), [
    ([("Neg",), ("Relu",)], [("Neg",), ("Relu",)], True),
    ([("Neg",), ("Relu",)], [("Neg",), ("Abs",)], False),
    ([("Div", "zero"), ("Relu",)], [("Div", "zero"), ("Sigmoid",)], True),  # it reads infinity
    ([("Div", "zero"), ("Relu",)], [("Mul", "zero"), ("Relu",)], False),
    ([("LeakyRelu", math.nan), ("Neg",)], [("Neg",), ("Neg",)], True),  # it has NaN in an attribute
    ([("Add", "zero"), ("Pow", "small")], [("Add", "small"), ("Pow", "small")], True),  # of 0 and of 1e-7
])  # fmt: skip
def test_a_node_that_makes_the_same_of_the_same_is_not_to_blame(theirs, ours, excused, tmp_path):
    proto, model = chained(theirs), onnxlab.load(chained(ours))
    assert is_excused(proto, tmp_path, {"v0": np.float32([0, -1, 1])}, model, limits, 1e-30) == excused


@pytest.mark.parametrize(
    ("op_type", "largest", "expected"), [("Pow", 9, False), ("Pow", -10, True), ("Mul", 99, False)]
)
def test_powers_of_large_integers_are_not_compared(op_type, largest, expected):
    proto = helper.make_model(helper.make_graph([helper.make_node(op_type, ["x", "x"], ["y"])], "g", [], []))
    assert overflows(proto, {"x": np.array([largest, 1]), "empty": np.zeros(0, np.int32)}) == expected


def test_weights_that_may_underflow_times_large_numbers_are_compared_by_what_they_make():
    def proto(op_type):
        return helper.make_model(helper.make_graph([helper.make_node(op_type, ["q", "k", "v"], ["y"])], "g", [], []))

    large, usual = {"v": np.float32([3e38, 1])}, {"v": np.float32([3, np.inf])}
    assert underflows(proto("Attention"), large) == pytest.approx(3e38 * 1.17549435e-38 / 1e-4)
    assert not underflows(proto("MatMul"), large)
    assert not underflows(proto("Softmax"), usual)


def test_what_is_quantized_by_zero_is_not_compared():
    assert quantizes_by_zero({"x": np.ones(2), "y_scale": np.float16([1, -0.0])})
    assert not quantizes_by_zero({"x": np.zeros(2), "x_scale": np.zeros(1), "y_scale": np.float32(1e-30)})
    assert not quantizes_by_zero({"x": np.zeros(2)})


def test_feeds_may_be_sequences():
    proto = helper.make_model(helper.make_graph([helper.make_node("Pow", ["x", "y"], ["z"])], "g", [], []))
    assert overflows(proto, {"x": [np.zeros((2, 3), np.int64), np.full((4, 1), 10)], "y": np.float32(1)})
    assert not overflows(proto, {"x": [np.zeros((2, 3), np.int64)], "y": {"a": 20}})
