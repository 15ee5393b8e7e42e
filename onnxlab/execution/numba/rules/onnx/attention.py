"""Attention of ai.onnx and the pattern that exporters write, and what all rules of attention are made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np

from onnxlab import dtypes
from onnxlab.execution.numba.lowering.attention import (
    NAN,
    ZEROS,
    ZEROS_FOR_NAN,
    Attention,
    emit_attention,
    rows_of_unit,
)
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous, emit_copy
from onnxlab.execution.numba.plan.views import View, dense
from onnxlab.execution.numba.rules.onnx.matmul import with_inner_runs
from onnxlab.execution.numba.rules.onnx.quantization import given
from onnxlab.execution.numba.rules.part_matcher import PartMatch
from onnxlab.execution.numba.rules.registry import FLOATS, StaticFacts, floats_at, reason_at, rule
from onnxlab.graph.edit.snapshot import NodeView


def decomposed(binder: Binder, match: PartMatch) -> None:
    """MatMul, scale, mask, Softmax and MatMul."""
    q, k, v = (binder.shape(match.values[name]) for name in "qkv")
    mask = match.values.get("mask")
    added = binder.shape(mask) if mask else ()
    if min(map(len, (q, k, v))) < 2 or q[-1] != k[-2] or k[-1] != v[-2]:
        raise UnbindableError("no matrices that multiply")
    softmax = match.node("Softmax")
    rank = max(len(q), len(k), len(added))
    if softmax.attributes.get("axis", 1 if softmax.since_version < 13 else -1) not in (-1, rank - 1):
        raise UnbindableError("a softmax along another axis")
    scores = (q[-2], k[-1])
    lead = np.broadcast_shapes(q[:-2], k[:-2], v[:-2], added[:-2])
    if np.broadcast_shapes(scores, added[-2:]) != scores or not rows_of_unit(q[-2], k[-1], v[-1]):
        raise UnbindableError("a mask of more scores than there are, or too many keys")
    scale = _scale(binder, match)
    bias = None if mask is None else _padded(binder.floats(mask), len(lead) + 2)
    views = [_padded(binder.floats(match.values[name]), len(lead) + 2) for name in "qkv"]
    empty = ZEROS_FOR_NAN if any(node.op_type == "IsNaN" for node in match.nodes) else NAN
    y = _result(binder, (*lead, q[-2], v[-1]))
    spec = Attention(with_inner_runs(binder, views[0]), views[1], views[2], y, scale, bias, empty=empty)
    binder.put(match.output, emit_attention(binder.builder, spec))


def _scale(binder: Binder, match: PartMatch) -> float:
    for name in ("scale", "divisor"):
        if name in match.values:
            number = binder.known(match.values[name])
            if number is None or number.size != 1:
                raise UnbindableError("a scale that is not one number that is known")
            value = float(number.reshape(()))
            return value if name == "scale" else 1 / value if value else inf
    return 1.0


def _padded(view: View, rank: int) -> View:
    """With leading axes of one element."""
    more = rank - len(view.shape)
    return view.at(0, (1,) * more + view.shape, (0,) * more + view.strides)


def _result(binder: Binder, shape: Sequence[int]) -> View:
    """A place for [..., heads, S, E] in which heads of one token are neighbors, as what follows mostly wants them."""
    if len(shape) != 4:
        return binder.builder.allocate(shape, np.float32)
    batch, heads, rows, width = shape
    a, b, c, d = dense((batch, rows, heads, width), 4)
    return binder.builder.allocate(shape, np.float32, (a, c, b, d))


# -- operators -------------------------------------------------------------------------------------------------------


def heads_of(binder: Binder, name: str, count: int | None) -> View:
    """[B, H, S, D] of a value [B, H, S, D] or [B, S, H·D]."""
    return by_heads(binder, binder.floats(name), count)


def by_heads(binder: Binder, view: View, count: int | None) -> View:
    """View [batch, steps, heads · width] as [batch, heads, steps, width]."""
    if len(view.shape) == 4:
        return view
    if len(view.shape) != 3 or not count or view.shape[2] % count:
        raise UnbindableError(f"{view.shape} is not of {count} heads")
    if view.strides[2] != 4 and view.shape[2] > 1:
        view = contiguous(binder.builder, view)
    size = view.shape[2] // count
    return view.at(0, (view.shape[0], count, view.shape[1], size), (view.strides[0], size * 4, view.strides[1], 4))


def _grouped(view: View, heads: int, shared: int) -> View:
    """[B, H, S, D] as [B, shared, H / shared, S, D]."""
    batch, step, *inner = view.strides
    group_size = heads // shared
    return view.at(0, (view.shape[0], shared, group_size, *view.shape[2:]), (batch, step * group_size, step, *inner))


def _each(view: View) -> View:
    """[B, H, …] as [B, H, 1, …]."""
    return view.at(0, (*view.shape[:2], 1, *view.shape[2:]), (*view.strides[:2], 0, *view.strides[2:]))


def attend(
    binder: Binder, q: View, k: View, v: View, scale: float, mask: View | None, output: str, flat: bool,
    cap: float = 0.0, left: int = -1, right: int = -1, place: object = 0, used: object = None, empty: int = ZEROS,
    sinks: View | None = None,
) -> None:  # fmt: skip
    """Name the result of heads [B, H, S, D] over keys and values [B, H or fewer, T, …], merged if `flat`.

    `sinks` are [H] scores of no key.
    """
    (batch, heads, rows, _), shared, width = q.shape, k.shape[1], v.shape[3]
    if not shared or heads % shared or k.shape[0] != batch or k.shape[2] != v.shape[2] or k.shape[3] != q.shape[3]:
        raise UnbindableError(f"queries {q.shape} with keys {k.shape} and values {v.shape}")
    if not rows_of_unit(rows, k.shape[2] + (sinks is not None), width):
        raise UnbindableError(f"attention over {k.shape[2]} keys")
    y = _result(binder, (batch, heads, rows, width))
    target = _grouped(y, heads, shared)
    if mask is not None:
        wide = _padded(mask, 4).broadcast((batch, heads, *_padded(mask, 4).shape[2:]))
        mask = _grouped(wide, heads, shared)
    if sinks is not None:
        (step,), group = sinks.strides, heads // shared
        sinks = sinks.at(0, (shared, group), (step * group, step))
    spec = Attention(
        with_inner_runs(binder, _grouped(q, heads, shared)), _each(k.transposed([0, 1, 3, 2])), _each(v), target, scale,
        mask, cap, left, right, _per_batch(place), _per_batch(used), empty, sinks,
    )  # fmt: skip
    emit_attention(binder.builder, spec)
    if flat:
        merged = y.transposed([0, 2, 1, 3]).reshaped([batch, rows, heads * width])
        assert merged is not None
        y = merged
    binder.put(output, y)


def _per_batch(value: object) -> object:
    """A number, or an array [B] that broadcasts to [B, H, G]."""
    return value if value is None or np.ndim(value) == 0 else np.asarray(value).reshape(-1, 1, 1)  # type: ignore[arg-type]


def present(binder: Binder, past: str, new: View, output: str) -> View:
    """Past and new keys or values [B, H, T, D] one after the other."""
    if not past:
        binder.put(output, new)
        return new
    before = binder.floats(past)
    if len(before.shape) != 4 or (*before.shape[:2], before.shape[3]) != (*new.shape[:2], new.shape[3]):
        raise UnbindableError(f"past {before.shape} before {new.shape}")
    shape = (*new.shape[:2], before.shape[2] + new.shape[2], new.shape[3])
    target = binder.allocate(output, shape, np.float32)
    for at, view in ((0, before), (before.shape[2], new)):
        if view.size:
            emit_copy(binder.builder, view, target.at(at * target.strides[2], view.shape, target.strides))
    binder.put(output, target)
    return target


def output_name(node: NodeView, slot: int) -> str:
    """The name of an output slot, "" where it is left out."""
    return node.outputs[slot] if len(node.outputs) > slot else ""


def _attention_accept(node: NodeView, view: StaticFacts) -> str:
    scores = output_name(node, 3)
    if scores and view.read(scores):
        return "its scores are read"
    if node.attributes.get("softmax_precision", dtypes.FLOAT) == dtypes.DOUBLE:
        return "a softmax of float64"
    reason = reason_at(node, view, lambda dtype: dtype in (*FLOATS, np.bool_), 3)
    return reason or floats_at(node, view, 0, 1, 2, 4, 5)


@rule("Attention", since=23, accept=_attention_accept, weight=6)
def attention(binder: Binder, node: NodeView) -> None:
    """Lower Attention with its masks, past and outputs."""
    attributes = node.attributes
    q = heads_of(binder, node.inputs[0], attributes.get("q_num_heads"))
    k, v = (heads_of(binder, name, attributes.get("kv_num_heads")) for name in node.inputs[1:3])
    past = binder.shape(given(node, 4))[2] if given(node, 4) else 0
    k = present(binder, given(node, 4), k, output_name(node, 1))
    v = present(binder, given(node, 5), v, output_name(node, 2))
    used = np.array(binder.integers(given(node, 6))) if given(node, 6) else None
    place = past if used is None else used - q.shape[2]
    mask = _added(binder, given(node, 3)) if given(node, 3) else None
    if mask is not None and mask.shape[-1] != k.shape[2]:
        raise UnbindableError(f"a mask {mask.shape} for {k.shape[2]} keys")
    right = attributes.get("right_window_size", -1)
    if attributes.get("is_causal", 0):
        right = 0
    scale = attributes.get("scale")
    attend(
        binder, q, k, v, 1 / sqrt(q.shape[3]) if scale is None else scale, mask, node.outputs[0],
        len(binder.shape(node.inputs[0])) == 3, attributes.get("softcap", 0.0), attributes.get("left_window_size", -1),
        right, place, used,
    )  # fmt: skip


def _added(binder: Binder, name: str) -> View:
    """A mask as numbers to add."""
    operand = binder.operand(name)
    if getattr(operand, "dtype", None) == np.bool_:
        return binder.emit(binder.chain("where", [operand, 0.0, -inf]))
    return binder.floats(name)
