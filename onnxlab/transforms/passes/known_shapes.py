"""Shape folding: sizes that inference knows are stored, and the nodes that compute them removed."""

import math
from collections.abc import Container

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.records import NodeRecord
from onnxlab.shapes import TensorFact
from onnxlab.transforms.rewriting import Array, Rewriting

NAME = "shape folding"
NAMES = (NAME,)


def run(rewriting: Rewriting) -> None:
    """Store values whose elements are all known, and targets of Reshape and Expand that follow from the shapes."""
    known = {node.id: arrays for node in rewriting.nodes() if (arrays := _known(rewriting, node))}
    for ident, arrays in known.items():
        _store(rewriting, rewriting.graph.nodes[ident], arrays, known)
    for fix, op_type in ((_fix_reshape, "Reshape"), (_fix_expand, "Expand")):
        for node in rewriting.nodes(op_type):
            if any(node.outputs[:1]):
                fix(rewriting, node)


def _known(rewriting: Rewriting, node: NodeRecord) -> dict[int, Array]:
    """The outputs of a node, by value id, where inference knows all of its inputs; else nothing."""
    if node.bodies or is_constant(node) or rewriting.is_random(node):
        return {}
    arrays = {}
    values = rewriting.graph.values
    for vid in node.outputs:
        if not vid or not (values[vid].uses or values[vid].formal_outputs):
            continue
        fact = rewriting.fact(vid)
        known = fact.known if isinstance(fact, TensorFact) else None
        array = known.array() if known is not None else None
        if array is None or values[vid].formal_outputs or not isinstance(fact, TensorFact):
            return {}
        if dtypes.is_integer(fact.elem_type):
            arrays[vid] = array.astype(dtypes.to_numpy(fact.elem_type))
        elif fact.elem_type == dtypes.BOOL:
            arrays[vid] = array.astype(np.bool_)
        else:
            return {}
    return arrays


def _store(rewriting: Rewriting, node: NodeRecord, arrays: dict[int, Array], known: Container[int]) -> None:
    """Store the outputs of a node, unless only nodes read them whose outputs are known and stored too."""
    values, place = rewriting.graph.values, rewriting.place(node)
    if all(reader in known for vid in arrays for reader, _ in values[vid].uses) or not rewriting.allows(NAME, place):
        return
    label = rewriting.graph.label(node)
    if rewriting.replace_by(node, arrays):
        rewriting.note(NAME, place, label, "stored the sizes that inference knows")


def _fix_reshape(rewriting: Rewriting, node: NodeRecord) -> None:
    """Replace a computed target by numbers, 0 for dims that stay in their place, and at most one -1."""
    data, target = rewriting.input(node, 0), rewriting.input(node, 1)
    if data is None or target is None or rewriting.stored(target) is not None or target.is_input:
        return
    input_shape, output_shape = rewriting.shape(data.id), rewriting.shape(node.outputs[0])
    if output_shape is None or any(dim == 0 for dim in output_shape if isinstance(dim, int)):
        return
    copies = not any(attribute.name == "allowzero" and attribute.i for attribute in node.proto.attribute)
    dims = []
    for axis, dim in enumerate(output_shape):
        if isinstance(dim, int):
            dims.append(dim)
        elif copies and input_shape is not None and axis < len(input_shape) and input_shape[axis] == dim:
            dims.append(0)
        else:
            dims.append(-1)
    if dims.count(-1) > 1:
        return
    _read_fixed(rewriting, node, dims)


def _fix_expand(rewriting: Rewriting, node: NodeRecord) -> None:
    """Replace a computed target by numbers, 1 for dims that stay as they are."""
    data, target = rewriting.input(node, 0), rewriting.input(node, 1)
    if data is None or target is None or rewriting.stored(target) is not None or target.is_input:
        return
    input_shape, output_shape = rewriting.shape(data.id), rewriting.shape(node.outputs[0])
    if input_shape is None or output_shape is None or len(input_shape) > len(output_shape):
        return
    wider = (1,) * (len(output_shape) - len(input_shape)) + input_shape
    pairs = zip(output_shape, wider, strict=True)
    dims = [dim if isinstance(dim, int) else 1 if dim == before else -1 for dim, before in pairs]
    if -1 not in dims:
        _read_fixed(rewriting, node, dims)


def _read_fixed(rewriting: Rewriting, node: NodeRecord, dims: list[int]) -> None:
    label, place = rewriting.graph.label(node), rewriting.place(node)
    if (
        not rewriting.allows(NAME, place)
        or any(abs(dim) > 1 << 62 for dim in dims)
        or math.prod(map(abs, dims)) > 1 << 62
    ):
        return
    name = rewriting.fresh(f"{rewriting.graph.values[node.outputs[0]].name}_shape")
    stored = rewriting.store(name, np.array(dims, np.int64), rewriting.graph.scopes[node.scope])
    rewriting.read(node, 1, stored)
    rewriting.note(NAME, place, label, f"its target is {dims} whatever the sizes are")
