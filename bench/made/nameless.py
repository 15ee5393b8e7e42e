"""A network whose nodes have no names."""

import numpy as np
import onnx

from bench.made.maker import Maker


def nameless() -> onnx.ModelProto:
    """A mobile network as PaddlePaddle's exporter writes it: no node has a name, weights are counted by operator."""
    maker = Maker(named=False)
    counts: dict[str, int] = {}

    def convolution(
        x: str, channels_in: int, out: int, kernel: int, stride: int = 1, group: int = 1, act: str = ""
    ) -> str:
        number = counts["conv2d"] = counts.get("conv2d", -1) + 1
        weight = maker.weight(f"conv2d_{number}.w_0", out, channels_in // group, kernel, kernel)
        pads = [kernel // 2] * 4
        x = maker.node("Conv", x, weight, strides=[stride] * 2, pads=pads, group=group)
        scale, bias = maker.weight(f"batch_norm_{number}.w_0", out), maker.weight(f"batch_norm_{number}.b_0", out)
        mean, spread = maker.constant(np.zeros(out), "f4"), maker.constant(np.ones(out), "f4")
        x = maker.node("BatchNormalization", x, scale, bias, mean, spread)
        if act == "relu":
            x = maker.node("Relu", x)
        elif act:
            zero, six = maker.constant(0, "f4"), maker.constant(6, "f4")
            gate = maker.node("Clip", maker.node("Add", x, maker.constant(3, "f4")), zero, six)
            x = maker.node("Div", maker.node("Mul", x, gate), six)
        return x

    def squeeze(x: str, width: int) -> str:
        inner = maker.node("GlobalAveragePool", x)
        for out, act in ((width // 4, "Relu"), (width, "HardSigmoid")):
            number = counts["conv2d"] = counts["conv2d"] + 1
            weight = maker.weight(f"conv2d_{number}.w_0", out, width if act == "Relu" else width // 4, 1, 1)
            inner = maker.node(act, maker.node("Conv", inner, weight, maker.weight(f"conv2d_{number}.b_0", out)))
        return str(maker.node("Mul", x, inner))

    x = convolution(maker.input("x", ["n", 3, 96, 96]), 3, 8, 3, stride=2, act="hard")
    channels_in = 8
    for width, times, stride, act, excites in (
        (8, 1, 1, "relu", True), (16, 2, 2, "relu", False), (16, 4, 2, "hard", True), (32, 4, 2, "hard", True),
    ):  # fmt: skip
        for place in range(times):
            wide, step = 2 * channels_in, stride if place == 0 else 1
            inner = convolution(x, channels_in, wide, 1, act=act)
            inner = convolution(inner, wide, wide, 3, step, group=wide, act=act)
            inner = convolution(squeeze(inner, wide) if excites else inner, wide, width, 1)
            x = maker.node("Add", x, inner) if step == 1 and channels_in == width else inner
            channels_in = width
    x = convolution(x, channels_in, 64, 1, act="hard")
    x = maker.node("Flatten", maker.node("GlobalAveragePool", x))
    x = maker.node(
        "Add", maker.node("MatMul", x, maker.weight("linear_0.w_0", 64, 10)), maker.weight("linear_0.b_0", 10)
    )
    maker.output("softmax_0.tmp_0", maker.node("Softmax", x, axis=1), ["n", 10])
    return maker.model("nameless")
