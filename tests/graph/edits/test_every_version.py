"""Nodes at every version that changed their operator, converted to all others: onnxruntime gives the same numbers."""

import random

import numpy as np
import onnx
import pytest

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.graph.edits.opsets.schema_fit import misfit
from onnxlab.model import Model
from tests.ops.base.test_node_cases import RANDOM, array, cases
from tests.support.oracle import new_session

SAMPLE = 12

Feeds = dict[str, np.ndarray]


def runnable(version: int, seed: int) -> list[tuple[str, onnx.ModelProto, Feeds]]:
    """Cases of one node of ai.onnx that are valid in a version, a random sample."""
    nodes = [case for group in cases().values() for case in group if len(case.model.graph.node) == 1]
    nodes = [case for case in nodes if not case.model.graph.node[0].domain and not case.name.startswith(RANDOM)]
    samples = []
    for case in random.Random(seed).sample(nodes, len(nodes)):
        (node,) = case.model.graph.node
        types = {value.name: value.type for value in (*case.model.graph.input, *case.model.graph.output)}
        schema = schemas.find("", node.op_type, version)
        if schema is None or schema.since_version != version or misfit(node, version, types):
            continue
        model = onnx.ModelProto.FromString(case.model.SerializeToString())
        model.opset_import[0].version, model.ir_version = version, 10
        tensors = case.data_sets[0][0]
        feeds = dict(zip([value.name for value in model.graph.input], map(array, tensors), strict=False))
        samples.append((case.name, model, feeds))
        if len(samples) == SAMPLE:
            break
    return samples


def results(model: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """The outputs by onnxruntime."""
    return new_session(model.SerializeToString(), None).run(None, feeds)


def differences(name: str, model: onnx.ModelProto, feeds: Feeds, new: int) -> list[str] | None:
    """The defects of one conversion; None where it is refused, or the numbers of the original are not known."""
    try:
        expected = results(model, feeds)
    except Exception:  # an operator that onnxruntime lacks, or has in later versions only
        return None
    converted = Model(onnx.ModelProto.FromString(model.SerializeToString()))
    try:
        converted.convert_opset(new)
    except EditError:
        return None
    try:
        actual = results(converted.proto, feeds)
    except Exception as error:
        return None if "NOT_IMPLEMENTED" in str(error) else [f"{name} → {new}: {str(error)[:200]}"]
    return [
        f"{name} of {model.opset_import[0].version} → {new}: differs"
        for before, after in zip(expected, actual, strict=True)
        if isinstance(before, np.ndarray)
        and not (
            before.dtype == after.dtype and before.shape == after.shape
            and (np.array_equal(before, after) if before.dtype.kind not in "fc"
                 else np.allclose(before.astype(float), after.astype(float), 1e-3, 1e-5, equal_nan=True))
        )
    ]  # fmt: skip


@pytest.mark.parametrize("version", [7, 9, 11, 13, 18, 21])
def test_accepted_conversions_give_the_numbers_of_the_original(version: int) -> None:
    compared, defects = 0, []
    for name, model, feeds in runnable(version, seed=version):
        for new in {7, 10, 12, 17, 20, 22} - {version}:
            if (differing := differences(name, model, feeds, new)) is not None:
                compared += 1
                defects += differing
    assert not defects
    assert compared >= 8, "or the sample says nothing"
