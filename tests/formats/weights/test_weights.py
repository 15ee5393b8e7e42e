"""Files of weights against the library of the format, NumPy and onnx."""

import json
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import safetensors.numpy
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab import dtypes
from onnxlab.errors import EditError, LoadError, NameLookupError, SaveError, SaveWarning
from onnxlab.formats.weights import safetensors as own
from onnxlab.graph.protos import tensors

Array = np.ndarray[Any, np.dtype[Any]]
STORED = [elem_type for elem_type in dtypes.ELEM_TYPES if elem_type in own._NAMES]


def model_of(**arrays: Array) -> onnx.ModelProto:
    stored = [tensors.from_array(array, name) for name, array in arrays.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [], [output], stored)
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def numbers(elem_type: int, *shape: int) -> Array:
    rng = np.random.default_rng(elem_type)
    return rng.integers(1, 3, shape).astype(dtypes.to_numpy(elem_type))  # e8m0 has no zero


FLOATS: dict[str, Array] = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.arange(4, dtype=np.int64),
    "half": np.ones((3, 1), np.float16),
    "empty": np.zeros((0, 4), np.float32),
    "scalar": np.array(2.5, np.float64),
    "truth": np.array([True, False]),
}


def test_a_file_is_written_as_the_library_of_the_format_writes_it(tmp_path: Path) -> None:
    onnxlab.load(model_of(**FLOATS)).files.save_weights(tmp_path / "ours.safetensors")
    safetensors.numpy.save_file(FLOATS, tmp_path / "theirs.safetensors")
    assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()


def test_an_archive_is_written_as_numpy_writes_it(tmp_path: Path) -> None:
    model = onnxlab.load(model_of(**FLOATS))
    model.files.save_weights(tmp_path / "ours.npz", names=list(FLOATS))
    order = [tensor.name for tensor in own.in_order(model.proto.graph.initializer)]
    np.savez(tmp_path / "theirs.npz", **{name: FLOATS[name] for name in order})
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
@pytest.mark.parametrize("link", [False, True])
def test_weights_come_back_bit_for_bit(tmp_path: Path, suffix: str, link: bool) -> None:
    path = tmp_path / f"weights{suffix}"
    onnxlab.load(model_of(**FLOATS)).files.save_weights(path)
    before = path.read_bytes()
    onnx.save(model_of(**{name: np.zeros_like(array) for name, array in FLOATS.items()}), tmp_path / "zero.onnx")
    model = onnxlab.load(tmp_path / "zero.onnx")
    report = model.files.load_weights(path, link=link)
    assert sorted(report.replaced) == sorted(FLOATS)
    for name, array in FLOATS.items():
        np.testing.assert_array_equal(np.asarray(model.tensor(name)), array)
    linked = [name for name in FLOATS if model.tensor(name).is_external]
    assert bool(linked) == link
    model.save(tmp_path / "filled.onnx")
    saved = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(tmp_path / "filled.onnx").graph.initializer
    }
    for name, array in FLOATS.items():
        np.testing.assert_array_equal(saved[name], array)
    model.undo()
    assert not np.asarray(model.tensor("b")).any()
    assert path.read_bytes() == before


@pytest.mark.parametrize("elem_type", STORED, ids=dtypes.name)
def test_every_type_of_the_format_comes_back(tmp_path: Path, elem_type: int) -> None:
    array = numbers(elem_type, 2, 4)
    onnxlab.load(model_of(w=array)).files.save_weights(tmp_path / "w.safetensors")
    weights = onnxlab.read_weights(tmp_path / "w.safetensors")
    assert weights["w"].dtype == array.dtype
    np.testing.assert_array_equal(np.asarray(weights["w"]), array)


@pytest.mark.parametrize(
    "elem_type", [elem_type for elem_type in dtypes.ELEM_TYPES if elem_type not in STORED], ids=dtypes.name
)
def test_types_without_a_place_in_the_format_are_named(tmp_path: Path, elem_type: int) -> None:
    array = np.array(["a"], object) if elem_type == dtypes.STRING else numbers(elem_type, 4)
    path = tmp_path / "w.safetensors"
    with pytest.raises(SaveError, match=f"no {dtypes.name(elem_type)}, which 'w' holds"):
        onnxlab.load(model_of(w=array)).files.save_weights(path)
    assert not path.exists()


