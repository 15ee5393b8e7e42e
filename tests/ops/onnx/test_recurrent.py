import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
