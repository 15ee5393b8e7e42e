"""Rotary embeddings: pairs of features turned by angles that depend on their token's place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.gather import emit_gather
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import emit_copy
from onnxlab.execution.numba.plan.elementwise_chains import emit_chain
from onnxlab.execution.numba.plan.views import Array, View, constant_view
from onnxlab.execution.numba.rules.onnx.quantization import DOMAIN, given
from onnxlab.execution.numba.rules.registry import StaticFacts, floats_at, rule
from onnxlab.graph.edit.snapshot import NodeView


def caches_by_place(binder: Binder, names: Sequence[str], ids: str, starts: Array, steps: int) -> list[View]:
    """Cosines and sines [B, S, width / 2], out of caches by place.

    Args:
        names: of the caches [places, width / 2].
        ids: name of the places [B, S]; "" where they follow from `starts` [B] on.
    """
    if ids:
        places = binder.view(ids)
    else:
        places = constant_view(np.asarray(starts, np.int64)[:, None] + np.arange(steps, dtype=np.int64))
    return [gathered(binder, binder.floats(name), 0, places) for name in names]


def gathered(binder: Binder, x: View, axis: int, indices: View, name: str = "") -> View:
    """The elements of x at these places along an axis."""
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    target = binder.allocate(name, shape, x.dtype)
    emit_gather(binder.builder, x, axis, indices, target)
    return target


def rotated(binder: Binder, x: View, cos: View, sin: View, interleaved: bool, width: int) -> View:
    """The first `width` features of each head of x [B, S, H, D] turned; cos and sin are [B or 1, S, width / 2]."""
    half = width // 2
    if cos.shape[-1] != half or sin.shape[-1] != half or width > x.shape[3]:
        raise UnbindableError(f"caches of {cos.shape[-1]} columns for {width} of {x.shape[3]} features")
    target = binder.builder.allocate(x.shape, np.float32)
    step, apart = (2, 1) if interleaved else (1, half)
    pair = [_features(x, number * apart, half, step) for number in range(2)]
    angles = [view.at(0, (*view.shape[:2], 1, half), (*view.strides[:2], 0, view.strides[2])) for view in (cos, sin)]
    for number in range(2):
        this_half, other_half = pair[number], pair[1 - number]
        turn = binder.chain("mul", [other_half, angles[1]])
        cosine_part = binder.chain("mul", [this_half, angles[0]])
        combined = binder.chain("add" if number else "sub", [cosine_part, turn])
        place = _features(target, number * apart, half, step)
        if interleaved:
            emit_copy(binder.builder, binder.emit(combined), place)
        else:
            emit_chain(binder.builder, combined, place)
    if width < x.shape[3]:
        rest = x.shape[3] - width
        emit_copy(binder.builder, _features(x, width, rest, 1), _features(target, width, rest, 1))
    return target


def _features(view: View, first: int, count: int, step: int) -> View:
    """Every `step`-th feature from the first on."""
    at = first * view.strides[3]
    return view.at(at, (*view.shape[:3], count), (*view.strides[:3], view.strides[3] * step))


def _accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("is_packed_batching", 0):
        return "packed batches"
    return floats_at(node, view, *((0, 2, 3) if node.domain else (0, 1, 2)))


def _rows(binder: Binder, name: str, count: int, width: int) -> View:
    """A value as [B, S, H, D]."""
    x = binder.floats(name)
    if len(x.shape) == 4:
        return x.transposed([0, 2, 1, 3])
    count = count or x.shape[2] // width
    if len(x.shape) != 3 or not count or x.shape[2] % count:
        raise UnbindableError(f"{x.shape} is not of {count} heads")
    return x.at(0, (*x.shape[:2], count, x.shape[2] // count),
                (*x.strides[:2], x.shape[2] // count * x.strides[2], x.strides[2]))  # fmt: skip


def _put(binder: Binder, node: NodeView, turned: View) -> None:
    shape = binder.shape(node.inputs[0])
    view = turned.reshaped(shape) if len(shape) == 3 else turned.transposed([0, 2, 1, 3])
    assert view is not None
    binder.put(node.outputs[0], view)


@rule("RotaryEmbedding", since=23, accept=_accept, reads=(3,))
def rotary_embedding(binder: Binder, node: NodeView) -> None:
    """Lower ONNX's RotaryEmbedding."""
    attributes = node.attributes
    cos, sin = (binder.floats(name) for name in node.inputs[1:3])
    if given(node, 3):
        cos, sin = (gathered(binder, view, 0, binder.view(node.inputs[3])) for view in (cos, sin))
    width, heads = attributes.get("rotary_embedding_dim", 0), attributes.get("num_heads", 0)
    if width % 2 or not (heads or len(binder.shape(node.inputs[0])) == 4):
        raise UnbindableError(f"{width} features turned, {heads} heads")
    x = _rows(binder, node.inputs[0], heads, 2 * cos.shape[-1])
    _put(binder, node, rotated(binder, x, cos, sin, bool(attributes.get("interleaved", 0)), width or x.shape[3]))


@rule("RotaryEmbedding", domain=DOMAIN, accept=_accept, reads=(1,))
def rotary_embedding_ms(binder: Binder, node: NodeView) -> None:
    """Lower com.microsoft's RotaryEmbedding."""
    attributes, width = node.attributes, 2 * binder.shape(node.inputs[2])[1]
    x = _rows(binder, node.inputs[0], attributes.get("num_heads", 0), width)
    ids = node.inputs[1]
    if binder.value(ids).shape in ((), (1,), (1, 1)) and x.shape[1] > 1:
        start = binder.integers(ids)[0]
        cos, sin = caches_by_place(binder, node.inputs[2:4], "", np.array([start]), x.shape[1])
    else:
        cos, sin = caches_by_place(binder, node.inputs[2:4], ids, np.zeros(0), 0)
        if len(cos.shape) != 3:
            cos, sin = (view.at(0, (1, x.shape[1], width // 2), (0, *view.strides[-2:])) for view in (cos, sin))
    turned = rotated(
        binder, x, cos, sin, bool(attributes.get("interleaved", 0)), attributes.get("rotary_embedding_dim") or width
    )
    _put(binder, node, turned)