@pytest.mark.parametrize("elem_type", dtypes.ELEM_TYPES, ids=dtypes.name)
@pytest.mark.parametrize("link", [False, True])
def test_archives_hold_every_type(tmp_path: Path, elem_type: int, link: bool) -> None:
    strings = elem_type == dtypes.STRING
    array = np.array(["a", "ünï"], object) if strings else numbers(elem_type, 3, 2)
    model = onnxlab.load(model_of(w=array))
    model.save(tmp_path / "m.onnx")
    model.files.save_weights(tmp_path / "w.npz")
    model.value("w").array = np.zeros_like(array) if not strings else np.array(["", ""], object)
    model.files.load_weights(tmp_path / "w.npz", link=link)
    np.testing.assert_array_equal(np.asarray(model.tensor("w")), array)


def test_arrays_that_lie_otherwise_are_read(tmp_path: Path) -> None:
    odd = {"f": np.asfortranarray(FLOATS["b"]), "big": np.arange(3, dtype=">i4"), "flags": np.array([True])}
    np.savez_compressed(tmp_path / "c.npz", **odd)
    np.savez(tmp_path / "u.npz", **odd)
    for name in ("c.npz", "u.npz"):
        weights = onnxlab.read_weights(tmp_path / name)
        for key, array in odd.items():
            np.testing.assert_array_equal(np.asarray(weights[key]), array)


def test_missing_extra_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    stored = {"a": FLOATS["a"], "b": FLOATS["b"].T.copy(), "z": FLOATS["a"]}
    safetensors.numpy.save_file(stored, tmp_path / "w.safetensors")
    model = onnxlab.load(model_of(a=FLOATS["a"], b=FLOATS["b"], c=FLOATS["a"]))
    report = model.files.load_weights(tmp_path / "w.safetensors", dry_run=True)
    assert (report.replaced, report.missing, report.extra) == (("a",), ("c",), ("z",))
    assert report.misfits == {"b": "the model has the shape [2, 3], the file [3, 2]"}
    assert "b: the model has the shape [2, 3]" in str(report)
    with pytest.raises(EditError, match=r"b \(the model has the shape"):
        model.files.load_weights(tmp_path / "w.safetensors", strict=False)
    safetensors.numpy.save_file({"a": FLOATS["a"] * 2, "z": FLOATS["a"]}, tmp_path / "w.safetensors")
    with pytest.raises(EditError, match="b, c are not in the file; z is not in the model"):
        model.files.load_weights(tmp_path / "w.safetensors")
    assert model.version == 0
    model.files.load_weights(tmp_path / "w.safetensors", strict=False)
    np.testing.assert_array_equal(np.asarray(model.tensor("a")), FLOATS["a"] * 2)


def test_other_dtypes_are_refused(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"a": FLOATS["a"].astype(np.int32)}, tmp_path / "w.safetensors")
    with pytest.raises(EditError, match="the model has int64, the file int32"):
        onnxlab.load(model_of(a=FLOATS["a"])).files.load_weights(tmp_path / "w.safetensors")


def test_names_may_differ(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"enc.b": FLOATS["b"]}, tmp_path / "w.safetensors")
    for names in ({"b": "enc.b"}, lambda name: f"enc.{name}"):
        model = onnxlab.load(model_of(b=np.zeros_like(FLOATS["b"])))
        model.files.load_weights(tmp_path / "w.safetensors", names=names)
        np.testing.assert_array_equal(np.asarray(model.tensor("b")), FLOATS["b"])


def test_documentation_of_an_initializer_stays(tmp_path: Path) -> None:
    proto = model_of(b=FLOATS["b"])
    proto.graph.initializer[0].doc_string = "kept"
    safetensors.numpy.save_file({"b": FLOATS["b"] + 1}, tmp_path / "w.safetensors")
    model = onnxlab.load(proto)
    model.files.load_weights(tmp_path / "w.safetensors")
    assert model.proto.graph.initializer[0].doc_string == "kept"


