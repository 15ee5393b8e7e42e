"""Shape rules of LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, like
from onnxlab.shapes import Dim, Fact, FactError

Attributes = Mapping[str, Any]


def recurrent(
    ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, r: Fact, *_others: MaybeFact
) -> tuple[Fact, ...]:
    """Y [seq, directions, batch, hidden] (batch first by `layout`), then the last hidden state, then the cell state."""
    if x.shape is not None and len(x.shape) != 3:
        raise FactError(
            f"the input has shape {dims_text(x.shape)}",
            code="rank-mismatch",
            expected="[seq, batch, input size]",
            found=f"rank {len(x.shape)}",
        )
    directions = 2 if attributes.get("direction", "forward") == "bidirectional" else 1
    hidden: Dim = attributes.get("hidden_size") or (r.shape[-1] if r.shape else ctx.symbol(1, 2))
    if attributes.get("layout"):
        batch, seq = x.shape[:2] if x.shape is not None else (ctx.symbol(0, 0), ctx.symbol(0, 1))
        last = like(x, (batch, directions, hidden))
        return like(x, (batch, seq, directions, hidden)), last, last
    seq, batch = x.shape[:2] if x.shape is not None else (ctx.symbol(0, 0), ctx.symbol(0, 2))
    last = like(x, (directions, batch, hidden))
    return like(x, (seq, directions, batch, hidden)), last, last


for _name in ("LSTM", "GRU", "RNN"):
    rule(_name, since=7)(recurrent)
