"""Values of two sides: measures of error, the first divergence, the guilty node, recordings, providers."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.analysis.compare.error import error
from onnxlab.analysis.compare.sides import file_name
from onnxlab.cli import main
from onnxlab.errors import LoadError
from tests.analysis.compare.faults import KINDS, SMALL, planted

ONES = np.ones((2, 3), np.float32)


def with_one(index: tuple[int, int], number: float) -> np.ndarray[Any, Any]:
    array = ONES.copy()
    array[index] = number
    return array


def test_measures_of_an_error() -> None:
    same = error(ONES, ONES.copy())
    assert (same.equal, same.relative, same.sqnr, same.cosine, same.first) == (True, 0.0, math.inf, 1.0, ())
    off = error(ONES * 4, with_one((1, 2), 1.25) * 4)
    assert (off.peak, off.largest, off.relative, off.first) == (4.0, 1.0, 0.25, (1, 2))
    assert off.sqnr == pytest.approx(10 * math.log10(6 / 0.0625))
    assert 0.99 < off.cosine < 1
    nan = error(ONES, with_one((0, 1), np.nan))
    assert (nan.relative, nan.nan, nan.first) == (math.inf, (0, 1), (0, 1))
    assert error(with_one((0, 1), np.nan), with_one((0, 1), np.nan)).equal
    assert error(with_one((0, 1), np.inf), with_one((0, 1), -np.inf)).relative == math.inf
    assert error(ONES, ONES[:1]).problem == "shape [1, 3] in place of [2, 3]"
    assert error([ONES], [ONES]).equal
    assert not error([ONES], [ONES * 2]).equal
    assert error(np.array(["a"], object), np.array(["b"], object)).problem == "texts differ"
    assert error(np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)).equal


def test_errors_of_large_arrays_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal((3, 70_001)).astype(np.float32)
    other = array + rng.standard_normal(array.shape).astype(np.float32) * 1e-3
    array[1, 5], other[2, 69_999], other[2, 70_000] = np.nan, np.inf, 50
    measured, wide, its = error(array, other), array.astype(np.float64), other.astype(np.float64)
    both = np.isfinite(wide) & np.isfinite(its)
    ours, apart = wide[both], (its - wide)[both]
    assert measured.peak == np.abs(ours).max()
    assert measured.largest == np.abs(apart).max()
    assert measured.sqnr == pytest.approx(10 * math.log10((ours**2).sum() / (apart**2).sum()))
    assert measured.cosine == pytest.approx(
        (ours @ its[both]) / np.linalg.norm(ours) / np.linalg.norm(its[both]), rel=1e-12
    )
    assert (measured.nan, measured.inf, measured.relative) == ((1, 0), (0, 1), math.inf)
    assert error(array, np.where(np.arange(array.size).reshape(array.shape) < 99_999, array, array + 1)).first == (
        1,
        29_998,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_planted_fault_is_found(kind: str, seed: int) -> None:
    fault = planted(seed, kind, SMALL)
    comparison = onnxlab.compare(fault.a, fault.b, fault.inputs, local=True)
    assert comparison.first is not None
    assert (comparison.first.node, comparison.guilty[0].node) == (fault.node, fault.node)
    assert max(comparison.runs) <= 3


def test_a_simplified_model_agrees_within_roundings() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.simplify()
    comparison = onnxlab.compare(a, b, local=True)
    assert not comparison
    assert comparison.guilty == []
    assert comparison["probabilities"].error.relative < 1e-5
    assert "stem/conv_out" in comparison.unpaired  # the node is folded into the one after it


def test_against_the_state_before_an_edit() -> None:
    model = onnxlab.load()
    assert not onnxlab.compare(model)
    model.nodes["/head/Softmax"].attributes["axis"] = 0
    comparison = onnxlab.compare(model)
    assert comparison.first is not None
    assert comparison.first.a == "probabilities"
    assert "diverge first at probabilities, made by /head/Softmax" in str(comparison)
    assert not onnxlab.compare(model, since=1)


def test_against_recorded_values(tmp_path: Path) -> None:
    model = onnxlab.load()
    feeds = model.sample_inputs()
    names = ["stem/relu_out", "logits"]
    arrays = model.run(feeds, names)
    assert not onnxlab.compare(model, arrays, feeds)
    wrong = {**arrays, "logits": arrays["logits"] + 1}
    for name, array in wrong.items():
        np.save(tmp_path / f"{file_name(name)}.npy", array)
    comparison = onnxlab.compare(model, tmp_path, feeds)
    assert [(entry.a, entry.diverges) for entry in comparison] == [("stem/relu_out", False), ("logits", True)]
    assert len(comparison.unpaired) == 22
    (tmp_path / "logits.npy").write_bytes(b"no array")
    with pytest.raises(LoadError, match=r"logits\.npy"):
        onnxlab.compare(model, tmp_path, feeds)
    (tmp_path / "empty").mkdir()
    with pytest.raises(LoadError, match=r"has no \.npy files; name each"):
        onnxlab.compare(model, tmp_path / "empty", feeds)


def test_two_providers_of_one_model() -> None:
    model = onnxlab.load()
    comparison = onnxlab.compare(model, model, b_providers=["onnxruntime"])
    assert not comparison
    assert len(comparison) == 24
    assert 0 < comparison["probabilities"].error.relative < 1e-5  # the other model runs this node


def test_a_node_that_fails_on_the_other_side_is_named() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/stem/relu/Relu"].op_type = "Abs"
    comparison = onnxlab.compare(a, b, local=True)
    document = json.loads(comparison.to_json())
    assert document["first"] == "stem/relu_out"
    assert document["guilty"] == ["stem/relu_out"]
    assert document["values"][0]["sqnr"] == "inf"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnxlab.load()
    path, other = model.save(tmp_path / "one.onnx"), tmp_path / "other.onnx"
    model.nodes["/stem/relu/Relu"].op_type = "Abs"
    model.save(other)
    np.save(tmp_path / "image.npy", np.ones((1, 1, 8, 8), np.float32))
    assert main(["compare", str(path), str(path), f"image={tmp_path / 'image.npy'}"]) == 0
    assert "24 values agree within their noise" in capsys.readouterr().out
    assert main(["compare", str(path), str(other), "--local", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["guilty"] == ["stem/relu_out"]
    assert main(["compare", str(path), str(other), "--providers", "none"]) == 2
    assert main(["compare", str(path), str(other), "--tolerance", "3"]) == 0
    assert "24 values agree within 3 of their peaks" in capsys.readouterr().out
    assert main(["compare", str(path), str(other), "--tolerance", "-1"]) == 2


def test_a_tolerance_stands_for_roundings() -> None:
    model, other = onnxlab.load(), onnxlab.load()
    weight = other.nodes["/head/fc/Gemm"].inputs[1]
    weight.array = weight.array * np.float32(1.001)
    feeds = {"image": np.random.default_rng(0).random((1, 1, 8, 8), np.float32)}
    comparison = onnxlab.compare(model, other, feeds)
    assert comparison.first is not None
    assert 1e-5 < comparison.first.error.relative < 1e-2
    loose = onnxlab.compare(model, other, feeds, tolerance=1e-2)
    assert not loose
    assert loose.tolerance == loose.as_dict()["tolerance"] == 1e-2
    assert loose.compared is not None
    assert not loose.compared.again()
    strict = onnxlab.compare(model, model, feeds, tolerance=0)
    assert not strict
    assert {entry.noise for entry in strict} == {0.0}
    for wrong, kind in ((-1, ValueError), (float("nan"), ValueError), ("1", TypeError)):
        with pytest.raises(kind, match="tolerance is"):
            onnxlab.compare(model, other, feeds, tolerance=wrong)


def test_records_of_other_values_are_refused(tmp_path: Path) -> None:
    model = onnxlab.load()
    with pytest.raises(LoadError, match="no recorded array is called like a value of the model; its values are 'stem/"):
        onnxlab.compare(model, {"nope": np.zeros(3)})
    np.save(tmp_path / "nope.npy", np.zeros(3))
    model.save(tmp_path / "m.onnx")
    assert main(["compare", str(tmp_path / "m.onnx"), str(tmp_path)]) == 3


def test_a_tuple_of_inputs_is_a_pair() -> None:
    model = onnxlab.load()
    with pytest.raises(onnxlab.OnnxlabError, match="of the first and of the second model, given 1"):
        onnxlab.compare(model, model, ({},))  # type: ignore[arg-type]
