"""Models to start from: onnx's node cases, small models of the corpus and models made to hurt inference."""

import functools
import warnings
from dataclasses import dataclass, field

import numpy as np
import onnx

LARGEST = 60_000  # bytes
CORPUS = ("digits", "script_control", "string_ops", "logreg_iris", "surfaces_tree", "surfaces_mlp", "stft_audio")
HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class Base:
    """A model and one set of inputs for it."""

    name: str
    data: bytes
    feeds: dict = field(default_factory=dict)

    @property
    def is_halves_in_steps(self):
        """Whether it computes in 16 bits by several operators, after each of which NumPy rounds and Numba need not."""
        return "expanded" in self.name and any(getattr(x, "dtype", None) in HALVES for x in self.feeds.values())


@functools.cache
def bases():
    """All of them; models of the corpus many times, so that they are drawn as often as a third of the cases."""
    cases = list(node_cases())
    models = list(corpus_models())
    return [*cases, *models * (len(cases) // len(models) // 3)]


@functools.cache
def node_cases():
    """The cases of onnx's operators, with tensors as inputs."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    collected = []
    for case in cases:
        data = case.model.SerializeToString()
        if len(data) > LARGEST:
            continue
        inputs = case.data_sets[0][0] if case.data_sets else []
        names = [value.name for value in case.model.graph.input]
        arrays = [onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x for x in inputs]
        feeds = dict(zip(names, arrays, strict=False))
        if sum(array.nbytes for array in feeds.values() if isinstance(array, np.ndarray)) < 1 << 20:
            collected.append(Base(case.name, data, feeds))
    return collected


@functools.cache
def corpus_models():
    from onnxlab.model.opening import EXAMPLE
    from tests.support.corpus import inputs, path

    places = [(name, EXAMPLE if name == "digits" else path(name)) for name in CORPUS]
    return [Base(name, place.read_bytes(), inputs(name, place)) for name, place in places]


@functools.cache
def plain_cases():
    """Node cases whose inputs are arrays of numbers: for feeds and numbers."""
    return [base for base in [*node_cases(), *corpus_models() * 20] if base.feeds and _numeric(base)]


def _numeric(base):
    return all(isinstance(array, np.ndarray) and array.dtype.kind in "fiub" for array in base.feeds.values())
