"""A detector with suppression."""

import onnx

from bench.made.maker import INT, Maker

CLASSES = 8


def detector() -> onnx.ModelProto:
    """Backbone, neck and heads on three scales, boxes decoded, and NonMaxSuppression with what gathers its results."""
    made = Maker()
    x = made.input("images", [1, 3, 160, 160])
    given, scales = 3, []
    with made.scope("backbone"):
        with made.scope("stem"):
            x, given = made.silu(made.conv(x, 3, 8, stride=2)), 8
        for stage, width in enumerate((16, 16, 32, 32), start=1):
            with made.scope(f"stage{stage}"):
                with made.scope("conv"):
                    x = made.silu(made.conv(x, given, width, stride=2))
                x, given = _split_block(made, x, width), width
            scales.append((x, width))
    with made.scope("neck"):
        x, given = scales[-1]
        levels = [(x, given)]
        for number, (skip, width) in enumerate(scales[-2:0:-1]):
            with made.scope(f"up{number}"):
                x = made.node("Resize", x, "", made.constant([1, 1, 2, 2], "f4"), mode="nearest")
                with made.scope("fuse"):
                    x = made.silu(made.conv(made.node("Concat", x, skip, axis=1), given + width, width, kernel=1))
                x, given = _split_block(made, x, width), width
            levels.append((x, given))
    flat = []
    with made.scope("head"):
        for number, (level, width) in enumerate(levels):
            with made.scope(f"level{number}"):
                both = []
                for name, channels in (("box", 4), ("cls", CLASSES)):
                    with made.scope(name, "0"):
                        each = made.silu(made.conv(level, width, width))
                    with made.scope(name, "1"):
                        each = made.conv(each, width, channels, kernel=1)
                    both.append(made.node("Reshape", each, made.constant([1, channels, -1])))
                flat.append(made.node("Concat", *both, axis=1))
        joined = made.node("Concat", *flat, axis=2)
        centers, sizes, logits = made.node("Split", joined, made.constant([2, 2, CLASSES]), outputs=3, axis=1)
        half = made.node("Mul", sizes, made.constant(0.5, "f4"))
        corners = made.node("Concat", made.node("Sub", centers, half), made.node("Add", centers, half), axis=1)
        boxes = made.node("Transpose", corners, perm=[0, 2, 1])
        scores = made.node("Sigmoid", logits)
    with made.scope("nms"):
        limits = made.constant([100]), made.constant([0.5], "f4"), made.constant([0.25], "f4")
        kept = made.node("NonMaxSuppression", boxes, scores, *limits)
        place = made.node("Gather", kept, made.constant([0, 2]), axis=1)
        made.output("boxes", made.node("GatherND", boxes, place), ["kept", 4])
        made.output("scores", made.node("GatherND", scores, kept), ["kept"])
        made.output("labels", made.node("Gather", kept, made.constant(1), axis=1), ["kept"], INT)
    return made.model("detector")


def _split_block(made: Maker, x: str, width: int) -> str:
    """Half of the channels pass by a bottleneck."""
    with made.scope("csp"):
        one, two = made.node("Split", x, made.constant([width // 2, width // 2]), outputs=2, axis=1)
        with made.scope("m.0"):
            with made.scope("cv1"):
                inner = made.silu(made.conv(two, width // 2, width // 2))
            with made.scope("cv2"):
                inner = made.silu(made.conv(inner, width // 2, width // 2))
            inner = made.node("Add", two, inner)
        with made.scope("cv3"):
            return made.silu(made.conv(made.node("Concat", one, inner, axis=1), width, width, kernel=1))
