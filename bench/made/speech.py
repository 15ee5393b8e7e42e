"""Text to speech, with many values between two blocks."""

import onnx

from bench.made.attention import attention
from bench.made.maker import INT, Maker


def speech(values: int = 60, width: int = 16) -> onnx.ModelProto:
    """A text encoder that gives a style to each layer of a vocoder: `values` lines between two blocks."""
    made = Maker()
    ids, style = made.input("phonemes", ["batch", "length"], INT), made.input("style", ["batch", width])
    with made.scope("encoder"):
        with made.scope("emb"):
            x = made.node("Gather", made.weight("weight", 64, width), ids)
        for layer in range(4):
            with made.scope(f"attn_layers.{layer}"):
                x = made.node("Add", x, attention(made, x, width))
            with made.scope(f"norm_layers.{layer}"):
                x = made.layer_norm(x, width)
    with made.scope("style_encoder"):
        styles = []
        for number in range(values):
            with made.scope(f"fc.{number}"):
                scale = made.linear(style, width, width)
                styles.append(made.node("Unsqueeze", scale, made.constant([2])))
    with made.scope("decoder"):
        x = made.node("Transpose", x, perm=[0, 2, 1])
        for number, scale in enumerate(styles):
            with made.scope(f"blocks.{number}"):
                with made.scope("conv"):
                    weight, bias = made.weight("weight", width, width, 3), made.weight("bias", width)
                    inner = made.node("Conv", made.node("LeakyRelu", x), weight, bias, pads=[1, 1])
                x = made.node("Add", x, made.node("Mul", inner, scale))
        with made.scope("conv_post"):
            weight, bias = made.weight("weight", 1, width, 7), made.weight("bias", 1)
            x = made.node("Tanh", made.node("Conv", x, weight, bias, pads=[3, 3]))
    made.output("waveform", x, ["batch", 1, "length"])
    return made.model("speech")
