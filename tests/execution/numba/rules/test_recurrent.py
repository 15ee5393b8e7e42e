"""Recurrent layers against NumPy's and onnxruntime's: directions, lengths, states, activations, layouts."""

import numpy as np
import pytest

from tests.execution.support.integer_operands import integers, normal, oracle
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, assert_close, check

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = ("forward", "reverse", "bidirectional")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def layer(rng, op_type, steps, batch, width, hidden, direction="forward", parts="", **attributes):
    """(model, feeds) of one layer; `parts` says what it is given: b, l(engths), h, c, p."""
    directions, gates = 1 + (direction == "bidirectional"), GATES[op_type]
    recipe = Recipe()
    swapped = attributes.get("layout", 0)
    feeds = {"x": normal(rng, *((batch, steps, width) if swapped else (steps, batch, width)))}
    inputs = [recipe.input("x", feeds["x"])]
    scale = np.float32(np.sqrt(hidden + 1))
    inputs += [recipe.constant(normal(rng, directions, gates * hidden, rows) / scale) for rows in (width, hidden)]
    inputs.append(recipe.constant(normal(rng, directions, 2 * gates * hidden) / 4) if "b" in parts else "")
    if "l" in parts:
        feeds["l"] = rng.integers(1, steps + 1, batch).astype(np.int32)
    state = (batch, directions, hidden) if swapped else (directions, batch, hidden)
    for name in "hc"[: 2 if op_type == "LSTM" else 1]:
        if name in parts:
            feeds[name] = normal(rng, *state) / 2
    inputs += [recipe.input(name, feeds[name]) if name in feeds else "" for name in "lhc"[: 3 if gates == 4 else 2]]
    if "p" in parts:
        inputs.append(recipe.constant(normal(rng, directions, 3 * hidden) / 4))
    recipe.node(op_type, *inputs, hidden_size=hidden, direction=direction, **attributes)
    results = ["v0", "h_last", "c_last"][: 3 if op_type == "LSTM" else 2]
    recipe.nodes[-1].output.extend(results[1:])
    return recipe.model(*results), feeds


def both(model_and_feeds, tolerance=4e-6, onnxruntime=True):
    model, feeds = model_and_feeds
    ours = check(model, feeds, tolerance)
    if onnxruntime:
        for name, expected in oracle(model, feeds).items():
            assert_close(ours[name], expected, tolerance, name)


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1, 1), (5, 1, 3, 17), (4, 2, 16, 33), (3, 7, 5, 16), (2, 30, 9, 8), (6, 1, 8, 64)]
)
def test_sizes(rng, op_type, sizes):
    both(layer(rng, op_type, *sizes, direction="bidirectional", parts="b"))


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_lengths_and_states(rng, op_type, direction):
    both(layer(rng, op_type, 6, 5, 7, 19, direction, "blhc"))


def test_empty_sequences_keep_their_state(rng):
    """The state stays as in NumPy; onnxruntime makes it zero."""
    for op_type in GATES:
        model, feeds = layer(rng, op_type, 3, 2, 5, 9, "bidirectional", "blhc")
        both((model, feeds | {"l": np.array([0, 2], np.int32)}), onnxruntime=False)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_peepholes(rng, direction):
    both(layer(rng, "LSTM", 6, 3, 7, 19, direction, "bhcp"))
    both(layer(rng, "LSTM", 6, 3, 7, 19, direction, "lp", input_forget=1), onnxruntime=False)
    both(layer(rng, "LSTM", 4, 3, 5, 1, direction, "bhcp"))


def test_reset_after_the_product(rng):
    for parts in ("", "bh"):
        for batch in (1, 4):
            both(layer(rng, "GRU", 5, batch, 7, 33, "bidirectional", parts, linear_before_reset=1))


def test_batch_first(rng):
    for op_type in GATES:
        both(layer(rng, op_type, 5, 3, 7, 9, "bidirectional", "bhc", layout=1), onnxruntime=False)


@pytest.mark.parametrize(
    "name", ["Relu", "Sigmoid", "Softsign", "Softplus", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
             "HardSigmoid", "Elu"],
)  # fmt: skip
def test_activations(rng, name):
    """Each with the parameters that it takes, and where it has defaults without them."""
    count = {"Affine": 2, "ScaledTanh": 2, "HardSigmoid": 2, "LeakyRelu": 1, "ThresholdedRelu": 1, "Elu": 1}.get(
        name, 0
    )
    for parameter_count in {0, count}:
        values = {"activation_alpha": [0.3] * (parameter_count > 0), "activation_beta": [0.2] * (parameter_count > 1)}
        parameters = {key: value for key, value in values.items() if value}
        model_and_feeds = layer(rng, "LSTM", 3, 2, 5, 11, parts="b", activations=[name, "Tanh", "Tanh"], **parameters)
        both(model_and_feeds, onnxruntime=False)


def test_gates_are_clipped(rng):
    for op_type in GATES:
        both(layer(rng, op_type, 4, 2, 5, 11, parts="bhc", clip=0.1), onnxruntime=False)


@pytest.mark.slow
def test_long_sequences_are_several_records(rng):
    """And threads, of which each takes a direction or some of the batch, change nothing."""
    model, feeds = layer(rng, "LSTM", 900, 40, 3, 64, "bidirectional", "bl")
    runners = Both(model, threads=2)
    ours, theirs = runners.run(feeds)
    for name, expected in theirs.items():
        assert_close(ours[name], expected, 4e-6, name)
    ((plan,),) = [list(plans_of(region).values()) for region in runners.regions()]
    assert len(plan.stages) > 1


def test_outputs_without_readers(rng):
    model, feeds = layer(rng, "LSTM", 4, 2, 5, 11, parts="b")
    del model.graph.output[:2]
    model.graph.node[0].output[0] = ""
    both((model, feeds))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("large", [False, True])
def test_quantized(rng, direction, dtype, large):
    """DynamicQuantizeLSTM: states quantized at each step, as onnxruntime with one thread does."""
    directions = 1 + (direction == "bidirectional")
    for steps, batch, width, hidden in ((1, 1, 5, 3), (5, 2, 16, 16), (4, 3, 7, 33), (3, 9, 8, 20)):
        recipe = Recipe()
        x, zero = normal(rng, steps, batch, width), dtype(0 if dtype == np.int8 else 128)
        inputs = [recipe.input("x", x)]
        for rows in (width, hidden):
            w = integers(rng, np.int8, directions, rows, 4 * hidden, bits=7).astype(np.int16)
            if large:  # two neighbors times 255 are beyond 16 bits, where onnxruntime's sums stop without VNNI
                w[:, 1:5, 2], w[-1, :2, -1] = 127, -128
            w += zero
            inputs.append(recipe.constant(w.astype(dtype)))
        inputs += [recipe.constant(normal(rng, directions, 8 * hidden) / 2), ""]
        inputs += [recipe.constant(normal(rng, directions, batch, hidden) / 4) for _ in range(2)]
        inputs.append("")
        for _ in range(2):
            scale = np.full(directions, 0.01 * rng.random() + 0.002, np.float32)
            inputs += [recipe.constant(scale), recipe.constant(np.full(directions, zero))]
        recipe.node("DynamicQuantizeLSTM", *inputs, hidden_size=hidden, direction=direction, domain="com.microsoft")
        recipe.nodes[-1].output.extend(["h_last", "c_last"])
        both((recipe.model("v0", "h_last", "c_last"), {"x": x}), onnxruntime=not large)
