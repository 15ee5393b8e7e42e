"""A decoder with a cache."""

import onnx

from bench.made.maker import FLOAT, INT, Maker


def decoder(layers: int = 48, width: int = 16, heads: int = 2) -> onnx.ModelProto:
    """Layers with keys and values of the past as inputs and of the present as outputs, and a causal mask."""
    made = Maker()
    size = width // heads
    ids = made.input("input_ids", ["batch", "sequence"], INT)
    seen = made.input("attention_mask", ["batch", "total"], INT)
    past = [
        [made.input(f"past_key_values.{layer}.{what}", ["batch", heads, "past", size]) for what in ("key", "value")]
        for layer in range(layers)
    ]
    with made.scope("model"):
        with made.scope("embed_tokens"):
            x = made.node("Gather", made.weight("weight", 64, width), ids)
        mask = _mask(made, ids, seen, past[0][0])
        for layer in range(layers):
            with made.scope(f"layers.{layer}"):
                x, present = _layer(made, x, mask, past[layer], width, heads)
            for what, value in zip(("key", "value"), present, strict=True):
                made.output(f"present.{layer}.{what}", value, ["batch", heads, "total", size])
        with made.scope("norm"):
            x = made.layer_norm(x, width)
    with made.scope("lm_head"):
        logits = made.node("MatMul", x, made.weight("weight", width, 64))
    made.output("logits", logits, ["batch", "sequence", 64])
    return made.model("decoder")


def _mask(made: Maker, ids: str, seen: str, past: str) -> str:
    """Zeros where a word may look, large negative numbers elsewhere: [batch, 1, sequence, total]."""
    length = made.node("Gather", made.node("Shape", ids), made.constant(1), axis=0)
    before = made.node("Gather", made.node("Shape", past), made.constant(2), axis=0)
    total = made.node("Add", before, length)
    one = made.constant(1)
    columns = made.node("Range", made.constant(0), total, one)
    rows = made.node("Unsqueeze", made.node("Range", before, total, one), made.constant([1]))
    later = made.node("Greater", made.node("Unsqueeze", columns, made.constant([0])), rows)
    unseen = made.node("Unsqueeze", made.node("Equal", seen, made.constant(0)), made.constant([1, 2]))
    hidden = made.node("Or", made.node("Unsqueeze", later, made.constant([0, 1])), unseen)
    return str(made.node("Mul", made.node("Cast", hidden, to=FLOAT), made.constant(-1e9, "f4")))


def _layer(made: Maker, x: str, mask: str, past: list[str], width: int, heads: int) -> tuple[str, list[str]]:
    with made.scope("input_layernorm"):
        normed = made.layer_norm(x, width)
    with made.scope("self_attn"):
        split, parts = made.constant([0, 0, heads, width // heads]), {}
        for name in ("q_proj", "k_proj", "v_proj"):
            with made.scope(name):
                each = made.node("MatMul", normed, made.weight("weight", width, width))
            parts[name] = made.node("Transpose", made.node("Reshape", each, split), perm=[0, 2, 1, 3])
        key = made.node("Concat", past[0], parts["k_proj"], axis=2)
        value = made.node("Concat", past[1], parts["v_proj"], axis=2)
        scores = made.node("MatMul", parts["q_proj"], made.node("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = made.node("Mul", scores, made.constant((width / heads) ** -0.5, "f4"))
        shares = made.node("Softmax", made.node("Add", scaled, mask), axis=-1)
        mixed = made.node("Transpose", made.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        with made.scope("o_proj"):
            flat = made.node("Reshape", mixed, made.constant([0, 0, width]))
            mixed = made.node("MatMul", flat, made.weight("weight", width, width))
    x = made.node("Add", x, mixed)
    with made.scope("post_attention_layernorm"):
        normed = made.layer_norm(x, width)
    with made.scope("mlp"):
        with made.scope("gate_proj"):
            gate = made.silu(made.node("MatMul", normed, made.weight("weight", width, 2 * width)))
        with made.scope("up_proj"):
            up = made.node("MatMul", normed, made.weight("weight", width, 2 * width))
        with made.scope("down_proj"):
            down = made.node("MatMul", made.node("Mul", gate, up), made.weight("weight", 2 * width, width))
    return str(made.node("Add", x, down)), [key, value]
