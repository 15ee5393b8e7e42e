import sys
import types
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.analysis.flops import flops
from onnxlab.analysis.profile import profile
from onnxlab.execution.run import progress_bar
from tests.execution.support.models import runner
from tests.support.corpus import path


def test_every_node_has_an_entry_with_what_it_read_wrote_and_computed() -> None:
    run = runner(
        "g (float[2,3] x) => (y) <float[3,4] w = {1,1,1,1,1,1,1,1,1,1,1,1}> { a = MatMul (x, w) y = Relu (a) }"
    )
    result = profile(run, {"x": np.ones((2, 3), np.float32)}, runs=2)
    product, relu = result.entries
    assert (product.op, product.read, product.written, product.flops) == ("MatMul", 24 + 48, 32, 2 * 8 * 3)
    assert (relu.flops, relu.shapes) == (8, ("float32[2,4]",))
    assert result.flops == 56
    assert result.seconds == sum(entry.seconds for entry in result.entries) > 0
    assert set(result.by_operator()) == {"MatMul", "Relu"}
    text = str(result)
    assert "2 nodes" in text
    assert "MatMul#0" in text
    assert len(run.store) == 0


def test_missing_inputs_are_made_up_and_the_last_ones_used() -> None:
    model = onnxlab.load()
    assert len(model.profile(runs=1).entries) == len(model.nodes)
    model.run({"image": np.zeros((5, 1, 8, 8), np.float32)})
    assert model.profile(runs=1).entries[0].shapes[0].startswith("float32[5,")


@pytest.mark.parametrize(
    ("op", "shapes", "out", "expected"),
    [
        ("Conv", [(1, 4, 8, 8), (6, 2, 3, 3)], (1, 6, 8, 8), 2 * 6 * 64 * 18),
        ("Gemm", [(2, 3), (3, 4)], (2, 4), 2 * 8 * 3),
        ("com.microsoft::FusedMatMul", [(2, 3), (3, 4)], (2, 4), 2 * 8 * 3),
        ("LSTM", [(5, 2, 3), (1, 16, 3), (1, 16, 4)], (5, 1, 2, 4), 2 * 10 * (48 + 64)),
        ("Transpose", [(2, 3)], (3, 2), 0),
        ("Tanh", [(2, 3)], (2, 3), 6),
        ("ReduceSum", [(2, 3)], (1,), 6),
    ],
)
def test_operations(op: str, shapes: list[Any], out: Any, expected: Any) -> None:
    assert flops(op, [np.zeros(shape) for shape in shapes], [np.zeros(out)]) == expected


@pytest.mark.parametrize(
    ("op", "shapes", "out", "attributes", "expected"),
    [
        ("MaxPool", [(1, 4, 8, 8)], (1, 4, 4, 4), {"kernel_shape": [2, 3]}, 64 * 6),
        ("GlobalAveragePool", [(1, 4, 8, 8)], (1, 4, 1, 1), {}, 256),
        ("Einsum", [(5, 2, 3), (5, 3, 4)], (5, 2, 4), {"equation": "bij,bjk->bik"}, 2 * 5 * 2 * 3 * 4),
        ("Einsum", [(5, 2, 3), (5, 3, 4)], (5, 2, 4), {"equation": "...ij,...jk"}, 2 * 5 * 2 * 3 * 4),
        ("com.microsoft::Attention", [(1, 7, 8), (8, 24), (24,)], (1, 7, 8), {}, 2 * 7 * 192 + 4 * 7 * 56),
        ("com.microsoft::MoE", [(5, 8), (5, 4), (4, 16, 8), (4, 8, 16)], (5, 8), {"k": 2}, 2 * 5 * 2 * 256),
        ("ai.onnx.ml::LinearClassifier", [(5, 8)], (5,), {"coefficients": [0.0] * 24}, 2 * 5 * 24),
        ("ai.onnx.ml::SVMRegressor", [(5, 8)], (5, 1),
         {"support_vectors": [0.0] * 80, "coefficients": [0.0] * 10}, 2 * 5 * 90),
        ("ai.onnx.ml::TreeEnsembleRegressor", [(5, 8)], (5, 1),
         {"nodes_treeids": [0] * 15 + [1] * 15, "nodes_featureids": [0] * 30}, 5 * 2 * 4),
        ("ai.onnx.ml::TreeEnsemble", [(5, 8)], (5, 1),
         {"tree_roots": [0, 7], "nodes_featureids": [0] * 14, "leaf_weights": [0] * 16}, 5 * 2 * 4),
        ("ai.onnx.ml::TreeEnsembleRegressor", [(8,)], (1, 1), {}, 8),
    ],
)  # fmt: skip
def test_operations_by_attributes(
    op: str, shapes: list[Any], out: Any, attributes: dict[str, Any], expected: Any
) -> None:
    assert flops(op, [np.zeros(shape) for shape in shapes], [np.zeros(out)], attributes) == expected


