"""Models made to hurt, a few hundred bytes each, by name: what they ask for is 2^62 of something, or endless."""

from collections.abc import Callable

import onnx
from onnx import TensorProto, helper, parser

HUGE = 2**62


def nested_functions(levels: int, cyclic: bool = False) -> onnx.ModelProto:
    """Each level calls the one below twice."""
    functions = []
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    for level in range(levels):
        below = f"f{level - 1}" if level else (f"f{levels - 1}" if cyclic else "Relu")
        domain = "local" if level or cyclic else ""
        nodes = [
            helper.make_node(below, ["x"], ["m"], domain=domain),
            helper.make_node(below, ["m"], ["y"], domain=domain),
        ]
        functions.append(helper.make_function("local", f"f{level}", ["x"], ["y"], nodes, imports))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    call = helper.make_node(f"f{levels - 1}", ["x"], ["y"], domain="local")
    graph = helper.make_graph([call], "g", [x], [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, functions=functions, opset_imports=imports, ir_version=9)


def chain(op_type: str, length: int, start: str = "x", **attributes: object) -> onnx.ModelProto:
    """op(v, v) again and again, from x = float[a, 3], or from its shape."""
    nodes = [helper.make_node("Shape", ["x"], ["v0"])] if start == "shape" else []
    nodes += [helper.make_node("Identity", ["x"], ["v0"])] if start == "x" else []
    nodes += [helper.make_node(op_type, [f"v{n}"] * 2, [f"v{n + 1}"], **attributes) for n in range(length)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", 3])
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name=f"v{length}")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def text(nodes: str, inputs: str = "float[a, 3] x", initializers: str = "int64 none = {0}") -> onnx.ModelProto:
    head = '<ir_version: 9, opset_import: ["" : 20]>'
    return parser.parse_model(f"{head} g ({inputs}) => (y) <{initializers}> {{ {nodes} }}")


def loops(depth: int, count: str) -> onnx.ModelProto:
    """Loops in loops, each of which runs `count` times and carries a value that grows."""
    nodes = "y = Concat <axis = 0> (x, x)"
    for level in range(depth):
        inner = (
            nodes.replace("(x, x)", f"(w{level}, x)").replace("y =", f"u{level} =", 1).replace(", x)", f", w{level})")
        )
        nodes = (
            f"y = Loop ({count}, go, x) <body = b{level} (int64 i{level}, bool d{level}, float[n] w{level}) "
            f"=> (bool e{level}, float[n] u{level}) {{ e{level} = Identity(d{level}) {inner} }}>"
        )
    return text(nodes, initializers=f"bool go = {{1}}, int64 huge = {{{HUGE}}}")


def wide(count: int) -> onnx.ModelProto:
    """One value that is read by very many nodes, each with an unknown size of its own."""
    nodes = [helper.make_node("NonZero", ["x"], [f"n{number}"]) for number in range(count)]
    nodes.append(helper.make_node("Concat", [f"n{number}" for number in range(count)], ["y"], axis=1))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", 3])
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "30 levels of functions": lambda: nested_functions(30),
    "400 levels of functions": lambda: nested_functions(400),
    "a function that calls itself": lambda: nested_functions(1, cyclic=True),
    "five functions in a circle": lambda: nested_functions(5, cyclic=True),
    "a shape doubled 60 times": lambda: chain("Concat", 60, "shape", axis=0),
    "a tensor doubled 80 times": lambda: chain("Concat", 80, axis=0),
    "a shape squared 60 times": lambda: chain("Mul", 60, "shape"),
    "a shape added 200 times": lambda: chain("Add", 200, "shape"),
    "a shape to the power of itself": lambda: chain("Pow", 20, "shape"),
    "an endless loop": lambda: loops(1, ""),
    "a loop of 2^62": lambda: loops(1, "huge"),
    "20 loops in loops": lambda: loops(20, "huge"),
    "10^12 elements": lambda: text("y = ConstantOfShape(s)", initializers=f"int64[2] s = {{{10**6}, {10**6}}}"),
    "2^186 elements": lambda: text(
        "t = ConstantOfShape(s) z = Size(t) w = Shape(t) y = Reshape(t, m)",
        initializers=f"int64[3] s = {{{HUGE}, {HUGE}, {HUGE}}}, int64[1] m = {{-1}}",
    ),
    "expand to 2^62": lambda: text("y = Expand(x, s)", initializers=f"int64[3] s = {{{HUGE}, 1, 1}}"),
    "tile by 2^62": lambda: text("y = Tile(x, s)", initializers=f"int64[2] s = {{{HUGE}, {HUGE}}}"),
    "pad by 2^62": lambda: text("y = Pad(x, s)", initializers=f"int64[4] s = {{{HUGE}, {HUGE}, {HUGE}, {HUGE}}}"),
    "one hot of 2^62": lambda: text(
        "i = Cast <to = 7> (x) y = OneHot(i, d, v)", initializers=f"int64 d = {{{HUGE}}}, float[2] v = {{0, 1}}"
    ),
    "a range of 2^62": lambda: text(
        "r = Range(none, d, one) y = Gather(r, none)",
        initializers=f"int64 none = {{0}}, int64 one = {{1}}, int64 d = {{{HUGE}}}"
    ),
    "a range of floats of 10^300": lambda: text(
        "y = Range(none, d, one)", initializers="double none = {0}, double one = {1e-300}, double d = {1e300}"
    ),
    "split into 2^62": lambda: text(f"y = Split <num_outputs = {HUGE}> (x)"),
    "blocks of 2^62": lambda: text(f"y = DepthToSpace <blocksize = {HUGE}> (x)", "float[a, b, c, d] x"),
    "a kernel of 2^62": lambda: text(f"y = MaxPool <kernel_shape = [{HUGE}, 1]> (x)", "float[a, b, c, d] x"),
    "strides of 2^62": lambda: text(
        f"y = ConvTranspose <strides = [{HUGE}, {HUGE}]> (x, w)", "float[a, 1, 9, 9] x, float[1, 1, 3, 3] w"
    ),
    "an eye of 2^62": lambda: text(
        "s = ConstantOfShape(z) y = EyeLike(s)", initializers=f"int64[2] z = {{{HUGE}, {HUGE}}}"
    ),
    "an axis of 2^62": lambda: text(f"y = Concat <axis = {HUGE}> (x, x)"),
    "axes of 2^62": lambda: text("y = Unsqueeze(x, s)", initializers=f"int64[2] s = {{{HUGE}, {-HUGE}}}"),
    "an einsum of 52 letters": lambda: text(
        f'y = Einsum <equation = "{",".join("abcdefghijklmnopqrstuvwxyz")}->{"abcdefghijklmnopqrstuvwxyz"}"> '
        f'({", ".join(["v"] * 26)})', "float[1000] v"
    ),
    "a rank of 100,000": lambda: text("y = ConstantOfShape(s)", "int64[100000] s"),
    "a rank of 2^62": lambda: text("y = ConstantOfShape(s)", f"int64[{HUGE}] s"),
    "1,000 unknown sizes in one": lambda: wide(1000),
    "an equation that onnx reads for ever": lambda: text('y = Einsum <equation = "i.,j"> (x, x)'),
    "a window of 2^62": lambda: text("y = HannWindow(d)", initializers=f"int64 d = {{{HUGE}}}"),
}  # fmt: skip
