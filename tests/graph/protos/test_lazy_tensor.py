"""Tensors read where they are touched: what NumPy gives for any index, and not a byte more than that needs."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.lazy_tensor import LazyTensor

SHAPE = (4, 3, 5)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with w.bin: four bytes of something, then SHAPE floats."""
    folder = tmp_path_factory.mktemp("lazy")
    (folder / "w.bin").write_bytes(b"----" + np.arange(60, dtype=np.float32).tobytes())
    return folder


def external(
    shape: tuple[int, ...] = SHAPE, elem_type: int = TensorProto.FLOAT, name: str = "w.bin", offset: int = 4
) -> Any:
    tensor = TensorProto(name="w", dims=shape, data_type=elem_type, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", str(offset))):
        tensor.external_data.add(key=key, value=value)
    return tensor


def bounds(size: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(-size - 2, size + 2)


@st.composite
def indices(draw: Any) -> Any:
    parts = []
    for size in SHAPE[: draw(st.integers(0, 3))]:
        step = draw(st.sampled_from((None, None, 1, 2, -1)))
        parts.append(draw(st.integers(-size, size - 1) | st.builds(slice, bounds(size), bounds(size), st.just(step))))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), draw(st.sampled_from((..., None))))
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@given(index=indices())
def test_every_index_gives_what_numpy_gives(index: Any, stored: Path) -> None:
    array = np.arange(60, dtype=np.float32).reshape(SHAPE)
    lazy = LazyTensor(external(), stored)
    try:
        expected = array[index]
    except IndexError:  # behind an ellipsis an index counts another axis than it was drawn for
        with pytest.raises(IndexError):
            lazy[index]
    else:
        np.testing.assert_array_equal(lazy[index], expected)
    assert (lazy.shape, lazy.dtype, len(lazy), lazy.ndim, lazy.size) == (SHAPE, np.float32, 4, 3, 60)


@pytest.mark.parametrize("elem_type", sorted(set(dtypes.ELEM_TYPES) - {dtypes.STRING}))
def test_elements_of_every_type_from_anywhere(elem_type: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(elem_type)
    count = 27
    data = rng.integers(0, 2 if elem_type == dtypes.BOOL else 256, (count * dtypes.bits(elem_type) + 7) // 8, np.uint8)
    (tmp_path / "w.bin").write_bytes(data.tobytes())
    tensor = external((count,), elem_type, offset=0)
    whole = tensors.to_array(tensor, tmp_path)
    lazy = LazyTensor(tensor, tmp_path)
    for start in range(count):
        for length in (0, 1, 2, 9, count - start):
            elements = lazy.elements(start, min(length, count - start))
            assert elements.tobytes() == whole[start : start + length].tobytes()
            assert elements.dtype == whole.dtype


def test_it_reads_no_more_than_it_needs(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real = external_data.read

    def noted(*args: Any) -> Any:
        reads.append(args[4])
        return real(*args)

    monkeypatch.setattr(external_data, "read", noted)
    lazy = LazyTensor(external(), stored)
    assert lazy[3, 2, 4] == 59
    assert lazy[1:3].shape == (2, 3, 5)
    assert lazy[2, 1].tolist() == [35, 36, 37, 38, 39]
    assert lazy[0, :2, 1].tolist() == [1, 6]
    assert max(reads) <= 4 * (30 + 8)
    assert reads[0] <= 4 * 8


def test_what_is_inside_the_model_and_scalars_and_strings() -> None:
    inside = tensors.from_array(np.arange(6).reshape(2, 3), "inside")
    assert LazyTensor(inside, None)[1, 2] == 5
    assert np.asarray(LazyTensor(inside, None), np.float32).dtype == np.float32
    words = tensors.from_array(np.array(["a", "b"], object), "words")
    assert LazyTensor(words, None)[1] == "b"
    scalar = LazyTensor(tensors.from_array(np.array(3.0), "scalar"), None)
    assert scalar[()] == 3.0
    with pytest.raises(TypeError, match="is a scalar"):
        len(scalar)


@pytest.mark.parametrize(
    ("tensor", "touch", "error", "message"),
    [
        (external(), lambda lazy: lazy[4], IndexError, "index 4 is outside of axis 0"),
        (external(), lambda lazy: lazy.elements(59, 2), IndexError, "which has 60"),
        (external(offset=8), lambda lazy: lazy[0], LoadError, "only 244: the file is cut off"),
        (external(name="../w.bin"), lambda lazy: lazy[0], LoadError, "goes up with"),
        (external((-1,)), None, LoadError, "dimensions are at least 0"),
        (external((1,), 99), None, LoadError, "element type 99"),
        (external((1 << 62, 1 << 62)), lambda lazy: lazy[0, 0], LoadError, "only 244"),
    ],
)
def test_what_cannot_be_read_says_why(
    tensor: onnx.TensorProto, touch: Any, error: Any, message: str, stored: Path
) -> None:
    def act() -> None:
        lazy = LazyTensor(tensor, stored)
        if touch:
            touch(lazy)

    with pytest.raises(error, match=message):
        act()


def test_a_file_that_shrinks_meanwhile_gives_an_error(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(4 + 240))
    lazy = LazyTensor(external(), tmp_path)
    assert lazy[3, 2, 4] == 0
    path.write_bytes(bytes(100))
    with pytest.raises(LoadError, match="only 100"):
        lazy[0]
