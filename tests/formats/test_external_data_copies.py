"""External data in saves elsewhere: all that is used, at its place, and nothing besides."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import SaveError

SIZE = 30_000


def chain(count: int = 4, body: bool = False) -> onnx.ModelProto:
    """y = x + w0 + w1 + …; with `body` the last one is an initializer in the branches of an If."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIZE]) for name in "xy")
    arrays = [np.random.default_rng(number).random(SIZE, np.float32) for number in range(count)]
    stored = [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(arrays)]
    values = ["x", *(f"v{number}" for number in range(1, count)), "y"]
    nodes = [helper.make_node("Add", [values[i], f"w{i}"], [values[i + 1]], f"add{i}") for i in range(count)]
    if body:
        inner = stored.pop()
        nodes.pop()
        output = helper.make_tensor_value_info("z", TensorProto.FLOAT, [SIZE])
        branches = []
        for name in ("a", "b"):
            weight = onnx.TensorProto()
            weight.CopyFrom(inner)
            weight.name = f"inner_{name}"
            add = helper.make_node("Add", [values[count - 1], weight.name], ["z"])
            branches.append(helper.make_graph([add], name, [], [output], [weight]))
        stored.append(numpy_helper.from_array(np.array(True), "yes"))
        nodes.append(helper.make_node("If", ["yes"], ["y"], "if", then_branch=branches[0], else_branch=branches[1]))
    graph = helper.make_graph(nodes, "chain", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def stored_at(path: Path, model: onnx.ModelProto, location: str = "w.bin") -> Path:
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=1024)
    return path


def answers(path: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": np.zeros(SIZE, np.float32)})[0])


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.suffix != ".onnx"}


def total(indices: Iterable[int]) -> np.ndarray:
    return np.asarray(np.sum([np.random.default_rng(index).random(SIZE, np.float32) for index in indices], 0))


@pytest.mark.parametrize("body", [False, True])
def test_a_part_takes_the_data_along_that_it_uses(tmp_path: Path, body: bool) -> None:
    model = onnxlab.load(stored_at(tmp_path / "a" / "m.onnx", chain(body=body)))
    (tmp_path / "b").mkdir()
    last = "if" if body else "add3"
    part = model.extract(outputs=["y"], inputs=[model.nodes[last].proto.input[0] if not body else "v3"])
    renamed = "v3"
    part.value(renamed).name = "x"
    saved = part.save(tmp_path / "b" / "part.onnx")
    nbytes = SIZE * 4
    assert sum(sizes(tmp_path / "b").values()) <= (2 if body else 1) * nbytes + 4096
    np.testing.assert_allclose(answers(saved), total([3]), rtol=1e-6)
    onnx.checker.check_model(str(saved), full_check=True)
    # the live model is saved again without another copy
    part.metadata["k"] = "v"
    before = sizes(tmp_path / "b")
    assert part.files.save_report()[0].path.startswith("metadata_props")
    assert len(part.files.save_report()) == 1
    part.save()
    assert sizes(tmp_path / "b") == before
    np.testing.assert_allclose(answers(saved), total([3]), rtol=1e-6)
    np.testing.assert_allclose(part.run({"x": np.zeros(SIZE, np.float32)})["y"], total([3]), rtol=1e-6)


def test_what_an_edit_removed_stays_behind_and_comes_back_with_an_undo(tmp_path: Path) -> None:
    model = onnxlab.load(stored_at(tmp_path / "a" / "m.onnx", chain()))
    whole = model.to_bytes()
    (tmp_path / "b").mkdir()
    with model.edit("drop"):
        model.nodes["add1"].remove(bypass=True)
        model.drop_unused_initializers()
    saved = model.save(tmp_path / "b" / "m.onnx")
    assert sum(sizes(tmp_path / "b").values()) <= 3 * SIZE * 4 + 3 * 4096
    np.testing.assert_allclose(answers(saved), total([0, 2, 3]), rtol=1e-6)
    model.undo()
    assert model.save().read_bytes() == whole
    np.testing.assert_allclose(answers(saved), total(range(4)), rtol=1e-6)


