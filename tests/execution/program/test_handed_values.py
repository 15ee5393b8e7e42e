"""Values handed over during a run: equal to those of a run that keeps all, and freed meanwhile."""

import weakref
from typing import Any

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.execution.run.runner import Runner
from tests.support import corpus

NAMES = ("rapidocr_cls", "silero_vad_if", "logreg_iris", "gpt2_kv", "resnet101_qdq", "lstm_gru")


def chain(length: int) -> onnxlab.Model:
    nodes = "".join(f"v{number} = Abs(v{number - 1}) " for number in range(1, length + 1))
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[n] v0) => (float[n] v{length}) {{ {nodes} }}'
    return onnxlab.load(onnx.parser.parse_model(text))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("providers", [("numpy",), ("numba", "numpy")])
def test_values_are_those_of_a_run_that_keeps_all(name: str, providers: tuple[str, ...]) -> None:
    path = corpus.path(name)
    model = onnxlab.load(path)
    names = [value.name for value in model.graph.values.values() if value.name in model.graph.main.names]
    feeds = corpus.inputs(name, path)
    runner = Runner(model.graph, model.inference.fact)
    by = runner.by(providers)
    expected = runner.run(feeds, names, keep=False, seed=0, strict=False, by=by)
    arrays: dict[str, Any] = {}

    def take(place: int, value: Any) -> None:
        assert names[place] not in arrays
        arrays[names[place]] = value.copy() if isinstance(value, np.ndarray) else value

    runner.hand(feeds, names, take, seed=0, by=by)
    assert arrays.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(arrays[key], array, err_msg=key)


def test_values_go_after_their_last_reader() -> None:
    model = chain(20)
    names = [f"v{number}" for number in range(21)]
    alive: list[Any] = []
    most = 0

    def take(place: int, value: Any) -> None:
        nonlocal most
        alive.append(weakref.ref(value))
        most = max(most, sum(reference() is not None for reference in alive))

    feeds = {"v0": np.ones(100_000, np.float32)}
    Runner(model.graph, model.inference.fact).hand(feeds, names, take)
    assert len(alive) == 21
    assert most <= 3


def test_memory_of_a_run_that_hands_values_over_is_that_of_one_that_keeps_none() -> None:
    model = chain(40)
    names = [f"v{number}" for number in range(1, 41)]
    feeds = {"v0": np.ones(1 << 20, np.float32)}
    runner = Runner(model.graph, model.inference.fact)
    with pytest.raises(onnxlab.errors.LimitError):
        runner.run(feeds, names, keep=False, limits=onnxlab.Limits(bytes=20 << 20))
    watched: list[int] = []
    runner.hand(feeds, names, lambda place, value: watched.append(place), limits=onnxlab.Limits(bytes=20 << 20))
    assert watched == list(range(40))
