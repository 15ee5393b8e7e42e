"""Random regions of a dozen nodes, with what the standard set looks for planted among them."""

import numpy as np
import onnx
import onnx.parser

STEPS = (
    "{} = Identity({})", "{} = Relu({})", "{} = Neg({})", "{} = Abs({})", "{} = Sigmoid({})", "{} = Exp({})",
    "{} = Transpose<perm = [1, 0]>({})", "{} = Add({}, zero)", "{} = Mul({}, one)", "{} = Mul({}, half)",
    "{} = Cast<to = 11>({})|{} = Cast<to = 1>({})", "{} = Unsqueeze({}, p)|{} = Squeeze({}, p)", "{} = Reshape({}, s)",
    "{} = MatMul({}, w)|{} = Add({}, r)", "{} = MatMul({}, w)|{} = Mul({}, r)", "{} = Gemm({}, w)|{} = Add({}, r)",
    "{} = Transpose<perm = [1, 0]>({})|{} = Relu({})|{} = Transpose<perm = [1, 0]>({})",
    "{} = Transpose<perm = [1, 0]>({})|{} = Mul({}, r)|{} = Transpose<perm = [1, 0]>({})",
    "{} = Max({}, zero)|{} = Min({}, six)", "{} = Concat<axis = 0>({})", "{} = Dropout({})", "{} = Tanh({})",
    "{} = Slice({}, z0, z4, p)|{} = Slice({}, z0, z3, p1)|{} = Pad({}, pads)", "{} = Softmax({})",
    "{} = LayerNormalization({}, r)|{} = Add({}, r)", "{} = Erf({})", "{} = Gelu({})",
)  # fmt: skip
WHOLE = (
    "{0}a = Sigmoid({1}) {0} = Mul({0}a, {1})",
    "{0}a = Div({1}, root) {0}b = Erf({0}a) {0}c = Add({0}b, one) {0}d = Mul({1}, {0}c) {0} = Mul({0}d, half)",
    "{0}m = ReduceMean({1}, last) {0}d = Sub({1}, {0}m) {0}q = Mul({0}d, {0}d) {0}v = ReduceMean({0}q, last)"
    " {0}w = Add({0}v, eps) {0}s = Sqrt({0}w) {0}n = Div({0}d, {0}s) {0} = Mul({0}n, r)",
    "{0}a = Add({1}, three) {0}c = Clip({0}a, zero, six) {0}p = Mul({1}, {0}c) {0} = Div({0}p, six)",
)
CONSTANTS = """
    zero = Constant<value = float {0}>() one = Constant<value = float {1}>() half = Constant<value = float {0.5}>()
    three = Constant<value = float {3}>() six = Constant<value = float {6}>()
    root = Constant<value = float {1.4142135}>()
    eps = Constant<value = float {0.00001}>() p = Constant<value_ints = [0]>() p1 = Constant<value_ints = [1]>()
    last = Constant<value_ints = [-1]>() z0 = Constant<value_ints = [0]>() z3 = Constant<value_ints = [3]>()
    z4 = Constant<value_ints = [4]>() pads = Constant<value_ints = [0, 0, 0, 1]>() s = Shape(x)
    r = Constant<value = float[4] {0.5, 1.5, -0.75, 1.25}>()
    w = Constant<value = float[4,4] {1, 0.5, 0, -1, 0.25, 1, 2, 0, 0, 0, 1, 0.5, -0.5, 1, 0, 1}>()
"""


def region(seed: int) -> onnx.ModelProto:
    """A random model of one input [4, 4]."""
    rng = np.random.default_rng(seed)
    names, lines, number = ["x"], [], 0
    for _ in range(int(rng.integers(3, 9))):
        source = names[int(rng.integers(max(0, len(names) - 4), len(names)))]
        if rng.random() < 0.3:
            number += 1
            lines.append(str(rng.choice(WHOLE)).format(f"v{number}", source))
            source = f"v{number}"
        else:
            for part in str(rng.choice(STEPS)).split("|"):
                number += 1
                lines.append(part.format(f"v{number}", source))
                source = f"v{number}"
        if rng.random() < 0.25 and len(names) > 1:
            number += 1
            operator = rng.choice(["Add", "Mul", "Sub", "Max"])
            lines.append(f"v{number} = {operator}({source}, {rng.choice(names)})")
            source = f"v{number}"
        names.append(source)
    body = " ".join([CONSTANTS, *lines, f"y = Neg({names[-1]})"])
    text = f'<ir_version: 9, opset_import: ["" : 20]> g (float[4,4] x) => (float[4,4] y) {{ {body} }}'
    return onnx.parser.parse_model(text)
