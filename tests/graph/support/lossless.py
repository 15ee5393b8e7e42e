"""A model opened, indexed, edited and taken back: what of it is lost on the way. Used by tests and by the bench."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import onnx

import onnxlab
from onnxlab.errors import EditError
from tests.graph.support.fields import differences
from tests.graph.support.torture import backward, split, torture
from tests.support.corpus import Corpus

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def lost(source: Any, data: bytes) -> list[str]:
    """The losses of `data` after edits of a model that were undone, and after one that stays.

    Args:
        source: what to load: a path, or `data` itself.
    """
    model = onnxlab.load(source)
    canonical = model.proto.SerializeToString()
    assert model.nx.number_of_nodes() == len(model.proto.graph.node)
    losses = []
    for number, edit in enumerate((_rename_node, _rename_value, _remove_node)):
        if not edit(model):
            continue
        model.undo()
        if model.to_bytes() != data or model.proto.SerializeToString() != canonical:
            losses.append(f"bytes differ after edit {number} was undone")
    if _rename_node(model):
        saved = onnx.ModelProto.FromString(model.to_bytes())
        expected = ["graph.node[0].name"]
        losses += [path for path in differences(onnx.ModelProto.FromString(data), saved) if path not in expected]
    return losses


def _rename_node(model: onnxlab.Model) -> bool:
    if not len(model.nodes):
        return False
    model.nodes[0].name = "a name that no node has"
    return True


def _rename_value(model: onnxlab.Model) -> bool:
    values = [value for node in model.nodes for value in node.outputs if value is not None]
    if not values:
        return False
    values[len(values) // 2].name = "a name that no value has"
    return True


def _remove_node(model: onnxlab.Model) -> bool:
    """Take out, bypassed, the first node that this can be done with."""
    for node in list(model.nodes)[:20]:
        try:
            node.remove(bypass=True)
        except EditError:
            continue
        return True
    return False


def corpus() -> Iterator[tuple[str, Any, bytes]]:
    """(name, path, bytes) of the models of the corpus."""
    for name, path in Corpus().items():
        yield name, path, path.read_bytes()


def wheel() -> Iterator[tuple[str, Any, bytes]]:
    """The simple, light and pytorch models that the onnx wheel carries."""
    for path in sorted(DATA.rglob("*.onnx")):
        yield str(path.relative_to(DATA)), path, path.read_bytes()


def cases() -> Iterator[tuple[str, Any, bytes]]:
    """The models of onnx's own node tests, as protobuf writes them."""
    for case in node_cases():
        data = case.model.SerializeToString()
        yield case.name, data, data


@cache
def node_cases() -> tuple[Any, ...]:
    from onnx.backend.test.case.node import collect_testcases

    return tuple(case for case in collect_testcases(None) if case.model is not None)


def tortures() -> Iterator[tuple[str, Any, bytes]]:
    """Everything at once in every IR version, and with its fields in an unusual order and packing."""
    for version in range(3, 15):
        data = torture(version).SerializeToString()
        yield f"torture, IR {version}", data, data
    for way in (backward, split, lambda data: backward(split(data))):
        unusual = way(data)
        yield "torture, written unusually", unusual, unusual
