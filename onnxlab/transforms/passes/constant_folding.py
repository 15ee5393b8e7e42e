"""Constant folding: nodes that depend on no input are computed, their outputs stored, within a budget of bytes."""

from collections.abc import Mapping
from math import prod
from typing import Final

import onnx

from onnxlab import dtypes
from onnxlab.errors import OnnxlabError
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos import tensors
from onnxlab.ops import find_traits
from onnxlab.transforms.passes.evaluation import evaluated
from onnxlab.transforms.rewriting import Array, Rewriting

NAME = "constant folding"
NAMES = (NAME,)
SMALL = 1 << 14
"""Bytes up to which a result is stored, however small the constants are that it is computed from."""

LARGE: Final = 1024
"""Elements of the smallest weight for which a node is worth it that stores it in fewer bits."""


def run(rewriting: Rewriting) -> None:
    """Store the results of nodes that read constants alone, where others read them.

    A result may take as many bytes as the constants that it is computed from, or be small; all results together may
    take `Rewriting.budget` bytes more. Random nodes are not folded, nor nodes that make floats of weights stored in
    fewer bits.
    """
    folded = _foldable(rewriting)
    border = [node for node in folded.values() if _is_read_outside(rewriting, node, folded)]
    chosen = [node for node in border if _fits(rewriting, node, folded)]
    arrays = _computed(rewriting, chosen, folded)
    for node in chosen:
        label, place = rewriting.graph.label(node), rewriting.place(node)
        if not all(vid in arrays for vid in _read(rewriting, node)) or not rewriting.allows(NAME, place):
            continue
        if rewriting.replace_by(node, arrays):
            rewriting.note(NAME, place, label, "stored what it computes")


def _foldable(rewriting: Rewriting) -> dict[int, NodeRecord]:
    """Nodes that read constants and results of each other alone, by id, producers first."""
    values, foldable = rewriting.graph.values, dict[int, NodeRecord]()
    constant: set[int] = set()
    for node in rewriting.nodes():
        traits = find_traits(node.domain, node.op_type)
        if node.bodies or traits.random or traits.category in ("quantization", "custom") or not any(node.outputs):
            continue
        if _widens(rewriting, node):
            continue
        if is_constant(node):
            constant.update(vid for vid in node.outputs if vid)
            continue
        sources = [vid for vid in node.inputs if vid]
        if all(vid in constant or rewriting.stored(values[vid]) is not None for vid in sources):
            foldable[node.id] = node
            constant.update(vid for vid in node.outputs if vid)
    return foldable


def _widens(rewriting: Rewriting, node: NodeRecord) -> bool:
    """Whether a node makes a large weight that is stored in half precision wider, which was done to keep it small."""
    if node.op_type != "Cast" or node.domain or not node.inputs:
        return False
    stored = rewriting.stored(rewriting.graph.values.get(node.inputs[0]))
    halves = (dtypes.FLOAT16, dtypes.BFLOAT16)
    return isinstance(stored, onnx.TensorProto) and stored.data_type in halves and prod(stored.dims) >= LARGE


def _read(rewriting: Rewriting, node: NodeRecord) -> list[int]:
    """Ids of the outputs of a node that are read."""
    values = rewriting.graph.values
    return [vid for vid in node.outputs if vid and (values[vid].uses or values[vid].formal_outputs)]


def _is_read_outside(rewriting: Rewriting, node: NodeRecord, folded: dict[int, NodeRecord]) -> bool:
    values = rewriting.graph.values
    return any(reader not in folded for vid in node.outputs if vid for reader, _ in values[vid].uses)


def _fits(rewriting: Rewriting, node: NodeRecord, folded: dict[int, NodeRecord]) -> bool:
    """Whether the results of a node may be stored; what they take is taken off the budget."""
    sizes = [_bytes(rewriting, vid) for vid in _read(rewriting, node)]
    if any(size is None for size in sizes):
        return False
    grown = sum(size for size in sizes if size is not None) - _source_bytes(rewriting, node, folded)
    if grown > SMALL and grown > rewriting.budget:
        return False
    rewriting.budget -= max(grown, 0)
    return True


def _bytes(rewriting: Rewriting, value: int) -> int | None:
    shape, elem_type = rewriting.shape(value), rewriting.elem_type(value)
    if shape is None or not elem_type or not all(isinstance(dim, int) for dim in shape):
        return None
    count: int = prod(shape)
    return -(-count * (dtypes.bits(elem_type) or 64) // 8)


def _source_bytes(rewriting: Rewriting, node: NodeRecord, folded: dict[int, NodeRecord]) -> int:
    """Bytes of the constants that a result is computed from, each counted once."""
    seen: set[int] = set()
    waiting, total = [node], 0
    while waiting:
        for vid in waiting.pop().inputs:
            if not vid or vid in seen:
                continue
            seen.add(vid)
            value = rewriting.graph.values[vid]
            maker = rewriting.maker(value)
            if maker is not None and maker.id in folded:
                waiting.append(maker)
            elif (stored := rewriting.stored(value)) is not None:
                total += tensors.nbytes(stored.values if isinstance(stored, onnx.SparseTensorProto) else stored)
    return total


def _computed(rewriting: Rewriting, nodes: list[NodeRecord], folded: Mapping[int, NodeRecord]) -> dict[int, Array]:
    """The outputs of nodes, by value id; nodes run one by one where they cannot run together."""
    by_scope: dict[int, list[NodeRecord]] = {}
    for node in nodes:
        by_scope.setdefault(node.scope, []).append(node)
    arrays = _in_main(rewriting, by_scope.pop(rewriting.graph.main.id, []))
    for inside in by_scope.values():
        needed = [vid for node in inside for vid in _read(rewriting, node)]
        computed = evaluated(rewriting, inside, folded, needed)
        for node in inside if not computed else ():
            computed |= evaluated(rewriting, [node], folded, _read(rewriting, node))
        arrays |= computed
    return arrays


def _in_main(rewriting: Rewriting, nodes: list[NodeRecord]) -> dict[int, Array]:
    values = rewriting.graph.values
    by_name = {values[vid].name: vid for node in nodes for vid in _read(rewriting, node)}
    if not by_name:
        return {}
    try:
        arrays = rewriting.compute(list(by_name))
    except OnnxlabError:
        arrays = {}
        for name in by_name:
            try:
                arrays |= rewriting.compute([name])
            except OnnxlabError:
                continue  # the kernel refuses the node, as it will when the model runs
    return {by_name[name]: array for name, array in arrays.items()}
