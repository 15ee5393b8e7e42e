"""A UNet of a diffusion model."""

import onnx

from bench.made.attention import attention
from bench.made.maker import Maker

WIDTH, LEVELS = 16, 4


def unet() -> onnx.ModelProto:
    """Four levels down, a middle and four levels up, with residual and attention blocks and skip connections."""
    made = Maker()
    x = made.input("sample", ["batch", 4, 64, 64])
    step = made.input("timestep", ["batch", WIDTH])
    context = made.input("encoder_hidden_states", ["batch", "words", WIDTH])
    with made.scope("time_embedding"):
        with made.scope("linear_1"):
            step = made.linear(step, WIDTH, WIDTH)
        step = made.silu(step)
        with made.scope("linear_2"):
            step = made.linear(step, WIDTH, WIDTH)
    with made.scope("conv_in"):
        x = made.conv(x, 4, WIDTH)
    skips = [x]
    for level in range(LEVELS):
        with made.scope(f"down_blocks.{level}"):
            for place in range(2):
                x = _residual(made, x, step, WIDTH, place)
                if level < LEVELS - 1:
                    x = _transformer(made, x, context, place)
                skips.append(x)
            if level < LEVELS - 1:
                with made.scope("downsamplers.0", "conv"):
                    x = made.conv(x, WIDTH, WIDTH, stride=2)
                skips.append(x)
    with made.scope("mid_block"):
        x = _residual(made, x, step, WIDTH, 0)
        x = _transformer(made, x, context, 0)
        x = _residual(made, x, step, WIDTH, 1)
    for level in range(LEVELS):
        with made.scope(f"up_blocks.{level}"):
            for place in range(3):
                x = _residual(made, made.node("Concat", x, skips.pop(), axis=1), step, 2 * WIDTH, place)
                if level > 0:
                    x = _transformer(made, x, context, place)
            if level < LEVELS - 1:
                with made.scope("upsamplers.0"):
                    scales = made.constant([1, 1, 2, 2], "f4")
                    x = made.node("Resize", x, "", scales, mode="nearest")
                    with made.scope("conv"):
                        x = made.conv(x, WIDTH, WIDTH)
    with made.scope("conv_norm_out"):
        x = made.group_norm(x, WIDTH)
    with made.scope("conv_act"):
        x = made.silu(x)
    with made.scope("conv_out"):
        x = made.conv(x, WIDTH, 4)
    made.output("out_sample", x, ["batch", 4, 64, 64])
    return made.model("unet")


def _residual(made: Maker, x: str, step: str, given: int, place: int) -> str:
    with made.scope(f"resnets.{place}"):
        with made.scope("norm1"):
            inner = made.silu(made.group_norm(x, given))
        with made.scope("conv1"):
            inner = made.conv(inner, given, WIDTH)
        with made.scope("time_emb_proj"):
            shift = made.linear(made.silu(step), WIDTH, WIDTH)
        inner = made.node("Add", inner, made.node("Unsqueeze", shift, made.constant([2, 3])))
        with made.scope("norm2"):
            inner = made.silu(made.group_norm(inner, WIDTH))
        with made.scope("conv2"):
            inner = made.conv(inner, WIDTH, WIDTH)
        if given != WIDTH:
            with made.scope("conv_shortcut"):
                x = made.conv(x, given, WIDTH, kernel=1)
        return str(made.node("Add", x, inner))


def _transformer(made: Maker, x: str, context: str, place: int) -> str:
    with made.scope(f"attentions.{place}"):
        shape = made.node("Shape", x)
        with made.scope("norm"):
            inner = made.group_norm(x, WIDTH)
        flat = made.node("Reshape", inner, made.constant([0, WIDTH, -1]))
        inner = made.node("Transpose", flat, perm=[0, 2, 1])
        with made.scope("transformer_blocks.0"):
            for number, other in ((1, None), (2, context)):
                with made.scope(f"norm{number}"):
                    normed = made.layer_norm(inner, WIDTH)
                with made.scope(f"attn{number}"):
                    inner = made.node("Add", inner, attention(made, normed, WIDTH, other))
            with made.scope("norm3"):
                normed = made.layer_norm(inner, WIDTH)
            with made.scope("ff"):
                with made.scope("net.0"):
                    wide = made.silu(made.linear(normed, WIDTH, 2 * WIDTH))
                with made.scope("net.2"):
                    inner = made.node("Add", inner, made.linear(wide, 2 * WIDTH, WIDTH))
        back = made.node("Reshape", made.node("Transpose", inner, perm=[0, 2, 1]), shape)
        return str(made.node("Add", x, back))
