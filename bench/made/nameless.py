"""A network whose nodes have no names."""

import numpy as np
import onnx

from bench.made.maker import Maker


def nameless() -> onnx.ModelProto:
    """A mobile network as PaddlePaddle's exporter writes it: no node has a name, weights are counted by operator."""
    made = Maker(named=False)
    counts: dict[str, int] = {}

    def convolution(x: str, given: int, out: int, kernel: int, stride: int = 1, group: int = 1, act: str = "") -> str:
        number = counts["conv2d"] = counts.get("conv2d", -1) + 1
        weight = made.weight(f"conv2d_{number}.w_0", out, given // group, kernel, kernel)
        pads = [kernel // 2] * 4
        x = made.node("Conv", x, weight, strides=[stride] * 2, pads=pads, group=group)
        scale, bias = made.weight(f"batch_norm_{number}.w_0", out), made.weight(f"batch_norm_{number}.b_0", out)
        mean, spread = made.constant(np.zeros(out), "f4"), made.constant(np.ones(out), "f4")
        x = made.node("BatchNormalization", x, scale, bias, mean, spread)
        if act == "relu":
            x = made.node("Relu", x)
        elif act:
            zero, six = made.constant(0, "f4"), made.constant(6, "f4")
            gate = made.node("Clip", made.node("Add", x, made.constant(3, "f4")), zero, six)
            x = made.node("Div", made.node("Mul", x, gate), six)
        return x

    def squeeze(x: str, width: int) -> str:
        inner = made.node("GlobalAveragePool", x)
        for out, act in ((width // 4, "Relu"), (width, "HardSigmoid")):
            number = counts["conv2d"] = counts["conv2d"] + 1
            weight = made.weight(f"conv2d_{number}.w_0", out, width if act == "Relu" else width // 4, 1, 1)
            inner = made.node(act, made.node("Conv", inner, weight, made.weight(f"conv2d_{number}.b_0", out)))
        return str(made.node("Mul", x, inner))

    x = convolution(made.input("x", ["n", 3, 96, 96]), 3, 8, 3, stride=2, act="hard")
    given = 8
    for width, times, stride, act, excites in (
        (8, 1, 1, "relu", True), (16, 2, 2, "relu", False), (16, 4, 2, "hard", True), (32, 4, 2, "hard", True),
    ):  # fmt: skip
        for place in range(times):
            wide, step = 2 * given, stride if place == 0 else 1
            inner = convolution(x, given, wide, 1, act=act)
            inner = convolution(inner, wide, wide, 3, step, group=wide, act=act)
            inner = convolution(squeeze(inner, wide) if excites else inner, wide, width, 1)
            x = made.node("Add", x, inner) if step == 1 and given == width else inner
            given = width
    x = convolution(x, given, 64, 1, act="hard")
    x = made.node("Flatten", made.node("GlobalAveragePool", x))
    x = made.node("Add", made.node("MatMul", x, made.weight("linear_0.w_0", 64, 10)), made.weight("linear_0.b_0", 10))
    made.output("softmax_0.tmp_0", made.node("Softmax", x, axis=1), ["n", 10])
    return made.model("nameless")
