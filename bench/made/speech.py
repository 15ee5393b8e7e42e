"""Text to speech, with many values between two blocks."""

import onnx

from bench.made.attention import attention
from bench.made.maker import INT, Maker


def speech(values: int = 60, width: int = 16) -> onnx.ModelProto:
    """A text encoder that gives a style to each layer of a vocoder: `values` lines between two blocks."""
    maker = Maker()
    ids, style = maker.input("phonemes", ["batch", "length"], INT), maker.input("style", ["batch", width])
    with maker.scope("encoder"):
        with maker.scope("emb"):
            x = maker.node("Gather", maker.weight("weight", 64, width), ids)
        for layer in range(4):
            with maker.scope(f"attn_layers.{layer}"):
                x = maker.node("Add", x, attention(maker, x, width))
            with maker.scope(f"norm_layers.{layer}"):
                x = maker.layer_norm(x, width)
    with maker.scope("style_encoder"):
        styles = []
        for number in range(values):
            with maker.scope(f"fc.{number}"):
                scale = maker.linear(style, width, width)
                styles.append(maker.node("Unsqueeze", scale, maker.constant([2])))
    with maker.scope("decoder"):
        x = maker.node("Transpose", x, perm=[0, 2, 1])
        for number, scale in enumerate(styles):
            with maker.scope(f"blocks.{number}"):
                with maker.scope("conv"):
                    weight, bias = maker.weight("weight", width, width, 3), maker.weight("bias", width)
                    inner = maker.node("Conv", maker.node("LeakyRelu", x), weight, bias, pads=[1, 1])
                x = maker.node("Add", x, maker.node("Mul", inner, scale))
        with maker.scope("conv_post"):
            weight, bias = maker.weight("weight", 1, width, 7), maker.weight("bias", 1)
            x = maker.node("Tanh", maker.node("Conv", x, weight, bias, pads=[3, 3]))
    maker.output("waveform", x, ["batch", 1, "length"])
    return maker.model("speech")
