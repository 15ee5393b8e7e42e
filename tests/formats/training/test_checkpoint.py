"""Training checkpoints: those of onnxruntime-training are read, listed, compared, applied and written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError, LoadError, SaveError, SaveWarning
from onnxlab.formats.ort.checkpoint import TrainingCheckpoint, decode, of_model, read_checkpoint
from onnxlab.formats.ort.tables import IDS
from onnxlab.graph import edits
from onnxlab.graph.protos import tensors
from tests.support.mutations import damaged
from tests.support.samples import samples

FILES = samples("training/artifacts")
WHOLE = [
    "checkpoint",
    "checkpoint_noopt.ckpt",
    "checkpoint_opt.ckpt",
    "ort_checkpoint",
    "sgd_checkpoint",
    "nom_checkpoint",
]


@pytest.mark.parametrize("name", [*WHOLE, "nom_nominal_checkpoint"])
def test_a_checkpoint_comes_back_as_it_was(name: str) -> None:
    checkpoint = decode(FILES[name])
    assert (checkpoint.version, [*checkpoint.trained, *checkpoint.frozen][-1]) == (2, "fc2.bias") or checkpoint.trained
    again = decode(checkpoint.to_bytes())
    assert again == checkpoint
    assert len(checkpoint.to_bytes()) <= len(FILES[name]) * 1.2


def test_what_is_in_a_checkpoint_with_an_optimizer() -> None:
    checkpoint = decode(FILES["checkpoint_opt.ckpt"])
    (group,) = checkpoint.groups
    assert (group.name, group.step) == ("group0", 3)
    assert group.learning_rate == pytest.approx(0.001)
    assert checkpoint.properties == {"epoch": 3, "lr": 0.5, "tag": "hello"}
    assert set(group.momentums["fc1.weight"]) == {"momentum0", "momentum1"}
    row = next(row for row in checkpoint.table() if row.name == "fc1.weight")
    array = tensors.to_array(checkpoint.trained["fc1.weight"])
    assert (row.group, row.dtype, row.shape, row.nan) == ("trained", "float32", (8, 16), 0)
    assert (row.mean, row.std) == (pytest.approx(array.mean(), abs=1e-6), pytest.approx(array.std(), rel=1e-5))
    momentum = tensors.to_array(group.momentums["fc1.weight"]["momentum0"])
    assert row.momentums["momentum0"] == pytest.approx(np.linalg.norm(momentum), rel=1e-5)
    text = str(checkpoint)
    assert "fc2.bias: frozen float32[4]" in text
    assert "group0: step 3, learning rate 0.001" in text
    assert "tag = 'hello'" in text


def test_statistics_count_what_is_not_a_number() -> None:
    array = np.array([0, np.nan, 2, 0], np.float32)
    (row,) = of_model([tensors.from_array(array, "w")]).table()
    assert (row.nan, row.zeros, row.minimum, row.maximum) == (1, 0.5, 0.0, 2.0)
    (row,) = of_model([tensors.from_array(np.full(2, np.nan, np.float32), "w")]).table()
    assert (row.nan, row.mean) == (2, None)


def test_two_checkpoints_and_a_model_are_compared() -> None:
    before, after = decode(FILES["checkpoint"]), decode(FILES["checkpoint_opt.ckpt"])
    differences = before.compare(after)
    assert set(differences) == {"fc1.weight", "fc1.bias", "fc2.weight"}
    assert "of 128 elements differ, by 0.00" in differences["fc1.weight"]
    assert before.compare(before) == {}
    model = onnx.load_from_string(FILES["mlp.onnx"])
    assert before.compare(model) == {}
    model.graph.initializer[0].dims[0] = 16
    model.graph.initializer[0].dims[1] = 8
    assert before.compare(model) == {"fc1.weight": "float32[8, 16] against float32[16, 8]"}


def test_applied_to_a_model_it_is_what_the_runtime_exports(tmp_path: Path) -> None:
    (tmp_path / "trained.ckpt").write_bytes(FILES["checkpoint_opt.ckpt"])
    model = onnxlab.load(FILES["mlp.onnx"])
    before = model.proto.SerializeToString()
    report = model.files.load_weights(tmp_path / "trained.ckpt")
    assert len(report.replaced) == 4
    exported = {tensor.name: tensor for tensor in onnx.load_from_string(FILES["inference.onnx"]).graph.initializer}
    for tensor in model.proto.graph.initializer:
        assert tensors.to_array(tensor).tobytes() == tensors.to_array(exported[tensor.name]).tobytes()
    model.undo()
    assert model.proto.SerializeToString() == before


def test_a_nominal_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "nominal").write_bytes(FILES["nom_nominal_checkpoint"])
    checkpoint = read_checkpoint(tmp_path / "nominal")
    assert checkpoint.nominal
    assert str(checkpoint).endswith("nominal: names without values")
    with pytest.raises(LoadError, match=r"it is a nominal checkpoint: it names .*fc1\.weight.* has no values"):
        onnxlab.load(tmp_path / "nominal")
    with pytest.raises(LoadError, match="nominal checkpoint"):
        onnxlab.load(FILES["mlp.onnx"]).files.load_weights(tmp_path / "nominal")


def test_it_opens_as_a_model_of_initializers(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(FILES["checkpoint_opt.ckpt"])
    model = onnxlab.load(tmp_path / "state")
    assert [tensor.name for tensor in model.proto.graph.initializer]
    assert isinstance(model.files.extra, TrainingCheckpoint)
    assert model.save(tmp_path / "copy").read_bytes() == FILES["checkpoint_opt.ckpt"]
    value = model.graph.values[model.graph.main.names["fc2.bias"]]
    edits.set_initializer(model.graph, value, tensors.from_array(np.ones(4, np.float32), "fc2.bias"))
    again = read_checkpoint(model.save(tmp_path / "changed.ckpt"))
    assert tensors.to_array(again.frozen["fc2.bias"]).tolist() == [1, 1, 1, 1]
    assert again.groups == model.files.extra.groups


def test_the_weights_of_a_model_become_a_checkpoint(tmp_path: Path) -> None:
    model = onnxlab.load(FILES["mlp.onnx"])
    path = model.files.save_weights(tmp_path / "weights.ckpt")
    assert decode(FILES["checkpoint"]).compare(read_checkpoint(path)) == {}
    with pytest.raises(SaveError, match="has no place for metadata"):
        model.files.save_weights(tmp_path / "weights.ckpt", metadata={"a": "b"})
    with pytest.warns(SaveWarning, match=r"a checkpoint does not hold nodes \(3\), inputs \(1\), outputs \(1\)"):
        model.save(tmp_path / "model.ckpt")


def test_data_beside_a_checkpoint_is_read(tmp_path: Path) -> None:
    whole = decode(FILES["checkpoint"])
    data = b"".join(tensors.to_array(tensor).tobytes() for tensor in whole.parameters.values())
    groups, offset = {}, 0
    assert "external_data_offset" in IDS["Tensor"]
    from onnxlab.formats.ort.writer import write

    for group, parameters in (("requires_grad_params", whole.trained), ("frozen_params", whole.frozen)):
        groups[group] = []
        for tensor in parameters.values():
            groups[group].append({"name": tensor.name, "dims": list(tensor.dims), "data_type": tensor.data_type,
                                  "external_data_offset": offset})  # fmt: skip
            offset += tensors.nbytes(tensor)
    stored = write("Checkpoint", {"version": 2, "module_state": {**groups, "has_external_data": True}}, b"ODTC")
    (tmp_path / "big").write_bytes(stored)
    with pytest.raises(LoadError, match=r"its data file big\.data cannot be read"):
        read_checkpoint(tmp_path / "big")
    (tmp_path / "big.data").write_bytes(data)
    assert whole.compare(read_checkpoint(tmp_path / "big")) == {}
    (tmp_path / "big.data").write_bytes(data[:-1])
    with pytest.raises(LoadError, match=r"its data file big\.data ends before byte"):
        read_checkpoint(tmp_path / "big")
    with pytest.raises(LoadError, match="in a data file beside it: read it by its path"):
        decode(stored)


@pytest.mark.parametrize("value", [True, None, 1 << 63, [1]])
def test_properties_that_do_not_fit_are_refused(value: object) -> None:
    with pytest.raises(SaveError, match="the property 'p' is"):
        replace(decode(FILES["checkpoint"]), properties={"p": value}).to_bytes()


def test_damaged_checkpoints_say_so() -> None:
    messages = []
    for data in damaged([FILES[name] for name in WHOLE], 1500):
        try:
            decode(data)
        except LoadError as error:
            messages.append(str(error))
    assert 500 < len(messages) < 1500
    assert [text for text in messages if not text.startswith(("it ", "its ", "tensor "))] == []


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    checkpoint = decode(FILES["checkpoint"])
    trained = {**checkpoint.trained, "fc1.bias": tensors.from_array(np.ones(3, np.float32), "fc1.bias")}
    (tmp_path / "other.ckpt").write_bytes(replace(checkpoint, trained=trained).to_bytes())
    model = onnxlab.load(FILES["mlp.onnx"])
    with pytest.raises(EditError, match=r"do not fit.*fc1\.bias"):
        model.files.load_weights(tmp_path / "other.ckpt")
    assert not model.dirty


def test_parameters_without_an_order_are_listed_and_compared_without_numbers() -> None:
    for array in (np.array(["a", "b"], object), np.array([1 + 2j, 3j], np.complex64)):
        stored = tensors.from_array(array, "p")
        (row,) = decode(of_model([stored]).to_bytes()).table()
        assert (row.mean, row.nan) == (None, None)
        swapped = of_model([tensors.from_array(array[::-1], "p")])
        assert of_model([stored]).compare(swapped) == {"p": "2 of 2 elements differ"}


@pytest.mark.filterwarnings("error")
def test_numbers_that_float64_cannot_tell_apart_differ() -> None:
    for array, other, says in (
        (np.array([2**53, 5]), np.array([2**53 + 1, 5]), "1 of 2 elements differ, by 0 at most"),
        (np.array([np.nan, 1.0]), np.array([2.0, np.nan]), "2 of 2 elements differ"),
        (np.array([np.inf]), np.array([np.nan]), "1 of 1 elements differ"),
        (np.zeros((0, 3)), np.zeros((0, 3)), ""),
    ):
        checkpoints = [of_model([tensors.from_array(elements, "p")]) for elements in (array, other)]
        assert checkpoints[0].compare(checkpoints[1]) == ({"p": says} if says else {})
        assert [str(checkpoint) for checkpoint in checkpoints]


def test_two_parameters_of_one_name_are_refused() -> None:
    first, second = (tensors.from_array(np.float32([number]), "p") for number in (1, 2))
    with pytest.raises(LoadError, match="two tensors called 'p'"):
        decode(TrainingCheckpoint({"a": first, "b": second}).to_bytes())
    with pytest.raises(LoadError, match="'p' is trained and frozen"):
        decode(TrainingCheckpoint({"p": first}, {"p": second}).to_bytes())
