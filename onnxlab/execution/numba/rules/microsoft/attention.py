"""Attention of com.microsoft: Attention, MultiHeadAttention and GroupQueryAttention, with their masks and caches."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous, emit_clear, emit_copy
from onnxlab.execution.numba.plan.elementwise_chains import Operand
from onnxlab.execution.numba.plan.views import View, constant_view
from onnxlab.execution.numba.rules.onnx.attention import attend, by_heads, heads_of, output_name, present
from onnxlab.execution.numba.rules.onnx.matmul import by_constant, with_inner_runs
from onnxlab.execution.numba.rules.onnx.quantization import DOMAIN, fixed, given
from onnxlab.execution.numba.rules.onnx.rotary import caches_by_place, rotated
from onnxlab.execution.numba.rules.registry import StaticFacts, floats_at, reason_at, rule
from onnxlab.graph.edit.snapshot import NodeView

_MASKED = -10000.0


def _summed(binder: Binder, terms: Sequence[Operand | None]) -> View | None:
    """The sum of several masks."""
    total: Operand | None = None
    for term in terms:
        if term is not None:
            total = term if total is None else binder.chain("add", [total, term])
    if total is None or isinstance(total, float):
        return None
    return total if isinstance(total, View) else binder.emit(total)


def _unseen(binder: Binder, name: str, batch: int, rows: int, keys: int, filtered: float) -> Operand | None:
    """A com.microsoft mask as a summand: [B] lengths, [B, T], [B, S, T] or [B, 1, M, M], where 0 is masked."""
    if not name:
        return None
    view = binder.view(name)
    if view.shape == (batch,):
        lengths = view.at(0, (batch, 1, 1, 1), (view.strides[0], 0, 0, 0))
        places = constant_view(np.arange(keys, dtype=np.float32))
        return binder.chain("where", [binder.chain("less", [places, lengths]), 0.0, filtered])
    if len(view.shape) == 2:
        view = view.at(0, (batch, 1, 1, keys), (view.strides[0], 0, 0, view.strides[1]))
    elif len(view.shape) == 3:
        view = view.at(0, (batch, 1, *view.shape[1:]), (view.strides[0], 0, *view.strides[1:]))
    elif len(view.shape) == 4:
        view = view.at((keys - rows) * view.strides[2], (*view.shape[:2], rows, keys), view.strides)
    else:
        raise UnbindableError(f"a mask {view.shape}")
    return binder.chain("where", [view, 0.0, filtered])


def _unseen_future(
    binder: Binder, unidirectional: int, rows: int, keys: int, past: int, filtered: float
) -> View | None:
    """The summand that keeps queries from later keys."""
    if not unidirectional:
        return None
    seen = np.arange(keys) <= past + np.arange(rows)[:, None]
    return constant_view(np.where(seen, np.float32(0), np.float32(filtered)))


def _mask_reason(node: NodeView, view: StaticFacts, slot: int) -> str:
    return reason_at(node, view, lambda dtype: dtype in (np.int32, np.bool_), slot)


def _ms_accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("do_rotary", 0) or node.attributes.get("past_present_share_buffer", 0) or given(node, 6):
        return "rotary embedding, or buffers that past and present share"
    if not view.known(node.inputs[1]) or (given(node, 2) and not view.known(node.inputs[2])):
        return "its weights are no constants"
    return _mask_reason(node, view, 3) or floats_at(node, view, 0, 4, 5)


@rule("Attention", domain=DOMAIN, accept=_ms_accept, weight=6)
def attention_ms(binder: Binder, node: NodeView) -> None:
    """Lower com.microsoft's Attention with packed projections."""
    attributes, x = node.attributes, binder.floats(node.inputs[0])
    weights = fixed(binder, node.inputs[1])
    bias = fixed(binder, node.inputs[2]) if given(node, 2) else None
    if weights is None or len(x.shape) != 3:
        raise UnbindableError(f"X has shape {x.shape}")
    target = binder.builder.allocate((*x.shape[:2], weights.shape[1]), np.float32)
    product = by_constant(binder, x, weights, target, ("matmul", *binder.key_of(node.inputs[1])))
    if bias is not None:
        product.add_columns(bias.reshape(1, -1).astype(np.float32))
    whole = binder.emit(product)
    sizes = attributes.get("qkv_hidden_sizes") or [weights.shape[1] // 3] * 3
    starts = np.cumsum([0, *sizes])
    q, k, v = (
        by_heads(binder, whole.at(int(at) * 4, (*x.shape[:2], size), whole.strides), attributes.get("num_heads", 1))
        for at, size in zip(starts, sizes, strict=False)
    )
    past = binder.shape(given(node, 4))[3] if given(node, 4) else 0
    k, v = _joint_present(binder, given(node, 4), k, v, output_name(node, 1))
    _attend_ms(binder, node, q, k, v, past, given(node, 3), given(node, 5))


def _joint_present(binder: Binder, past: str, k: View, v: View, output: str) -> tuple[View, View]:
    """Keys and values with the past ones before them, which are one value [2, B, H, T, D]."""
    if not past and not output:
        return k, v
    if k.shape != v.shape:
        raise UnbindableError("keys and values of different sizes in one cache")
    before = binder.floats(past) if past else None
    if before is not None and (
        len(before.shape) != 5 or (*before.shape[:3], before.shape[4]) != (2, *k.shape[:2], k.shape[3])
    ):
        raise UnbindableError(f"past {before.shape} before {k.shape}")
    length = before.shape[3] if before is not None else 0
    shape = (2, *k.shape[:2], length + k.shape[2], k.shape[3])
    target = binder.allocate(output, shape, np.float32)
    halves = []
    for part, new in enumerate((k, v)):
        half = target.at(part * target.strides[0], shape[1:], target.strides[1:])
        if before is not None and before.size:
            old = before.at(part * before.strides[0], before.shape[1:], before.strides[1:])
            emit_copy(binder.builder, old, half.at(0, old.shape, half.strides))
        emit_copy(binder.builder, new, half.at(length * half.strides[2], new.shape, half.strides))
        halves.append(half)
    binder.put(output, target)
    return halves[0], halves[1]


def _attend_ms(binder: Binder, node: NodeView, q: View, k: View, v: View, past: int, mask: str, bias: str) -> None:
    """Attention with the masks of com.microsoft's operators."""
    attributes = node.attributes
    batch, rows, keys = q.shape[0], q.shape[2], k.shape[2]
    filtered = attributes.get("mask_filter_value", _MASKED)
    total = _summed(binder, (
        _unseen(binder, mask, batch, rows, keys, filtered), binder.floats(bias) if bias else None,
        _unseen_future(binder, attributes.get("unidirectional", 0), rows, keys, past, filtered),
    ))  # fmt: skip
    attend(binder, q, k, v, attributes.get("scale") or 1 / sqrt(q.shape[3]), total, node.outputs[0], True)


def _mha_accept(node: NodeView, view: StaticFacts) -> str:
    if given(node, 8) or given(node, 9):
        return "a cache of beams"
    return _mask_reason(node, view, 4) or floats_at(node, view, 0, 1, 2, 3, 5, 6, 7)


@rule("MultiHeadAttention", domain=DOMAIN, accept=_mha_accept, weight=6)
def multi_head_attention(binder: Binder, node: NodeView) -> None:
    """Lower MultiHeadAttention, its biases and past included."""
    count = node.attributes.get("num_heads", 1)
    q, k, v = _three(binder, node, count)
    if given(node, 3):
        q, k, v = _with_bias(binder, node, (q, k, v))
    past = binder.shape(given(node, 6))[2] if given(node, 6) else 0
    k = present(binder, given(node, 6), k, output_name(node, 1))
    v = present(binder, given(node, 7), v, output_name(node, 2))
    _attend_ms(binder, node, q, k, v, past, given(node, 4), given(node, 5))


def _three(binder: Binder, node: NodeView, count: int) -> tuple[View, View, View]:
    """Queries, keys and values as [B, H, S, D], of one, two or three inputs."""
    query = binder.floats(node.inputs[0])
    if len(query.shape) == 5:  # [B, S, H, 3, D]
        return _part(query, 0), _part(query, 1), _part(query, 2)
    q = by_heads(binder, query, count)
    if not given(node, 1):
        raise UnbindableError("no keys")
    key = binder.floats(node.inputs[1])
    if len(key.shape) == 5:
        return q, _part(key, 0), _part(key, 1)
    return q, by_heads(binder, key, count), heads_of(binder, node.inputs[2], count)


def _part(view: View, part: int) -> View:
    """[B, H, S, D] out of [B, S, H, parts, D]."""
    selected = view.at(
        part * view.strides[3], (*view.shape[:3], view.shape[4]), (*view.strides[:3], view.strides[4])
    )  # fmt: skip
    return selected.transposed([0, 2, 1, 3])


def _with_bias(binder: Binder, node: NodeView, views: Sequence[View]) -> list[View]:
    """The three with their parts of a bias [H·(D + D + E)]; keys and values by heads have had theirs."""
    bias = contiguous(binder.builder, binder.floats(node.inputs[3]))
    biased, at = [], 0
    for slot, view in enumerate(views):
        heads, size = view.shape[1], view.shape[3]
        foreign = slot > 0 and given(node, slot) and len(binder.shape(node.inputs[slot])) == 4
        if foreign:
            biased.append(view)
        else:
            part = bias.at(at, (heads, 1, size), (size * 4, 0, 4))
            biased.append(binder.emit(binder.chain("add", [view, part])))
        at += heads * size * 4
    return biased


# -- GroupQueryAttention ---------------------------------------------------------------------------------------------


def _gqa_accept(node: NodeView, view: StaticFacts) -> str:
    if any(node.attributes.get(name, 0) for name in ("k_quant_type", "v_quant_type")
           if node.attributes.get(name, "NONE") != "NONE"):  # fmt: skip
        return "a quantized cache"
    return floats_at(node, view, 0, 1, 2, 3, 4, 7, 8, 10, 11)


@rule("GroupQueryAttention", domain=DOMAIN, accept=_gqa_accept, weight=6, reads=(9,))
def group_query_attention(binder: Binder, node: NodeView) -> None:
    """Lower GroupQueryAttention, rotary embedding included."""
    attributes = node.attributes
    count, shared = attributes.get("num_heads", 1), attributes.get("kv_num_heads", 1)
    q, k, v = _packed_heads(binder, node, count, shared)
    steps = q.shape[2]
    lengths = np.array(binder.integers(node.inputs[5])) + 1
    total = binder.integers(node.inputs[6])[0]
    places = np.zeros_like(lengths) if steps == total else lengths - steps
    if attributes.get("do_rotary", 0) and given(node, 7) and given(node, 8):
        cos, sin = caches_by_place(binder, node.inputs[7:9], given(node, 9), places, steps)
        interleaved, width = bool(attributes.get("rotary_interleaved", 0)), 2 * cos.shape[-1]
        turned = [rotated(binder, part.transposed([0, 2, 1, 3]), cos, sin, interleaved, width) for part in (q, k)]
        q, k = (part.transposed([0, 2, 1, 3]) for part in turned)
    k = _cache(binder, given(node, 3), k, places.tolist(), total, output_name(node, 1))
    v = _cache(binder, given(node, 4), v, places.tolist(), total, output_name(node, 2))
    k, v = (view.at(0, (*view.shape[:2], total, view.shape[3]), view.strides) for view in (k, v))
    mask = binder.floats(node.inputs[10]) if given(node, 10) else None
    if mask is not None:
        mask = mask.at(0, (*mask.shape[:-1], min(total, mask.shape[-1])), mask.strides)
    window = attributes.get("local_window_size", -1)
    if not window:
        raise UnbindableError("a window of no keys")
    attend(
        binder, q, k, v, attributes.get("scale") or 1 / sqrt(q.shape[3]), mask, node.outputs[0], True,
        attributes.get("softcap", 0.0), window - 1 if window >= 0 else -1, 0, places,
        sinks=_sinks(binder, node, count),
    )  # fmt: skip


def _sinks(binder: Binder, node: NodeView, heads: int) -> View | None:
    """[H] scores that no key has: of the input, or 0 for a smooth softmax; None without any."""
    if given(node, 11):
        view = binder.floats(node.inputs[11])
        if view.size != heads:
            raise UnbindableError(f"sinks {view.shape} of {heads} heads")
        return contiguous(binder.builder, view).at(0, (heads,), (4,))
    return constant_view(np.zeros(heads, np.float32)) if node.attributes.get("smooth_softmax", -1) == 1 else None


def _packed_heads(binder: Binder, node: NodeView, count: int, shared: int) -> tuple[View, View, View]:
    """Queries, keys and values by heads, of one packed input where two are absent."""
    if given(node, 1) and given(node, 2):
        return (heads_of(binder, node.inputs[0], count), heads_of(binder, node.inputs[1], shared),
                heads_of(binder, node.inputs[2], shared))  # fmt: skip
    whole = with_inner_runs(binder, binder.floats(node.inputs[0]))
    size = whole.shape[2] // (count + 2 * shared)
    views, at = [], 0
    for heads in (count, shared, shared):
        part = whole.at(at * 4, (*whole.shape[:2], heads * size), whole.strides)
        views.append(by_heads(binder, part, heads))
        at += heads * size
    return views[0], views[1], views[2]


def _cache(binder: Binder, past: str, new: View, places: Sequence[int], total: int, output: str) -> View:
    """[B, H, size, D]: past keys or values, with the new ones of each entry of the batch from its place on."""
    before = binder.floats(past) if past else None
    if before is not None and (
        len(before.shape) != 4 or (*before.shape[:2], before.shape[3]) != (*new.shape[:2], new.shape[3])
    ):
        raise UnbindableError(f"past {before.shape} before {new.shape}")
    size = max(total, before.shape[2] if before is not None else 0)
    target = binder.allocate(output, (*new.shape[:2], size, new.shape[3]), np.float32)
    if before is None or before.shape[2] < size:
        emit_clear(binder.builder, target, target.nbytes)
    if before is not None and before.size:
        emit_copy(binder.builder, before, target.at(0, before.shape, target.strides))
    for entry, place in enumerate(places):
        count = min(new.shape[2], size - place)
        if place < 0 or count <= 0:
            raise UnbindableError(f"keys at {place} of {size}")
        shape = (1, new.shape[1], count, new.shape[3])
        source = new.at(entry * new.strides[0], shape, new.strides)
        at = entry * target.strides[0] + place * target.strides[2]
        emit_copy(binder.builder, source, target.at(at, shape, target.strides))
    binder.put(output, target)
    return target