def shards(folder: Path) -> Path:
    safetensors.numpy.save_file({"a": FLOATS["a"]}, folder / "model-00001-of-00002.safetensors")
    safetensors.numpy.save_file({"b": FLOATS["b"]}, folder / "model-00002-of-00002.safetensors")
    index = folder / "model.safetensors.index.json"
    places = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index.write_text(json.dumps({"metadata": {"total_size": 56}, "weight_map": places}))
    return index


def test_shards_are_found_by_their_index(tmp_path: Path) -> None:
    model = onnxlab.load(model_of(a=np.zeros(4, np.int64), b=np.zeros((2, 3), np.float32)))
    model.files.load_weights(shards(tmp_path))
    np.testing.assert_array_equal(np.asarray(model.tensor("b")), FLOATS["b"])


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"a": "../model-00001-of-00002.safetensors"}, "no plain file name"),
        (
            {"c": "model-00001-of-00002.safetensors"},
            "'c' is said to be in model-00001-of-00002.safetensors, which",
        ),
        ({"a": "gone.safetensors"}, "gone.safetensors"),
        ({"a": 3}, "no weight_map"),
    ],
    ids=["outside", "missing", "no file", "no text"],
)
def test_odd_indices_are_refused(tmp_path: Path, places: dict[str, object], words: str) -> None:
    index = shards(tmp_path)
    index.write_text(json.dumps({"weight_map": places}))
    with pytest.raises(LoadError, match=words):
        onnxlab.read_weights(index)


def header(**rows: object) -> bytes:
    text = json.dumps(rows).encode()
    return len(text).to_bytes(8, "little") + text


ROW = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "its header should have"),
        (b"\xff" * 16, "its header should have"),
        (header(w=ROW), "its tensors take 8 bytes, 0 are there"),
        (header(w=ROW) + bytes(9), "its tensors take 8 bytes, 9 are there"),
        (header(w={**ROW, "data_offsets": [4, 12]}) + bytes(12), "begins at byte 4, where 0 is the next"),
        (header(v=ROW, w=ROW) + bytes(8), "begins at byte 0, where 8 is the next"),
        (header(w={**ROW, "shape": [2**61, 2**61]}) + bytes(8), "lies in 8 bytes"),
        (header(w={**ROW, "shape": [-2]}) + bytes(8), "no lists of whole numbers"),
        (header(w={**ROW, "shape": [True] * 2}) + bytes(8), "no lists of whole numbers"),
        (header(w={**ROW, "dtype": "Q9"}) + bytes(8), "has the dtype 'Q9', which ONNX has no type for"),
        (header(w={**ROW, "dtype": []}) + bytes(8), "which ONNX has no type for"),
        (header(w=[1]), "something else than dtype, shape and data_offsets"),
        (header(__metadata__={"a": 1}), "something else than texts"),
        (b"\x05" + bytes(7) + b"[1,2]", "is a JSON list"),
        ((100_000).to_bytes(8, "little") + b"[" * 100_000, "no JSON object"),
        (b"\x1d" + bytes(7) + b'{"__metadata__":{},"a":1,"a":2}'[:29], "no JSON object"),
    ],
    ids=lambda item: item[:20] if isinstance(item, str) else None,
)
def test_damaged_files_are_refused(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "w.safetensors").write_bytes(data)
    with pytest.raises(LoadError, match=words):
        onnxlab.read_weights(tmp_path / "w.safetensors")


def test_archives_of_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", a=np.array([{}], object))
    with pytest.raises(LoadError, match="Python objects"):
        onnxlab.read_weights(tmp_path / "w.npz")


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    model = onnxlab.load(model_of(a=FLOATS["a"], half=FLOATS["half"]))
    for suffix in (".safetensors", ".npz"):
        path = model.files.save_weights(tmp_path / f"w{suffix}")
        whole = path.read_bytes()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            with pytest.raises(LoadError):
                onnxlab.read_weights(path)


