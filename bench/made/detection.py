"""A detector with suppression."""

import onnx

from bench.made.maker import INT, Maker

CLASSES = 8


def detector() -> onnx.ModelProto:
    """Backbone, neck and heads on three scales, boxes decoded, and NonMaxSuppression with what gathers its results."""
    maker = Maker()
    x = maker.input("images", [1, 3, 160, 160])
    channels_in, scales = 3, []
    with maker.scope("backbone"):
        with maker.scope("stem"):
            x, channels_in = maker.silu(maker.conv(x, 3, 8, stride=2)), 8
        for stage, width in enumerate((16, 16, 32, 32), start=1):
            with maker.scope(f"stage{stage}"):
                with maker.scope("conv"):
                    x = maker.silu(maker.conv(x, channels_in, width, stride=2))
                x, channels_in = _split_block(maker, x, width), width
            scales.append((x, width))
    with maker.scope("neck"):
        x, channels_in = scales[-1]
        levels = [(x, channels_in)]
        for number, (skip, width) in enumerate(scales[-2:0:-1]):
            with maker.scope(f"up{number}"):
                x = maker.node("Resize", x, "", maker.constant([1, 1, 2, 2], "f4"), mode="nearest")
                with maker.scope("fuse"):
                    x = maker.silu(
                        maker.conv(maker.node("Concat", x, skip, axis=1), channels_in + width, width, kernel=1)
                    )
                x, channels_in = _split_block(maker, x, width), width
            levels.append((x, channels_in))
    flat = []
    with maker.scope("head"):
        for number, (level, width) in enumerate(levels):
            with maker.scope(f"level{number}"):
                both = []
                for name, channels in (("box", 4), ("cls", CLASSES)):
                    with maker.scope(name, "0"):
                        head = maker.silu(maker.conv(level, width, width))
                    with maker.scope(name, "1"):
                        head = maker.conv(head, width, channels, kernel=1)
                    both.append(maker.node("Reshape", head, maker.constant([1, channels, -1])))
                flat.append(maker.node("Concat", *both, axis=1))
        joined = maker.node("Concat", *flat, axis=2)
        centers, sizes, logits = maker.node("Split", joined, maker.constant([2, 2, CLASSES]), outputs=3, axis=1)
        half = maker.node("Mul", sizes, maker.constant(0.5, "f4"))
        corners = maker.node("Concat", maker.node("Sub", centers, half), maker.node("Add", centers, half), axis=1)
        boxes = maker.node("Transpose", corners, perm=[0, 2, 1])
        scores = maker.node("Sigmoid", logits)
    with maker.scope("nms"):
        limits = maker.constant([100]), maker.constant([0.5], "f4"), maker.constant([0.25], "f4")
        selected = maker.node("NonMaxSuppression", boxes, scores, *limits)
        place = maker.node("Gather", selected, maker.constant([0, 2]), axis=1)
        maker.output("boxes", maker.node("GatherND", boxes, place), ["kept", 4])
        maker.output("scores", maker.node("GatherND", scores, selected), ["kept"])
        maker.output("labels", maker.node("Gather", selected, maker.constant(1), axis=1), ["kept"], INT)
    return maker.model("detector")


def _split_block(maker: Maker, x: str, width: int) -> str:
    """Half of the channels pass by a bottleneck."""
    with maker.scope("csp"):
        left, right = maker.node("Split", x, maker.constant([width // 2, width // 2]), outputs=2, axis=1)
        with maker.scope("m.0"):
            with maker.scope("cv1"):
                inner = maker.silu(maker.conv(right, width // 2, width // 2))
            with maker.scope("cv2"):
                inner = maker.silu(maker.conv(inner, width // 2, width // 2))
            inner = maker.node("Add", right, inner)
        with maker.scope("cv3"):
            return maker.silu(maker.conv(maker.node("Concat", left, inner, axis=1), width, width, kernel=1))
