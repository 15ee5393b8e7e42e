"""Comparing where a side fails on the way, or where its values do not fit into memory together."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.analysis.compare.sides import RunSide
from onnxlab.errors import FeedError, LimitError


def failing() -> onnxlab.Model:
    """The example, with a Reshape whose shape no value has."""
    model = onnxlab.load()
    model.value("head.minus_one").array = np.array([-7], np.int64)
    return model


def test_a_side_that_crashes_diverges_where_it_does() -> None:
    a, b = onnxlab.load(), failing()
    comparison = onnxlab.compare(a, b)
    first = next(entry for entry in comparison if entry.error.problem)
    assert first.node == "/head/Reshape"
    assert "Reshape" in first.error.problem
    assert {entry.a for entry in comparison if entry.error.problem} == {"head/flat", "logits", "probabilities"}
    assert comparison["stem/relu_out"].error.equal
    assert "Reshape" in str(comparison)
    json.loads(comparison.to_json())


def test_what_neither_side_can_make_is_no_difference() -> None:
    comparison = onnxlab.compare(failing(), failing())
    assert not comparison
    assert any(entry.error.problem for entry in comparison)


def test_local_errors_are_told_of_all_that_runs() -> None:
    a, b = onnxlab.load(), failing()
    b.nodes["/stem/relu/Relu"].op_type = "Abs"
    comparison = onnxlab.compare(a, b, local=True)
    assert "/stem/relu/Relu" in [entry.node for entry in comparison.guilty]
    assert comparison["block2/relu2_out"].local is not None


def test_values_that_do_not_fit_together_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/stem/relu/Relu"].op_type = "Abs"
    feeds = a.sample_inputs()
    expected = onnxlab.compare(a, b, feeds, local=True)
    plain = RunSide.values

    def limited(side: RunSide, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        if len(names) > 7:
            raise LimitError("the values take more than they may")
        return plain(side, feeds, names)

    monkeypatch.setattr(RunSide, "values", limited)
    parts = onnxlab.compare(a, b, feeds, local=True)
    assert [(entry.a, entry.error, entry.local) for entry in parts] == [
        (entry.a, entry.error, entry.local) for entry in expected
    ]
    assert parts.first == expected.first
    monkeypatch.setattr(RunSide, "values", lambda *_: (_ for _ in ()).throw(LimitError("nothing fits")))
    with pytest.raises(LimitError):
        onnxlab.compare(a, b, feeds)


def test_inputs_that_do_not_fit_are_refused() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    with pytest.raises(FeedError):
        onnxlab.compare(a, b, {"image": np.zeros((1, 3), np.float32)})


def test_two_sizes_of_a_dim_are_compared_in_what_both_have() -> None:
    model = onnxlab.load()
    batch = np.random.default_rng(0).standard_normal((4, 1, 8, 8)).astype(np.float32)
    comparison = onnxlab.compare(model, model, ({"image": batch[:1]}, {"image": batch}))
    assert not comparison
    assert len(comparison) == 22, "all but the values that are sizes"
    assert onnxlab.compare(model, model, ({"image": batch[:1]}, {"image": batch[::-1]}))
    single, four = comparison.arrays("logits")
    assert (single.shape, four.shape) == ((1, 10), (4, 10))
