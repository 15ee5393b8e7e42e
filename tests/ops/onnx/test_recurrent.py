import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxlab.ops.base.prepared_constants import mark_constant
from tests.ops.support.single_node import agree, floats, run

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@settings(max_examples=40, deadline=None)
@given(
    op_type=st.sampled_from(sorted(GATES)),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    lengths=st.booleans(),
    state=st.booleans(),
    clip=st.booleans(),
    special=st.booleans(),
)
def test_against_onnxruntime(op_type, direction, lengths, state, clip, special):
    steps, batch, width, hidden, d = 5, 3, 4, 6, 2 if direction == "bidirectional" else 1
    gates = GATES[op_type]
    inputs = [
        floats(steps, batch, width),
        floats(d, gates * hidden, width, seed=1),
        floats(d, gates * hidden, hidden, seed=2),
        floats(d, 2 * gates * hidden, seed=3),
        np.array([5, 2, 4], np.int32) if lengths else None,
        floats(d, batch, hidden, seed=4) if state else None,
    ]
    attributes = {"direction": direction, "hidden_size": hidden} | ({"clip": 0.8} if clip else {})
    if op_type == "LSTM":
        inputs += [
            floats(d, batch, hidden, seed=5) if state else None,
            floats(d, 3 * hidden, seed=6) if special else None,
        ]
    if op_type == "GRU":
        attributes["linear_before_reset"] = int(special)
    agree(op_type, *inputs, opset=14, outputs=3 if op_type == "LSTM" else 2, rtol=1e-4, **attributes)


@pytest.mark.parametrize("activation", ["Relu", "HardSigmoid", "ScaledTanh", "Softsign", "Elu", "Affine", "LeakyRelu"])
def test_activations_with_parameters(activation):
    parameters = {"activation_alpha": [0.3], "activation_beta": [0.4]}
    if activation in ("Relu", "Softsign"):
        parameters = {}
    elif activation in ("Elu", "LeakyRelu"):
        parameters = {"activation_alpha": [0.3]}
    agree("RNN", floats(4, 2, 3), floats(1, 5, 3), floats(1, 5, 5) * 0.3, opset=14, outputs=2, hidden_size=5, rtol=1e-4,
          activations=[activation], **parameters)  # fmt: skip


def test_batch_first_is_the_same_transposed():
    x, w, r = floats(4, 2, 3), floats(1, 15, 3), floats(1, 15, 5)
    y, last = run("GRU", x, w, r, opset=14, outputs=2, hidden_size=5)
    swapped, swapped_last = run("GRU", x.swapaxes(0, 1), w, r, opset=14, outputs=2, hidden_size=5, layout=1)
    np.testing.assert_allclose(swapped, y.transpose(2, 0, 1, 3), rtol=1e-6)
    np.testing.assert_allclose(swapped_last, last.swapaxes(0, 1), rtol=1e-6)


def test_unknown_activation_is_named():
    with pytest.raises(ValueError, match="activation 'Sinus' is unknown"):
        run("RNN", floats(1, 1, 2), floats(1, 3, 2), floats(1, 3, 3), opset=14, hidden_size=3, activations=["Sinus"])


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_products_of_few_and_of_many_rows(op_type, direction, batch):
    hidden, d, gates = 7, 2 if direction == "bidirectional" else 1, GATES[op_type]
    weights = [floats(d, gates * hidden, width, seed=width) for width in (3, hidden)]
    inputs = [floats(6, batch, 3), *weights, floats(d, 2 * gates * hidden, seed=3), None, floats(d, batch, hidden)]
    attributes = {"linear_before_reset": 1} if op_type == "GRU" else {}
    agree(op_type, *inputs, opset=14, outputs=2, hidden_size=hidden, direction=direction, rtol=1e-4, **attributes)


def layer(op_type, dtype=np.float32, steps=4, batch=2, direction="bidirectional", hidden=5):
    """Inputs and attributes whose gates are sigmoids, as exporters write them."""
    d, gates = 2 if direction == "bidirectional" else 1, GATES[op_type]
    states = [floats(d, batch, hidden, seed=place) for place in range(2 if op_type == "LSTM" else 1)]
    inputs = [
        floats(steps, batch, 3),
        *(floats(d, gates * hidden, width, seed=width) for width in (3, hidden)),
        floats(d, 2 * gates * hidden, seed=3),
        None,
        *states,
    ]
    attributes = {"hidden_size": hidden, "direction": direction, "outputs": 3 if op_type == "LSTM" else 2, "opset": 14}
    attributes |= {"linear_before_reset": 1} if op_type == "GRU" else {}
    return [None if array is None else array.astype(dtype) for array in inputs], attributes


@pytest.mark.parametrize("scale", [50, 1e4, 1e30])
@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_gates_that_are_quite_open_or_shut(op_type, scale):
    (x, *rest), attributes = layer(op_type)
    agree(op_type, x * np.float32(scale), *rest, rtol=1e-4, **attributes)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 5, -1])
@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_what_is_no_number_stays_in_its_sequence(op_type, place, odd):
    inputs, attributes = layer(op_type)
    plain = run(op_type, *inputs, **attributes)
    inputs[place][0, 1, 2] = odd
    for y, expected in zip(run(op_type, *inputs, **attributes), plain, strict=True):
        np.testing.assert_array_equal(y[..., 0, :], expected[..., 0, :])
        assert np.isnan(odd) <= np.isnan(y[..., 1, :]).any()


@pytest.mark.parametrize(("steps", "batch", "hidden"), [(0, 2, 5), (3, 0, 5), (0, 0, 5), (3, 2, 0), (1, 1, 1)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_shapes_of_layers_of_nothing(op_type, direction, steps, batch, hidden):
    inputs, attributes = layer(op_type, steps=steps, batch=batch, direction=direction, hidden=hidden)
    y, *states = run(op_type, *inputs, **attributes)
    d = 2 if direction == "bidirectional" else 1
    assert y.shape == (steps, d, batch, hidden)
    for state, first in zip(states, inputs[5:], strict=True):
        assert state.shape == (d, batch, hidden)
        if not steps:
            np.testing.assert_array_equal(state, first)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-5), (np.float16, 2e-2)])
@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_other_floats_are_as_float32(op_type, dtype, rtol):
    inputs, attributes = layer(op_type, dtype)
    results = run(op_type, *inputs, **attributes)
    wide = run(op_type, *(None if array is None else array.astype(np.float32) for array in inputs), **attributes)
    for y, expected in zip(results, wide, strict=True):
        assert y.dtype == dtype
        np.testing.assert_allclose(y, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("op_type", ["GRU", "LSTM"])
def test_inputs_and_constants_stay_as_they_are(op_type):
    inputs, attributes = layer(op_type)
    before = [None if array is None else array.copy() for array in inputs]
    first = run(op_type, *inputs, **attributes)
    for array in inputs[1:4]:
        mark_constant(array)
    for _ in range(2):  # the second time with what was prepared
        for y, expected in zip(run(op_type, *inputs, **attributes), first, strict=True):
            np.testing.assert_array_equal(y, expected)
    for array, expected in zip(inputs, before, strict=True):
        assert (array is None and expected is None) or np.array_equal(array, expected)
