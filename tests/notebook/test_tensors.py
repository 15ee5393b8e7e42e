"""Numbers of values as the page asks for them, against NumPy; inputs of runs; pins."""

import base64
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from onnx import TensorProto, helper

import onnxlab
from onnxlab.notebook.panels import tensor_planes
from tests.notebook.conftest import Page

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=7)


@given(st.data())
def test_cells_are_the_elements_that_numpy_has_there(data: st.DataObject) -> None:
    array = data.draw(arrays.arrays(np.int32, SHAPES))
    axes = data.draw(st.permutations(range(array.ndim)))[:2]
    at = [data.draw(st.integers(0, dim - 1)) for dim in array.shape]
    plane = tensor_planes.plane(array.shape, *(axes if len(axes) == 2 else (None, None)), at)  # type: ignore[call-arg]
    top, left = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    for row, cells in enumerate(tensor_planes.cells(array, plane, top, left, 3, 3), top):
        for column, cell in enumerate(cells, left):
            where = list(plane.at)
            for axis, index in ((plane.rows, row), (plane.columns, column)):
                if axis >= 0:
                    where[axis] = index
            assert cell == array[tuple(where)]


def test_a_heat_map_is_the_mean_of_blocks_and_shows_what_is_not_finite() -> None:
    array = np.arange(512 * 300, dtype=np.float32).reshape(512, 300)
    picture = tensor_planes.heat(array, tensor_planes.plane(array.shape, None, None, None))
    assert (picture.height, picture.width, picture.channels) == (256, 150, 1)
    means = array.reshape(256, 2, 150, 2).mean((1, 3))
    assert (picture.low, picture.high) == (means.min(), means.max())
    codes = np.frombuffer(picture.data, np.uint8).reshape(256, 150)
    shown = picture.low + (codes - 3.0) / 252 * (picture.high - picture.low)
    assert np.abs(shown - means).max() <= (picture.high - picture.low) / 500
    array[0, 0], array[2, 2], array[4, 4] = np.nan, np.inf, -np.inf
    codes = np.frombuffer(tensor_planes.heat(array, tensor_planes.plane(array.shape, None, None, None)).data, np.uint8)
    assert list(codes.reshape(256, 150)[[0, 1, 2], [0, 1, 2]]) == [
        tensor_planes.NAN,
        tensor_planes.POSITIVE,
        tensor_planes.NEGATIVE,
    ]


def test_an_image_has_its_channels_first_or_last() -> None:
    colors = np.random.default_rng(0).random((3, 20, 30))
    first = tensor_planes.image(colors[None], tensor_planes.plane((1, 3, 20, 30), None, None, None))
    last = tensor_planes.image(colors.transpose(1, 2, 0), tensor_planes.plane((20, 30, 3), None, None, None))
    assert first == last
    assert (first.height, first.width, first.channels) == (20, 30, 3)
    assert tensor_planes.image_axes((1, 4, 20, 30)) is None


def test_stored_values_are_there_at_once_and_others_after_a_run(page: Page, model: onnxlab.Model) -> None:
    weight, pool = model.value("w").id, model.value("p").id
    part = page.ask("tensor", value=weight, height=2, width=2, at=[3, 2, 0, 0], picture="heat")
    assert (part["source"], part["dtype"], part["shape"]) == ("stored", "float32", [4, 3, 3, 3])
    assert (part["cells"], part["at"][:2]) == ([[1.0, 1.0], [1.0, 1.0]], [3, 2])
    assert len(page.buffers[page.last][0]) == 9
    assert page.refused("tensor", value=pool)["code"] == "nothing"
    page.ask("run", nodes=None)
    before = page.ask("tensor", value=pool, height=1, width=1)
    assert (before["source"], before["cells"][0][0]) == ("run", model.values["p"][0, 0, 0, 0])
    model.nodes["/stem/conv"].attributes["pads"] = [0, 0, 0, 0]
    assert page.ask("tensor", value=pool, height=1, width=1) == {**before, "source": "stale"}
    page.ask("run", nodes=[model.nodes["/head/pool"].id])
    assert page.ask("tensor", value=pool)["source"] == "run"


def test_a_pinned_value_stays_in_later_runs(page: Page, model: onnxlab.Model) -> None:
    relu = model.value("r").id
    page.ask("run", nodes=None, inputs={"x": {"how": "ones"}})
    pinned = model.values["r"].copy()
    assert page.ask("pin", value=relu, on=True) == {"pinned": [relu]}
    assert page.ask("snapshot")["pinned"] == [relu]
    page.ask("run", nodes=None, inputs={"x": {"how": "zeros"}})
    assert page.ask("tensor", value=relu)["source"] == "pinned"
    np.testing.assert_array_equal(model.values["p"], pinned.reshape(*pinned.shape[:2], 4, 2, 4, 2).max((3, 5)))
    assert page.ask("pin", value=relu, on=False) == {"pinned": []}
    page.ask("run", nodes=None, inputs={"x": {"how": "zeros"}})
    assert not model.values["p"].any()


def uploaded(page: Page, name: str, data: bytes) -> dict[str, Any]:
    page.ask("upload", file=name, name=name, offset=0, data=base64.b64encode(data).decode())
    return {"how": "file", "file": name}


