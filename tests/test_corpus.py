"""The corpus is worth testing on: complete, the same everywhere, and its models answer to their inputs."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.support import packed
from tests.support.corpus import NAMES, Corpus, alone, inputs
from tests.support.oracle import Oracle

# Their outputs hardly react to normal input, or have few values: good for shapes and pictures only.
DULL = {"light_densenet121", "light_resnet50", "light_shufflenet", "light_squeezenet", "deep_chain_12k"}
FEW_OUTCOMES = {"surfaces_tree", "tashkeel_ensemble_int8"}

# SHA-256 of the rebuilt files, so that every machine tests the same bytes.
DIGESTS = {
    "bert_base": "75a06c0ce2f4c4e905fc827281655c64fed3e194056b4c172fedb720d479995e",
    "deep_chain_12k": "d1f3c7a352e870f1b54c9ea73d133569daf483354c4367673f943099a927fb2d",
    "functions_ts": "d0fd9286ec3a6f0bc22a9c31faecbdb4525aa5307408cd33fb4b9678c0dc4039",
    "gpt2_kv": "5bd7bbe9ba9ac12084ef0f010630af4ec1c41205800f39eb1f69c5a3666b4fab",
    "llama12_dyn_ext": "c123af83f35bb26f8ba40ec6cf77807b3fcc19eeac44db77c13494bf6cca9aed",
    "lstm_gru": "7ac5f0d5722608a43089c614fd72a2d378ce7db5ca959e8d8013f98c534890d2",
    "mobilenet_fp16": "32aeb058d91497b7d6d197b3a3ca9574eff8ecec2d18eb56c166e93e446b1aaf",
    "resnet101_qdq": "b7a0b6fcd58c30605d3069827fe0ffbeaf9e3a744b5042bc148c6b7434c21a9c",
    "resnet50": "3a95a83d17d6a6567f68ee4e0faf71d31cc101a8d7f8fa659a9f373c8ec6ef13",
    "swin_s": "da388c83f07bfe6e1cbecbecd916cf572851a8ed15c525590f83179f79312483",
    "whisper_encoder": "2ca73020444bd550111cc9ddc00b04924ce9a52531b82cb41d94c9cec5ce6fa8",
}


def test_all_33_are_there(corpus: Corpus) -> None:
    assert len(corpus) == len(set(NAMES)) == 33
    for path in corpus.values():
        onnx.load(path, load_external_data=False)


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_rebuilt_bytes_are_the_same_everywhere(name: str, tmp_path: Path) -> None:
    folder = packed.rebuild(name, tmp_path).parent
    content = b"".join(file.read_bytes() for file in sorted(folder.glob("model*")))
    assert hashlib.sha256(content).hexdigest() == DIGESTS[name]


def test_every_packed_model_has_a_digest() -> None:
    assert sorted(DIGESTS) == [name for name in packed.NAMES if list(packed.STORE.glob(f"{name}.onnx.xz"))]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_finite_and_follow_the_inputs(
    name: str, corpus: Corpus, feeds: Callable[[str], dict[str, np.ndarray]], ort_run: Oracle
) -> None:
    first = ort_run(corpus[name], feeds(name))
    floats = [a.astype("f8") for a in first.values() if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    assert all(np.isfinite(array).all() for array in floats)
    if name not in DULL | FEW_OUTCOMES:
        second = ort_run(corpus[name], inputs(name, corpus[name], seed=1))
        assert any(changed(first[output], second[output]) for output in first)


def changed(first: object, second: object) -> bool:
    """Tell whether two outputs differ: floats by more than 1 % of the largest magnitude."""
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray) or first.dtype.kind != "f":
        return repr(first) != repr(second)
    if first.shape != second.shape:
        return True
    return bool(np.abs(first - second).max() > 0.01 * np.abs(first).max())


def test_recipe_survives_its_own_encoding_and_draws_what_it_says() -> None:
    recipe = packed.Recipe("n", 7, 0.5, 0.25)
    assert packed.Recipe.decode(recipe.encode()) == recipe
    values = np.frombuffer(recipe.draw(10_000, "<f4"), "<f4")
    assert abs(values.mean() - 0.5) < 0.01
    assert abs(values.std() - 0.25) < 0.01


def test_packing_replaces_random_weights_only(tmp_path: Path) -> None:
    random = np.random.RandomState(0).standard_normal((64, 64)).astype("f4")
    table = np.arange(4096, dtype="f4")
    graph = onnx.helper.make_graph(
        [],
        "g",
        [],
        [],
        initializer=[onnx.numpy_helper.from_array(random, "w"), onnx.numpy_helper.from_array(table, "t")],
    )
    onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
    stored = packed.pack(tmp_path / "model.onnx")
    model = onnx.load_from_string(packed.unpack(stored)[0])
    w, t = (onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    assert len(stored) < 6000
    np.testing.assert_array_equal(t, table)
    assert not np.array_equal(w, random)
    assert abs(w.std() - random.std()) < 0.05


def test_oracle_gives_any_value_and_computes_once(ort_run: Oracle, corpus: Corpus) -> None:
    feed = inputs("resnet50", corpus["resnet50"])
    inner = onnx.load(corpus["resnet50"]).graph.node[3].output[0]
    first = ort_run(corpus["resnet50"], feed, [inner])
    assert list(first) == [inner]
    assert ort_run(corpus["resnet50"], feed, [inner])[inner] is first[inner]


def test_data_files_that_are_hard_links_are_copied(tmp_path: Path) -> None:
    model, data, other = (tmp_path / name for name in ("model.onnx", "model.onnx.data", "other"))
    other.write_bytes(b"elements")
    data.hardlink_to(other)
    assert alone(model) == model
    assert (data.read_bytes(), data.stat().st_nlink) == (b"elements", 1)


def test_the_oracle_remembers_no_more_than_a_number_of_bytes() -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
    model, oracle = onnx.parser.parse_model(text).SerializeToString(), Oracle(most=1000)
    first = oracle(model, {"x": np.ones(100, np.float32)})["y"]
    assert oracle(model, {"x": np.ones(100, np.float32)})["y"] is first
    for size in (101, 102, 103):
        assert oracle(model, {"x": np.ones(size, np.float32)})["y"].size == size
        assert oracle.nbytes <= 1000
    assert oracle(model, {"x": np.ones(100, np.float32)})["y"] is not first
    assert oracle(model, {"x": np.ones(1000, np.float32)})["y"].size == 1000
    assert oracle.nbytes == 0
