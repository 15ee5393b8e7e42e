"""Runs in which everything that is computed is off by a rounding: how far a model amplifies the order of its sums."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from onnxlab.execution.base.provider import Part, PartitionView, Step
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning.compiler import FactOf
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import TrialRuns
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops import find_traits
from onnxlab.transforms.verification import RunModel

Array = np.ndarray[Any, Any]

_PERIOD: Final = 1021  # a prime, so that the rows of a matrix are rounded in different ways
_WAYS: Final = 3  # several, since two results may be rounded alike in one way, and a subtraction then hides it
_FLOATS: Final = ("float16", "float32", "float64")


def rounded_runs(graph: ModelGraph, fact: FactOf) -> list[RunModel]:
    """Runs of a model in which each float that a node computes is moved up or down by a rounding, in several ways.

    Whole numbers stay as they are: they are exact as a rule, and often sizes, or arguments of step functions.
    """
    return [TrialRuns(Runner(graph, fact, [_RoundingProvider(way)])) for way in range(_WAYS)]


class _RoundingProvider(NumpyProvider):
    """NumPy with results that are off by a rounding.

    Args:
        way: which results are moved up and which down.
    """

    def __init__(self, way: int) -> None:
        self._way = way

    def compile(self, part: Part, view: PartitionView) -> list[Step]:
        """One step per node, each with the rounding of its results."""
        steps = super().compile(part, view)
        return [_moved(step, node, self._way) for step, node in zip(steps, part.nodes, strict=True)]


def _moved(step: Step, node: NodeView, way: int) -> Step:
    traits = find_traits(node.domain, node.op_type)
    if step.constants is not None or traits.moves_only or traits.category in ("quantization", "control", "sequence"):
        return step
    inner = step.call
    signs = np.random.default_rng((node.id, way)).choice((-1, 1), _PERIOD)

    def call(*arguments: Any) -> Any:
        result = inner(*arguments)
        return tuple(_off(output, signs) for output in result) if isinstance(result, tuple) else _off(result, signs)

    return replace(step, call=call, into=None)


def _off(array: Any, signs: Array) -> Any:
    """An array whose elements are moved by about one unit in their last place, after the pattern of some signs."""
    if not isinstance(array, np.ndarray | np.generic) or str(array.dtype) not in _FLOATS or not array.size:
        return array
    with np.errstate(all="ignore"):
        steps = np.resize(signs, array.shape).astype(array.dtype) * np.finfo(array.dtype).eps
        moved = array + array * steps
        keeps = (array == np.rint(array)) | ~np.isfinite(moved)
    return np.where(keeps, array, moved).astype(array.dtype)