def test_the_cost_of_a_forest_is_that_of_its_trees() -> None:
    model = onnxlab.load(path("skl_rf"))
    trees = next(node for node in model.nodes if node.op_type.startswith("TreeEnsemble"))
    (work,) = [work for work in model.cost(dict.fromkeys(model.cost().dims, 3)).nodes if work.label == trees.name]
    count = len(model.trees(trees))
    deepest = max(model.trees(trees).depths)
    assert 3 * 2 * count <= work.flops <= 3 * (deepest + 1) * count
    entries = model.profile(model.sample_inputs(), runs=1).entries
    assert next(entry for entry in entries if entry.label == trees.name).flops > 2 * count


def test_a_profile_counts_all_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    profile(runner("g (float[2] x) => (y) { y = Neg (x) }"), runs=2, progress=lambda *now: steps.append(now))
    assert steps[-1][:2] == (2, 2)
    with pytest.raises(ValueError, match="at least one"):
        profile(None, runs=0)


def test_the_bar_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Bar:
        n = 0

        def __init__(self, **options: Any) -> None:
            seen.append(options["delay"])

        def __enter__(self) -> object:
            return self

        def __exit__(self, *error: object) -> None:
            seen.append("closed")

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            seen.append(text)

        def update(self, count: int) -> None:
            self.n += count
            seen.append(self.n)

    with progress_bar.bar() as silent:
        assert silent is None or sys.stderr.isatty()
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar.bar() as draw:
        draw(3, 8, "conv")
        draw(8, 8, "")
    assert seen == [1.0, "conv", 3, "", 8, "closed"]


@pytest.mark.parametrize("op", ["RNN", "QLinearMatMul", "Conv", "Gemm", "com.microsoft::Attention"])
def test_a_node_without_what_its_operator_must_have_is_estimated_all_the_same(op: str) -> None:
    x = np.zeros((2, 3), np.float32)
    for inputs in ([], [x], [x, x], [x, x, None], [None, x, x]):
        assert flops(op, inputs, [x]) >= 0


COMPILED = [["numba"], ["numba", "numpy"], None]


@pytest.mark.slow
@pytest.mark.parametrize("providers", COMPILED)
@pytest.mark.parametrize("name", ["rapidocr_cls", "functions_ts", "lstm_gru", "gpt2_kv"])
def test_nodes_are_the_same_whatever_runs_them(name: str, providers: Any, corpus: Any, feeds: Any) -> None:
    model = onnxlab.load(corpus[name])
    plain = model.profile(feeds(name), runs=1)
    result = model.profile(feeds(name), runs=2, providers=providers)
    by_node = {entry.node: entry for entry in plain.entries}
    assert all(entry.seconds >= 0 for entry in result.entries)
    for entry in result.entries:
        known = by_node.get(entry.node)
        if known is not None:  # the node is not in an inlined function
            assert (entry.label, entry.op, entry.flops, entry.shapes) == (
                known.label, known.op, known.flops, known.shapes
            )  # fmt: skip
    if providers is not None:
        compiled = [entry for entry in result.entries if entry.provider == "numba"]
        assert 0 < sum(entry.seconds for entry in compiled) <= result.seconds
        assert any(entry.together > 1 for entry in compiled)


def test_the_parts_of_a_provider_that_does_not_time_inside_are_one_entry_each() -> None:
    model = onnxlab.load()
    (entry,) = model.profile(runs=1, providers=["onnxruntime"]).entries
    assert (entry.node, entry.provider) == (0, "onnxruntime")
