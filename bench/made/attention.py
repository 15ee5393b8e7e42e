"""Attention of many heads, as torch exports it."""

from bench.made.maker import Maker


def attention(maker: Maker, x: str, width: int, context: str | None = None, heads: int = 2) -> str:
    """Queries of `x`, keys and values of `context` (of `x` itself where there is none)."""
    split, joined = maker.constant([0, 0, heads, width // heads]), maker.constant([0, 0, width])
    parts = []
    for name, perm in (("to_q", [0, 2, 1, 3]), ("to_k", [0, 2, 3, 1]), ("to_v", [0, 2, 1, 3])):
        with maker.scope(name):
            projected = maker.linear(x if name == "to_q" or context is None else context, width, width)
        parts.append(maker.node("Transpose", maker.node("Reshape", projected, split), perm=perm))
    scores = maker.node("Mul", maker.node("MatMul", parts[0], parts[1]), maker.constant((width / heads) ** -0.5, "f4"))
    mixed = maker.node("MatMul", maker.node("Softmax", scores, axis=-1), parts[2])
    flat = maker.node("Reshape", maker.node("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    with maker.scope("to_out.0"):
        return maker.linear(flat, width, width)