def test_files_elsewhere_are_not_linked(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    onnx.save(model_of(a=FLOATS["a"]), tmp_path / "model" / "m.onnx")
    safetensors.numpy.save_file({"a": FLOATS["a"]}, tmp_path / "w.safetensors")
    model = onnxlab.load(tmp_path / "model" / "m.onnx")
    with pytest.raises(EditError, match="is not in the model's folder"):
        model.files.load_weights(tmp_path / "w.safetensors", link=True)
    with pytest.raises(EditError, match="has no folder"):
        onnxlab.load(model_of(a=FLOATS["a"])).files.load_weights(tmp_path / "w.safetensors", link=True)


def test_a_file_of_weights_is_listed(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"a\x1b": FLOATS["a"], "b": FLOATS["b"]}, tmp_path / "w.safetensors", {"k": "v"})
    weights = onnxlab.read_weights(tmp_path / "w.safetensors")
    assert weights.metadata == {"k": "v"}
    assert weights.table()[1] == {"name": "b", "dtype": "float32", "shape": [2, 3], "bytes": 24}
    assert "2 tensors, 56 " in repr(weights)
    assert "\x1b" not in repr(weights)
    with pytest.raises(NameLookupError, match="no tensor 'q'"):
        weights["q"]


def test_other_files_are_not_written_over(tmp_path: Path) -> None:
    model = onnxlab.load(model_of(a=FLOATS["a"]))
    (tmp_path / "w.npz").write_text("notes")
    with pytest.raises(SaveError, match=r"not an \.npz archive"):
        model.files.save_weights(tmp_path / "w.npz")
    with pytest.raises(SaveError, match=r"ends in \.safetensors, \.npz or \.ckpt"):
        model.files.save_weights(tmp_path / "w.bin")
    with pytest.raises(EditError, match="is called nope"):
        model.files.save_weights(tmp_path / "w2.npz", names=["nope"])


def test_narrow_types_of_archives_are_listed_as_bits(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", a=np.ones(2, ml_dtypes.bfloat16))
    weights = onnxlab.read_weights(tmp_path / "w.npz")
    assert weights.table()[0]["dtype"] == "16 bits"
    assert weights.tensor("a", dtypes.BFLOAT16).data_type == dtypes.BFLOAT16
    assert weights.tensor("a", dtypes.FLOAT).data_type == dtypes.UINT16


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_a_file_of_weights_opens_as_a_model_of_initializers(tmp_path: Path, suffix: str) -> None:
    path = onnxlab.load(model_of(**FLOATS)).files.save_weights(tmp_path / f"w{suffix}")
    model = onnxlab.load(path)
    assert model.tensor("b").is_external
    assert not model.check()
    for name, array in FLOATS.items():
        np.testing.assert_array_equal(np.asarray(model.tensor(name)), array)
    with pytest.raises(SaveError, match="save_weights"):
        model.save(tmp_path / f"other{suffix}")
    saved = onnxlab.load(model.save(tmp_path / "w.onnx"))
    np.testing.assert_array_equal(np.asarray(saved.tensor("b")), FLOATS["b"])


def test_bytes_of_a_file_of_weights_open_too(tmp_path: Path) -> None:
    data = onnxlab.load(model_of(**FLOATS)).files.save_weights(tmp_path / "w.safetensors").read_bytes()
    np.testing.assert_array_equal(np.asarray(onnxlab.load(data).tensor("half")), FLOATS["half"])


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".ckpt"])
def test_sparse_initializers_that_are_left_out_are_named(suffix: str, tmp_path: Path) -> None:
    model = model_of(b=FLOATS["b"])
    values = numpy_helper.from_array(np.ones(2, np.float32), "thin")
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([0, 3])), [5])
    )
    files = onnxlab.load(model).files
    with pytest.warns(SaveWarning, match="sparse initializers are not written: .*thin"):
        path = files.save_weights(tmp_path / f"w{suffix}")
    assert path.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files.save_weights(tmp_path / f"chosen{suffix}", names=["b"])
