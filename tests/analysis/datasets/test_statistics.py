"""Statistics and errors over data sets: against single runs, with bad samples, interrupted and resumed."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.analysis.datasets import checkpoint as checkpoints
from onnxlab.cli import main
from onnxlab.errors import CheckpointWarning, LoadError, NameLookupError, RunError
from onnxlab.formats.atomic import Replacement
from tests.analysis.datasets.support import counted, images, same

ROUNDED = 1e-6
"""Relative difference of runs by NumPy and Numba: either may come first, as kernels are compiled meanwhile."""


def test_numbers_are_those_of_runs_by_hand() -> None:
    samples = images(40)
    table = counted(samples, chunk=7)
    model = onnxlab.load()
    arrays = [model.run(image, ["stem/relu_out"])["stem/relu_out"].astype(np.float64) for image in samples]
    whole = np.concatenate([array.reshape(-1) for array in arrays])
    entry = table["stem/relu_out"]
    assert (entry.samples, entry.count, entry.dtype) == (40, whole.size, "float32")
    assert (entry.minimum, entry.zeros) == (whole.min(), np.count_nonzero(whole == 0))
    assert entry.maximum == pytest.approx(whole.max(), rel=ROUNDED)
    assert entry.mean == pytest.approx(whole.mean(), rel=ROUNDED)
    assert entry.std == pytest.approx(whole.std(), rel=ROUNDED)
    assert entry.worst[0][0] == int(np.argmax([array.max() for array in arrays]))
    assert entry.quantile(0.9) == pytest.approx(np.quantile(whole, 0.9), rel=0.07)
    assert sum(count for _, _, count in entry.histogram()) == whole.size
    assert len(str(table).splitlines()) == 23


def test_all_values_that_depend_on_inputs_are_counted() -> None:
    table = counted(images(2))
    model = onnxlab.load()
    produced = {value for node in model.nodes for value in node.proto.output}
    names = {entry.name for entry in table}
    assert names == produced
    text = (
        '<ir_version: 9, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) '
        "{ c = Constant <value = float[2] {1, 2}> () d = Neg(c) r = RandomNormal <shape = [2]> () "
        "s = Add(d, r) y = Add(x, s) }"
    )
    small = onnxlab.load(onnx.parser.parse_model(text))
    names = {entry.name for entry in onnxlab.statistics(small, [np.zeros(2, np.float32)], progress=False)}
    assert names == {"r", "s", "y"}


def test_any_chunk_counts_the_same() -> None:
    samples = images(25)
    tables = [counted(samples, chunk=size) for size in (1, 4, 25, 100)]
    for table in tables[1:]:
        for name in ("count", "zeros", "minimum", "maximum", "bins", "worst_at"):
            assert np.array_equal(getattr(table._tally, name), getattr(tables[0]._tally, name))
        assert np.allclose(table._tally.mean, tables[0]._tally.mean, rtol=1e-12, atol=1e-14)


def test_channels() -> None:
    samples = images(6)
    table = counted(samples, values=["stem/conv_out"], channels=["stem/conv_out"])
    model = onnxlab.load()
    arrays = np.concatenate([model.run(image, ["stem/conv_out"])["stem/conv_out"] for image in samples])
    channels = table.channels("stem/conv_out")
    assert [entry.maximum for entry in channels] == arrays.max(axis=(0, 2, 3)).tolist()
    assert channels[2].name == "stem/conv_out[2]"
    with pytest.raises(NameLookupError, match="has no axis 1 of known size"):
        counted(samples, channels=["head/target_shape"])
    with pytest.raises(NameLookupError):
        counted(samples, values=["nothing"])


def test_a_sample_that_fails_in_the_middle_leaves_nothing() -> None:
    text = (
        '<ir_version: 9, opset_import: ["" : 18]> g (float[n] x, int64[1] i) => (float[1] y) '
        "{ a = Abs(x) b = Neg(a) y = Gather(b, i) }"
    )
    model = onnxlab.load(onnx.parser.parse_model(text))
    values = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    samples = [{"x": row, "i": np.array([9 if place in (3, 4) else place % 5])} for place, row in enumerate(values)]
    good = [sample for place, sample in enumerate(samples) if place not in (3, 4)]
    table = onnxlab.statistics(model, samples, channels=[], progress=False)
    assert (table.samples, table.failed, [failure.index for failure in table.failures]) == (7, {"RunError": 2}, [3, 4])
    state, expected = table._tally.state(), onnxlab.statistics(model, good, progress=False)._tally.state()
    for name in ("count", "samples", "bins_at", "bins", "minimum", "maximum", "mean", "m2", "worst"):
        assert np.array_equal(state[name], expected[name]), name


def folder_of(path: Path, samples: list[Any]) -> Path:
    path.mkdir()
    for number, image in enumerate(samples):
        np.savez(path / f"{number:05}.npz", image=image)
    return path


def test_samples_of_every_kind_count_the_same(tmp_path: Path) -> None:
    samples = images(9)
    expected = counted(samples)
    assert same(counted(iter(samples)), expected)
    assert same(counted([{"image": image} for image in samples]), expected)
    assert same(counted([image[0] for image in samples]), expected)  # without the batch's axis
    assert same(counted(np.stack([image[0] for image in samples])), expected)
    assert same(counted([({"image": image}, 3) for image in samples]), expected)
    assert same(counted(folder_of(tmp_path / "npz", samples)), expected)
    (tmp_path / "npy").mkdir()
    (tmp_path / "pb").mkdir()
    for number, image in enumerate(samples):
        np.save(tmp_path / "npy" / f"{number}.npy", image)
        tensor = onnx.numpy_helper.from_array(image, "image")
        (tmp_path / "pb" / f"{number}.pb").write_bytes(tensor.SerializeToString())
        (tmp_path / "sets" / f"test_data_set_{number}").mkdir(parents=True)
        (tmp_path / "sets" / f"test_data_set_{number}" / "input_0.pb").write_bytes(tensor.SerializeToString())
    for kind in ("npy", "pb", "sets"):
        assert same(counted(tmp_path / kind), expected), kind


class Rows:
    """A data set as `datasets` has them: rows by number, some of which cannot be read."""

    def __init__(self, samples: list[Any], broken: int) -> None:
        self.samples, self.broken = samples, broken

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, place: int) -> Any:
        if place == self.broken:
            raise OSError("the shard is gone")
        return {"image": self.samples[place], "label": place}


def test_bad_samples_are_named_and_counted_and_the_others_go_on(tmp_path: Path) -> None:
    samples: list[Any] = images(12)
    good = [sample for number, sample in enumerate(samples) if number not in (2, 5, 7, 9)]
    samples[2] = np.zeros((3, 3), np.float32)
    samples[5] = {"picture": samples[5]}
    samples[7] = "missing.npz"
    samples[9] = samples[9].astype(np.int64)
    table = counted(samples, chunk=4)
    assert table.samples == 8
    assert sum(table.failed.values()) == 4
    assert [failure.index for failure in table.failures] == [2, 5, 7, 9]
    assert table.failures[2].label == "missing.npz"
    assert "it must have rank 4" in table.failures[0].message
    assert "not used: " in str(table)
    assert np.array_equal(table._tally.bins, counted(good)._tally.bins)
    rows = counted(Rows(images(6), 3))
    assert (rows.samples, rows.failures[0].index, "the shard is gone" in rows.failures[0].message) == (5, 3, True)
    folder = folder_of(tmp_path / "some", images(30))
    (folder / "00011.npz").write_bytes(b"PK\x03\x04 cut off")
    broken = counted(folder)
    assert (broken.samples, broken.failures[0].label) == (29, "00011.npz")


def test_when_nothing_can_be_used_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"none of 3 samples could be used; sample 0: .*must have rank 4"):
        counted([np.zeros((3, 3), np.float32)] * 3)
    with pytest.raises(LoadError, match="give a folder of samples"):
        counted(tmp_path / "nowhere")
    with pytest.raises(LoadError, match="holds no samples"):
        counted(tmp_path)
    with pytest.raises(TypeError, match="give an iterable of samples"):
        counted({"image": images(1)[0]})
    with pytest.raises(ValueError, match="at least one sample"):
        counted(images(1), chunk=0)
    assert counted([]).samples == 0


def interrupted(samples: list[Any], after: int) -> Iterator[Any]:
    for number, sample in enumerate(samples):
        if number == after:
            raise KeyboardInterrupt
        yield sample


def test_interrupted_and_gone_on_is_the_same(tmp_path: Path) -> None:
    samples, file = images(30), tmp_path / "state.npz"
    with pytest.raises(KeyboardInterrupt) as caught:
        counted(interrupted(samples, 17), checkpoint=file, chunk=5)
    assert "15 samples are in" in caught.value.__notes__[0]
    seen: list[int] = []
    table = onnxlab.statistics(
        onnxlab.load(), iter(samples), checkpoint=file, chunk=5, progress=lambda done, total, note: seen.append(done)
    )
    assert seen == [20, 25, 30]
    assert same(table, counted(samples, chunk=5))
    again = onnxlab.statistics(onnxlab.load(), iter(samples), checkpoint=file, chunk=5, progress=False)
    assert same(again, table)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.npz"
    counted(images(3), checkpoint=file)
    with pytest.raises(LoadError, match="is of another model, other values or other samples"):
        counted(images(4), checkpoint=file)
    with pytest.raises(LoadError, match="is of another model"):
        counted(images(3), checkpoint=file, values=["logits"])
    for content in (b"", b"PK\x03\x04", b"no checkpoint"):
        file.write_bytes(content)
        with pytest.raises(LoadError):
            counted(images(3), checkpoint=file)
    np.savez(file, x=np.zeros(3))
    with pytest.raises(LoadError, match="is no checkpoint"):
        counted(images(3), checkpoint=file)


def test_a_full_disk_is_named_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Replacement, "write", full)
    monkeypatch.setattr(checkpoints, "_EVERY", 0.0)
    with pytest.warns(CheckpointWarning, match="No space left on device; the run goes on") as warned:
        table = counted(images(20), checkpoint=tmp_path / "state.npz", chunk=2)
    assert len(warned) == 1
    assert table.samples == 20
    assert list(tmp_path.iterdir()) == []


def test_errors_of_one_model_against_another() -> None:
    other = onnxlab.load()
    other.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
    samples = images(20)
    evaluation = onnxlab.evaluate(onnxlab.load(), other, samples, ["top1", "mse", _margin], chunk=6, progress=False)
    errors = []
    reference = onnxlab.load()
    for image in samples:
        a, b = (model.run(image)["probabilities"].astype(np.float64) for model in (reference, other))
        errors.append(np.abs(a - b).max() / np.abs(a).max())
    entry = evaluation["probabilities"]
    assert entry.relative.mean == pytest.approx(np.mean(errors), rel=100 * ROUNDED)
    assert entry.worst[0] == (int(np.argmax(errors)), pytest.approx(max(errors), rel=100 * ROUNDED))
    assert 20 < entry.sqnr < 80
    assert set(evaluation.metrics) == {"top1", "mse", "_margin"}
    assert evaluation.metrics["_margin"].count == 20
    assert "top1: mean" in str(evaluation)
    inside = onnxlab.evaluate(onnxlab.load(), other, samples, values="*", progress=False)
    assert inside["stem/conv_out"].sqnr == np.inf
    assert inside["stem/relu_out"].sqnr < 80


def _margin(reference: Any, other: Any, target: Any) -> float:
    best = np.sort(next(iter(other.values())).reshape(-1))
    return float(best[-1] - best[-2])


def test_targets_and_metrics_that_fail() -> None:
    samples = [(image, number) for number, image in enumerate(images(10))]
    model = onnxlab.load()
    answers = [int(model.run(image)["probabilities"].argmax()) for image, _ in samples]
    evaluation = onnxlab.evaluate(model, onnxlab.load(), samples, "top1", progress=False)
    hits = np.mean([answer == number for number, answer in enumerate(answers)])
    assert evaluation.metrics["top1"].mean == pytest.approx(hits)
    with pytest.raises(ValueError, match="there is no metric 'top2'"):
        onnxlab.evaluate(model, model, samples, "top2", progress=False)
    with pytest.raises(RunError, match="metric top1: ValueError: given 3 classes for 1 rows"):
        onnxlab.evaluate(model, model, [(samples[0][0], [1, 2, 3])], "top1", progress=False)
    with pytest.raises(RunError, match="metric <lambda>: ZeroDivisionError"):
        onnxlab.evaluate(model, model, samples[:1], lambda a, b, target: 1 / 0, progress=False)


def test_models_that_differ_in_inputs_and_outputs() -> None:
    other = onnxlab.load()
    other.value("image").name = "picture"
    other.value("probabilities").name = "scores"
    evaluation = onnxlab.evaluate(onnxlab.load(), other, images(3), progress=False)
    assert [entry.name for entry in evaluation] == ["probabilities"]
    assert evaluation.worst_error == 0.0
    text = (
        '<ir_version: 9, opset_import: ["" : 18]> g (float[n,1,8,8] image) => (float[n,1,8,8] logits) '
        "{ logits = Neg(image) }"
    )
    third = onnxlab.load(onnx.parser.parse_model(text))
    with pytest.raises(NameLookupError, match="has nothing that corresponds to 'stem/relu_out'"):
        onnxlab.evaluate(onnxlab.load(), third, images(3), values=["stem/relu_out"], progress=False)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnxlab.load().save(tmp_path / "m.onnx")
    folder = folder_of(tmp_path / "samples", images(5))
    assert main(["statistics", str(model), str(folder), "--json", "--ranges", "percentile"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["samples"] == 5
    assert len(answer["ranges"]) == len(answer["values"]) == 24
    assert main(["evaluate", str(model), str(model), str(folder), "--metric", "top1", "--at-most", "0"]) == 0
    assert "top1: mean 1" in capsys.readouterr().out
    other = onnxlab.load()
    other.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
    path = other.save(tmp_path / "other.onnx")
    assert main(["evaluate", str(model), str(path), str(folder), "--at-most", "1e-6"]) == 1
    assert main(["statistics", str(model), str(tmp_path / "nowhere")]) == 3
    assert main(["evaluate", str(model), str(model), str(folder), "--metric", "top2"]) == 2


@pytest.mark.slow
def test_memory_stays_the_same_over_many_samples() -> None:
    import tracemalloc

    image = images(1)[0]
    peaks = []
    counted([image] * 40, values=["logits", "stem/relu_out"])
    for count in (40, 160):
        tracemalloc.start()
        counted(iter(image for _ in range(count)), values=["logits", "stem/relu_out"], chunk=4)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.15 * peaks[0]
