"""A decoder with a cache."""

import onnx

from bench.made.maker import FLOAT, INT, Maker


def decoder(layers: int = 48, width: int = 16, heads: int = 2) -> onnx.ModelProto:
    """Layers with keys and values of the past as inputs and of the present as outputs, and a causal mask."""
    maker = Maker()
    size = width // heads
    ids = maker.input("input_ids", ["batch", "sequence"], INT)
    seen = maker.input("attention_mask", ["batch", "total"], INT)
    past = [
        [maker.input(f"past_key_values.{layer}.{part}", ["batch", heads, "past", size]) for part in ("key", "value")]
        for layer in range(layers)
    ]
    with maker.scope("model"):
        with maker.scope("embed_tokens"):
            x = maker.node("Gather", maker.weight("weight", 64, width), ids)
        mask = _mask(maker, ids, seen, past[0][0])
        for layer in range(layers):
            with maker.scope(f"layers.{layer}"):
                x, present = _layer(maker, x, mask, past[layer], width, heads)
            for part, value in zip(("key", "value"), present, strict=True):
                maker.output(f"present.{layer}.{part}", value, ["batch", heads, "total", size])
        with maker.scope("norm"):
            x = maker.layer_norm(x, width)
    with maker.scope("lm_head"):
        logits = maker.node("MatMul", x, maker.weight("weight", width, 64))
    maker.output("logits", logits, ["batch", "sequence", 64])
    return maker.model("decoder")


def _mask(maker: Maker, ids: str, seen: str, past: str) -> str:
    """Zeros where a word may look, large negative numbers elsewhere: [batch, 1, sequence, total]."""
    length = maker.node("Gather", maker.node("Shape", ids), maker.constant(1), axis=0)
    before = maker.node("Gather", maker.node("Shape", past), maker.constant(2), axis=0)
    total = maker.node("Add", before, length)
    step = maker.constant(1)
    columns = maker.node("Range", maker.constant(0), total, step)
    rows = maker.node("Unsqueeze", maker.node("Range", before, total, step), maker.constant([1]))
    later = maker.node("Greater", maker.node("Unsqueeze", columns, maker.constant([0])), rows)
    unseen = maker.node("Unsqueeze", maker.node("Equal", seen, maker.constant(0)), maker.constant([1, 2]))
    hidden = maker.node("Or", maker.node("Unsqueeze", later, maker.constant([0, 1])), unseen)
    return str(maker.node("Mul", maker.node("Cast", hidden, to=FLOAT), maker.constant(-1e9, "f4")))


def _layer(maker: Maker, x: str, mask: str, past: list[str], width: int, heads: int) -> tuple[str, list[str]]:
    with maker.scope("input_layernorm"):
        normed = maker.layer_norm(x, width)
    with maker.scope("self_attn"):
        split, parts = maker.constant([0, 0, heads, width // heads]), {}
        for name in ("q_proj", "k_proj", "v_proj"):
            with maker.scope(name):
                projected = maker.node("MatMul", normed, maker.weight("weight", width, width))
            parts[name] = maker.node("Transpose", maker.node("Reshape", projected, split), perm=[0, 2, 1, 3])
        key = maker.node("Concat", past[0], parts["k_proj"], axis=2)
        value = maker.node("Concat", past[1], parts["v_proj"], axis=2)
        scores = maker.node("MatMul", parts["q_proj"], maker.node("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = maker.node("Mul", scores, maker.constant((width / heads) ** -0.5, "f4"))
        shares = maker.node("Softmax", maker.node("Add", scaled, mask), axis=-1)
        mixed = maker.node("Transpose", maker.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        with maker.scope("o_proj"):
            flat = maker.node("Reshape", mixed, maker.constant([0, 0, width]))
            mixed = maker.node("MatMul", flat, maker.weight("weight", width, width))
    x = maker.node("Add", x, mixed)
    with maker.scope("post_attention_layernorm"):
        normed = maker.layer_norm(x, width)
    with maker.scope("mlp"):
        with maker.scope("gate_proj"):
            gate = maker.silu(maker.node("MatMul", normed, maker.weight("weight", width, 2 * width)))
        with maker.scope("up_proj"):
            up = maker.node("MatMul", normed, maker.weight("weight", width, 2 * width))
        with maker.scope("down_proj"):
            down = maker.node("MatMul", maker.node("Mul", gate, up), maker.weight("weight", 2 * width, width))
    return str(maker.node("Add", x, down)), [key, value]