def test_an_undo_beside_other_edits_writes_only_what_is_new(tmp_path: Path) -> None:
    model = onnxlab.load(stored_at(tmp_path / "a" / "m.onnx", chain()))
    (tmp_path / "b").mkdir()
    model.metadata["k"] = "v"
    with model.edit("drop"):
        model.nodes["add1"].remove(bypass=True)
        model.drop_unused_initializers()
    saved = model.save(tmp_path / "b" / "m.onnx")
    before = sizes(tmp_path / "b")
    model.undo()
    model.save()
    added = {name: size for name, size in sizes(tmp_path / "b").items() if name not in before}
    assert sum(added.values()) <= SIZE * 4 + 4096
    np.testing.assert_allclose(answers(saved), total(range(4)), rtol=1e-6)


def test_a_file_that_is_used_as_a_whole_is_copied_as_it_is(tmp_path: Path) -> None:
    model = onnxlab.load(stored_at(tmp_path / "a" / "m.onnx", chain()))
    model.metadata["k"] = "v"
    (tmp_path / "b").mkdir()
    model.save(tmp_path / "b" / "m.onnx")
    assert (tmp_path / "b" / "w.bin").read_bytes() == (tmp_path / "a" / "w.bin").read_bytes()
    assert [change.path for change in onnxlab.load(tmp_path / "b" / "m.onnx").files.save_report()] == []


def test_in_its_own_folder_unused_data_goes_when_asked(tmp_path: Path) -> None:
    file = stored_at(tmp_path / "a" / "m.onnx", chain())
    model = onnxlab.load(file)
    with model.edit("drop"):
        model.nodes["add1"].remove(bypass=True)
        model.drop_unused_initializers()
    model.save()
    assert list(sizes(tmp_path / "a")) == ["w.bin"]  # other models may need it
    model.save(external_data=True)
    model.save(external_data=True)
    assert set(sizes(tmp_path / "a")) == {"w.bin", "m.onnx.data"}
    (tmp_path / "a" / "w.bin").unlink()
    np.testing.assert_allclose(answers(file), total([0, 2, 3]), rtol=1e-6)


def test_new_data_does_not_take_the_name_of_what_comes_along(tmp_path: Path) -> None:
    model = onnxlab.load(stored_at(tmp_path / "a" / "m.onnx", chain(1), "m.onnx.data"))
    (tmp_path / "b").mkdir()
    model.add_initializer("more", np.ones(SIZE, np.float32))
    saved = model.save(tmp_path / "b" / "m.onnx", external_data=True)
    again = onnxlab.load(saved)
    np.testing.assert_array_equal(again.value("more").array, np.ones(SIZE, np.float32))
    np.testing.assert_array_equal(again.value("w0").array, total([0]))
    with pytest.raises(SaveError, match="name another one"):
        model.save(tmp_path / "b" / "n.onnx", external_data="n.onnx")
    (tmp_path / "c").mkdir()
    with pytest.raises(SaveError, match="a data file of that name"):
        model.save(tmp_path / "c" / "m.onnx.data")
    assert not list((tmp_path / "c").iterdir())


def test_a_data_file_that_is_cut_off_is_not_copied(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    infos = [helper.make_tensor_value_info(name, 1, [1, 64]) for name in "xy"]
    proto = helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:], [tensor]))
    (tmp_path / "in").mkdir()
    onnx.save(proto, tmp_path / "in/m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    os.truncate(tmp_path / "in/m.data", 100)
    model = onnxlab.load(tmp_path / "in/m.onnx")
    for part in (model, model.extract("h")):
        with pytest.raises(onnxlab.OnnxlabError, match="which has only 100: the file is cut off"):
            part.save(tmp_path / "part.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
