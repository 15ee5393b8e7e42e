"""One case of every operator with one input spoilt at a time: it runs, or says what is wrong in operators' words."""

import re

import numpy as np
import onnx
import pytest

from onnxlab.errors import RunError
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits
from tests.ops.base.test_node_cases import OPERATORS, array, cases

PARTS = 4
# Words of Python and NumPy that do not say what the model did wrong.
FOREIGN = re.compile(
    r"Error:|tuple index|zip\(\)|newaxis|could not broadcast|einstein|unpack|object is not|NoneType|unsupported operand"
)


def spoilt(x):
    """Other arrays of the same dtype: of another rank or size, with indices that are out of range."""
    if not isinstance(x, np.ndarray):
        return
    yield x[None]
    if x.ndim:
        yield x[..., :0]
    if x.ndim and x.shape[0]:
        yield x[0]
    if x.ndim and x.shape[-1]:
        yield np.concatenate([x, x[..., :1]], -1)
    if x.dtype.kind == "i" and x.dtype.itemsize > 2 and x.size:
        for value in (1000, -1000, 0):
            changed = x.copy()
            changed.reshape(-1)[0] = value
            yield changed


def without_shapes(model):
    """The same model, with inputs of any shape."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    for value in [*copy.graph.input, *copy.graph.output]:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copy


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_errors_speak_of_the_model(part):
    runs = 0
    for number, key in enumerate(OPERATORS):
        for case in cases()[key][: 1 if number % PARTS == part else 0]:
            run = Runner(ModelGraph(without_shapes(case.model)))
            feeds = {v.name: array(x) for v, x in zip(case.model.graph.input, case.data_sets[0][0], strict=False)}
            for name, fed in feeds.items():
                for changed in spoilt(fed):
                    runs += 1
                    text = said(run, feeds | {name: changed})
                    assert not FOREIGN.search(text), f"{case.name}, {name} {changed.shape}: {text}"
    assert runs > 200


def said(run, feeds):
    """The error of a run, "" where there is none."""
    try:
        run.run(feeds, keep=False, limits=Limits(bytes=1 << 28, iterations=2000))
    except RunError as error:
        return str(error)
    return ""
