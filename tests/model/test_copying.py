"""Models copied and pickled: the model and its file, without the session around it."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab import OnnxlabError

WAYS = [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]


@pytest.fixture
def model(tmp_path: Path) -> onnxlab.Model:
    path = tmp_path / "m.onnx"
    onnxlab.load().save(path)
    return onnxlab.load(path)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_the_same_model_of_the_same_file(
    model: onnxlab.Model, way: Callable[[onnxlab.Model], onnxlab.Model]
) -> None:
    twin = way(model)
    assert (twin.to_bytes(), twin.path, twin.dirty) == (model.path.read_bytes(), model.path, False)
    twin.nodes[0].name = "renamed"
    assert model.nodes[0].name != "renamed"
    assert twin.save() == model.path


@pytest.mark.parametrize("way", WAYS)
def test_unsaved_edits_go_along_and_stay_unsaved(
    model: onnxlab.Model, way: Callable[[onnxlab.Model], onnxlab.Model], tmp_path: Path
) -> None:
    feeds = model.sample_inputs()
    model.run(feeds)
    model.nodes[0].name = "renamed"
    twin = way(model)
    assert (twin.nodes[0].name, twin.dirty, len(twin.history), len(twin.values)) == ("renamed", True, 0, 0)
    expected, actual = model.run(feeds, exact=True), twin.run(feeds, exact=True)  # kernels of Numba round otherwise
    assert all(np.array_equal(expected[name], actual[name]) for name in expected)
    twin.nodes[1].name = "another"
    assert onnx.load(twin.save(tmp_path / "copy.onnx")).graph.node[0].name == "renamed"
    assert not twin.dirty
    assert model.dirty


@pytest.mark.parametrize("way", WAYS)
def test_external_data_is_found_from_a_copy(tmp_path: Path, way: Callable[[onnxlab.Model], onnxlab.Model]) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [512], np.ones(512, np.float32))
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [512]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:1], info[1:], [weight])
    model = onnxlab.Model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    model.save(tmp_path / "m.onnx", external_data=True)
    twin = way(onnxlab.load(tmp_path / "m.onnx"))
    assert np.array_equal(twin.run({"x": np.ones(512, np.float32)})["y"], np.full(512, 2, np.float32))


def test_handles_are_places_in_their_model(model: onnxlab.Model) -> None:
    node = model.nodes[0]
    assert copy.copy(node) == copy.deepcopy(node) == node
    with pytest.raises(OnnxlabError, match="pickle the Model"):
        pickle.dumps(node)