def identity(dtype: int) -> onnxlab.Model:
    """y = x, of one element."""
    ends = [helper.make_tensor_value_info(name, dtype, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:])
    return onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def test_inputs_are_made_typed_or_read_from_files(page: Page, model: onnxlab.Model) -> None:
    def last(**how: Any) -> np.ndarray[Any, Any]:
        page.ask("run", nodes=None, inputs={"x": how}, sizes={"n": 5})
        return model.runner.last_inputs()["x"]

    assert last(how="random").shape == (5, 3, 8, 8)
    assert last(how="random").std() > 0.5
    assert (last(how="text", text="0.5") == 0.5).all()
    array = np.random.default_rng(1).random((3, 8, 8))
    stored = io.BytesIO()
    np.save(stored, array)
    np.testing.assert_array_equal(last(**uploaded(page, "x.npy", stored.getvalue())), array[None].astype(np.float32))
    several = io.BytesIO()
    np.savez(several, x=array[None], other=array)
    np.testing.assert_array_equal(last(**uploaded(page, "x.npz", several.getvalue())), array[None].astype(np.float32))
    np.testing.assert_array_equal(last(how="last"), array[None].astype(np.float32))
    page.ask("run", nodes=None)
    np.testing.assert_array_equal(model.runner.last_inputs()["x"], array[None].astype(np.float32))


@pytest.mark.parametrize(
    ("dtype", "text", "expected"),
    [
        (TensorProto.INT64, "9007199254740993", 2**53 + 1),
        (TensorProto.INT64, "[9007199254740993]", 2**53 + 1),
        (TensorProto.UINT8, "[255]", 255),
        (TensorProto.BOOL, "true", True),
        (TensorProto.BFLOAT16, "[0.5]", 0.5),
        (TensorProto.FLOAT, "nan", None),
        *(
            (TensorProto.INT8, text, "refused")
            for text in ("300", "[300]", "0.5", "[0.5]", "nan", "[NaN]", "[Infinity]")
        ),
        (TensorProto.UINT8, "[-1]", "refused"),
        (TensorProto.INT4, "[0.5]", "refused"),
        (TensorProto.INT4, "[9]", "refused"),
        (TensorProto.BOOL, "[2]", "refused"),
        (TensorProto.FLOAT, "[" * 5000, "refused"),
    ],
)
def test_typed_numbers_are_exact_or_refused(dtype: int, text: str, expected: Any) -> None:
    page = Page(identity(dtype))
    inputs = {"x": {"how": "text", "text": text}}
    if expected == "refused":
        assert "input 'x'" in page.refused("run", nodes=None, inputs=inputs)["message"]
    else:
        page.ask("run", nodes=None, inputs=inputs)
        (element,) = page.model.runner.last_inputs()["x"]
        assert np.isnan(element) if expected is None else element == expected
    page.session.close()


@pytest.mark.parametrize(
    ("dtype", "array", "expected"),
    [
        (TensorProto.FLOAT, np.asarray([1.5], ">f4"), 1.5),
        (TensorProto.BFLOAT16, np.asarray([0x3FC0], "<u2").view("V2"), 1.5),
        (TensorProto.FLOAT, np.zeros(1, "V2"), "refused"),
        (TensorProto.FLOAT, np.zeros(1, [("a", "f4")]), "refused"),
        (TensorProto.FLOAT, np.zeros(1, "M8[D]"), "refused"),
        (TensorProto.FLOAT, np.asarray([1j]), "refused"),
        (TensorProto.INT8, np.asarray([255], np.uint8), "refused"),
        (TensorProto.STRING, np.asarray([1j]), "refused"),
        (TensorProto.STRING, np.asarray(["a"]), "a"),
    ],
)
def test_arrays_of_files_are_taken_as_what_they_are(dtype: int, array: Any, expected: Any) -> None:
    page = Page(identity(dtype))
    stored = io.BytesIO()
    np.save(stored, array)
    inputs = {"x": uploaded(page, "x.npy", stored.getvalue())}
    if isinstance(expected, str) and expected == "refused":
        assert page.refused("run", nodes=None, inputs=inputs)["code"] == "refused"
    else:
        page.ask("run", nodes=None, inputs=inputs)
        assert page.model.runner.last_inputs()["x"][0] == expected
    page.session.close()


@pytest.mark.parametrize(
    ("inputs", "sizes", "word"),
    [
        ({"z": {"how": "ones"}}, None, "no input 'z'"),
        ({"x": {"how": "magic"}}, None, "random, zeros"),
        ({"x": {"how": "last"}}, None, "no run yet"),
        ({"x": {"how": "text", "text": "1, 2"}}, None, "384 for float32"),
        ({"x": {"how": "text", "text": "[1, [2"}}, None, "no list of numbers"),
        ({"x": {"how": "text", "text": "one"}}, None, "type numbers"),
        ({"x": {"how": "text", "text": "[[1.0]]"}}, None, "rank 4"),
        ({"x": {"how": "file", "file": "none"}}, None, "choose it again"),
        (None, {"n": -1}, "size of n"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_words(page: Page, inputs: Any, sizes: Any, word: str) -> None:
    assert word in page.refused("run", nodes=None, inputs=inputs, sizes=sizes)["message"]


@pytest.mark.parametrize("shape", [(2, 0, 3), (0,), (4, 0), (0, 0, 600, 600)])
def test_a_tensor_without_elements_has_no_cells_and_an_empty_picture(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    axes = (0, len(shape) - 1) if len(shape) > 1 else (None, None)
    plane = tensor_planes.plane(shape, *axes, [3, 1, 3])
    assert tensor_planes.cells(array, plane, 0, 2, 1, 1) == []
    assert tensor_planes.heat(array, plane).data == b""
