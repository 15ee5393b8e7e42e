"""A UNet of a diffusion model."""

import onnx

from bench.made.attention import attention
from bench.made.maker import Maker

WIDTH, LEVELS = 16, 4


def unet() -> onnx.ModelProto:
    """Four levels down, a middle and four levels up, with residual and attention blocks and skip connections."""
    maker = Maker()
    x = maker.input("sample", ["batch", 4, 64, 64])
    step = maker.input("timestep", ["batch", WIDTH])
    context = maker.input("encoder_hidden_states", ["batch", "words", WIDTH])
    with maker.scope("time_embedding"):
        with maker.scope("linear_1"):
            step = maker.linear(step, WIDTH, WIDTH)
        step = maker.silu(step)
        with maker.scope("linear_2"):
            step = maker.linear(step, WIDTH, WIDTH)
    with maker.scope("conv_in"):
        x = maker.conv(x, 4, WIDTH)
    skips = [x]
    for level in range(LEVELS):
        with maker.scope(f"down_blocks.{level}"):
            for place in range(2):
                x = _residual(maker, x, step, WIDTH, place)
                if level < LEVELS - 1:
                    x = _transformer(maker, x, context, place)
                skips.append(x)
            if level < LEVELS - 1:
                with maker.scope("downsamplers.0", "conv"):
                    x = maker.conv(x, WIDTH, WIDTH, stride=2)
                skips.append(x)
    with maker.scope("mid_block"):
        x = _residual(maker, x, step, WIDTH, 0)
        x = _transformer(maker, x, context, 0)
        x = _residual(maker, x, step, WIDTH, 1)
    for level in range(LEVELS):
        with maker.scope(f"up_blocks.{level}"):
            for place in range(3):
                x = _residual(maker, maker.node("Concat", x, skips.pop(), axis=1), step, 2 * WIDTH, place)
                if level > 0:
                    x = _transformer(maker, x, context, place)
            if level < LEVELS - 1:
                with maker.scope("upsamplers.0"):
                    scales = maker.constant([1, 1, 2, 2], "f4")
                    x = maker.node("Resize", x, "", scales, mode="nearest")
                    with maker.scope("conv"):
                        x = maker.conv(x, WIDTH, WIDTH)
    with maker.scope("conv_norm_out"):
        x = maker.group_norm(x, WIDTH)
    with maker.scope("conv_act"):
        x = maker.silu(x)
    with maker.scope("conv_out"):
        x = maker.conv(x, WIDTH, 4)
    maker.output("out_sample", x, ["batch", 4, 64, 64])
    return maker.model("unet")


def _residual(maker: Maker, x: str, step: str, channels_in: int, place: int) -> str:
    with maker.scope(f"resnets.{place}"):
        with maker.scope("norm1"):
            inner = maker.silu(maker.group_norm(x, channels_in))
        with maker.scope("conv1"):
            inner = maker.conv(inner, channels_in, WIDTH)
        with maker.scope("time_emb_proj"):
            shift = maker.linear(maker.silu(step), WIDTH, WIDTH)
        inner = maker.node("Add", inner, maker.node("Unsqueeze", shift, maker.constant([2, 3])))
        with maker.scope("norm2"):
            inner = maker.silu(maker.group_norm(inner, WIDTH))
        with maker.scope("conv2"):
            inner = maker.conv(inner, WIDTH, WIDTH)
        if channels_in != WIDTH:
            with maker.scope("conv_shortcut"):
                x = maker.conv(x, channels_in, WIDTH, kernel=1)
        return str(maker.node("Add", x, inner))


def _transformer(maker: Maker, x: str, context: str, place: int) -> str:
    with maker.scope(f"attentions.{place}"):
        shape = maker.node("Shape", x)
        with maker.scope("norm"):
            inner = maker.group_norm(x, WIDTH)
        flat = maker.node("Reshape", inner, maker.constant([0, WIDTH, -1]))
        inner = maker.node("Transpose", flat, perm=[0, 2, 1])
        with maker.scope("transformer_blocks.0"):
            for number, other in ((1, None), (2, context)):
                with maker.scope(f"norm{number}"):
                    normed = maker.layer_norm(inner, WIDTH)
                with maker.scope(f"attn{number}"):
                    inner = maker.node("Add", inner, attention(maker, normed, WIDTH, other))
            with maker.scope("norm3"):
                normed = maker.layer_norm(inner, WIDTH)
            with maker.scope("ff"):
                with maker.scope("net.0"):
                    wide = maker.silu(maker.linear(normed, WIDTH, 2 * WIDTH))
                with maker.scope("net.2"):
                    inner = maker.node("Add", inner, maker.linear(wide, 2 * WIDTH, WIDTH))
        back = maker.node("Reshape", maker.node("Transpose", inner, perm=[0, 2, 1]), shape)
        return str(maker.node("Add", x, back))
