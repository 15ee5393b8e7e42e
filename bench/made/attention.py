"""Attention of many heads, as torch exports it."""

from bench.made.maker import Maker


def attention(made: Maker, x: str, width: int, context: str | None = None, heads: int = 2) -> str:
    """Queries of `x`, keys and values of `context` (of `x` itself where there is none)."""
    split, joined = made.constant([0, 0, heads, width // heads]), made.constant([0, 0, width])
    parts = []
    for name, perm in (("to_q", [0, 2, 1, 3]), ("to_k", [0, 2, 3, 1]), ("to_v", [0, 2, 1, 3])):
        with made.scope(name):
            each = made.linear(x if name == "to_q" or context is None else context, width, width)
        parts.append(made.node("Transpose", made.node("Reshape", each, split), perm=perm))
    scores = made.node("Mul", made.node("MatMul", parts[0], parts[1]), made.constant((width / heads) ** -0.5, "f4"))
    mixed = made.node("MatMul", made.node("Softmax", scores, axis=-1), parts[2])
    flat = made.node("Reshape", made.node("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    with made.scope("to_out.0"):
        return made.linear(flat, width, width)
