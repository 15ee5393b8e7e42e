import ml_dtypes
import numpy as np
import pytest

import onnxlab
from onnxlab import dtypes
from onnxlab.errors import FeedError
from onnxlab.execution.program.feeds import check_names, convert
from onnxlab.graph import edits
from onnxlab.shapes import UNKNOWN, OptionalFact, SequenceFact, symbol, tensor
from tests.execution.support.models import runner

N, M = symbol("n"), symbol("m")
IMAGE = tensor(dtypes.FLOAT, N, 3)


@pytest.mark.parametrize("value", [[[1, 2, 3]], ((1.5, 2, 3),), np.ones((1, 3), ">f4"), np.ma.ones((1, 3), np.float32)])
def test_what_is_no_array_takes_the_declared_dtype(value):
    array = convert({"x": value}, {"x": IMAGE})["x"]
    assert type(array) is np.ndarray
    assert (array.dtype, array.shape) == (np.float32, (1, 3))
    assert array.dtype.isnative


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((1, 3)), r"'x' takes float32\[n,3\]; given float64\[1,3\]; convert it with \.astype\('float32'\)"),
        (np.ones(3, np.float32), r"given float32\[3\]; it must have rank 2"),
        (np.ones((1, 4), np.float32), r"given float32\[1,4\]; axis 1 must be 3, not 4"),
        ([[1, 2], [3]], r"takes float32\[n,3\]; given list \("),
        ("word", r"given str"),
        (None, r"given none; give an array"),
        ({"a": 1}, r"given map of 1"),
    ],
)
def test_a_misfit_says_what_was_given_and_expected(value, message):
    with pytest.raises(FeedError, match=message):
        convert({"x": value}, {"x": IMAGE})


def test_a_symbol_means_the_same_size_in_every_input():
    facts = {"x": tensor(dtypes.FLOAT, N), "y": tensor(dtypes.FLOAT, N), "z": tensor(dtypes.FLOAT, N + M)}
    ones = np.ones(4, np.float32)
    with pytest.raises(FeedError, match=r"'y' .* axis 0 is n, which is 4 in input 'x'"):
        convert({"x": ones, "y": np.ones(5, np.float32)}, facts)
    convert({"x": ones, "z": np.ones(9, np.float32)}, facts)  # m may be 5
    facts["m"] = tensor(dtypes.FLOAT, M)
    with pytest.raises(FeedError, match=r"axis 0 must be m \+ n = 8, not 9"):
        convert({"x": ones, "m": ones, "z": np.ones(9, np.float32)}, facts)


def test_strings_sequences_and_optionals():
    facts = {
        "s": tensor(dtypes.STRING, 2),
        "q": SequenceFact(tensor(dtypes.INT64, N)),
        "o": OptionalFact(tensor(dtypes.BOOL)),
        "u": UNKNOWN,
    }
    arrays = convert({"s": ["a", "b"], "q": [[1, 2], [3]], "o": None, "u": {1: 2}}, facts)
    assert arrays["s"].dtype == object
    assert [item.dtype for item in arrays["q"]] == [np.int64, np.int64]
    assert (arrays["o"], arrays["u"]) == (None, {1: 2})
    with pytest.raises(FeedError, match=r"takes seq\(int64\[n\]\); given int64\[1\]; give a list of arrays"):
        convert({"q": np.array([1])}, facts)


def test_an_exotic_dtype_is_told_apart_from_its_storage():
    fact = {"x": tensor(dtypes.BFLOAT16, 2)}
    assert convert({"x": [1, 2]}, fact)["x"].dtype == ml_dtypes.bfloat16
    with pytest.raises(FeedError, match="bfloat16"):
        convert({"x": np.ones(2, np.uint16)}, fact)


def test_an_unknown_name_lists_the_inputs():
    with pytest.raises(
        FeedError, match=r"no value is called 'imag'; the inputs are 'image' float32\[n,3\]; did you mean 'image'"
    ):
        check_names(["imag"], {"image": IMAGE}, ["image", "features"])


def test_kept_inputs_are_checked_again_where_the_model_declares_others():
    run = runner("g (float[n, 4] x) => (float[n, 4] y) { y = Neg (x) }")
    run.run({"x": np.ones((2, 4), np.float32)})
    assert run.run()["y"].shape == (2, 4)
    edits.set_shape(run.graph, run.graph.values[run.graph.main.names["x"]], [3, 4])
    with pytest.raises(FeedError, match="axis 0 must be 3, not 2"):
        run.run()
    run.graph.undo()
    assert run.run()["y"].tolist() == [[-1] * 4] * 2


class Unwilling:
    def __array__(self, dtype=None, copy=None):
        raise OSError("no array today")


def test_the_mask_of_an_array_is_not_dropped():
    model = onnxlab.load()
    image = np.ma.masked_array(np.ones((1, 1, 8, 8), np.float32))
    (plain,) = model.run({"image": image}).values()
    np.testing.assert_array_equal(plain, model.run({"image": image.data})["probabilities"])
    image[0, 0, 1, 1] = np.ma.masked
    for _ in range(3):
        with pytest.raises(FeedError, match=r"'image' takes float32.*given float32.*masked.*\.filled\(0\)"):
            model.run({"image": image})
        model.run({"image": image.filled(0)})


def test_arrays_of_bytes_are_texts_in_utf_8():
    run = runner("g (string[n] x) => (string[n] y) { y = StringConcat (x, x) }")
    for _ in range(3):
        results = run.run({"x": np.array(["é".encode(), b"ab", b""])})
        assert results["y"].tolist() == ["éé", "abab", ""]
        with pytest.raises(FeedError, match=r"'x' takes string.*'utf-8' codec can't decode"):
            run.run({"x": np.array([b"ab", b"\xff"])})


def test_an_object_that_cannot_become_an_array_is_a_misfit():
    with pytest.raises(FeedError, match=r"given Unwilling \(no array today\); give an array"):
        convert({"x": Unwilling()}, {"x": IMAGE})
