"""Conversions across the versions in which operators changed their meaning give the numbers of the original."""

import re

import numpy as np
import onnx
import onnx.parser
import pytest

from onnxlab.errors import EditError
from onnxlab.model import Model
from tests.support.oracle import oracle

Case = tuple[str, int, int, dict[str, str]]
_KINDS = {"float": np.float32, "int64": np.int64}


def model_of(line: str, version: int, declared: dict[str, str]) -> onnx.ModelProto:
    """A model of some nodes whose outputs y and m, where it has them, are those of the model."""
    inputs = ", ".join(f"{kind} {name}" for name, kind in declared.items())
    kind = re.search(r"-> (\w+)", line)
    outputs = f"{kind[1] if kind else 'float'} y" + (", bool m" if re.search(r"\bm =", line) else "")
    nodes = line.partition(" ->")[0]
    text = f'<ir_version: 9, opset_import: ["" : {version}]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    proto = onnx.parser.parse_model(text)
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto


def feeds_of(declared: dict[str, str]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    feeds = {}
    for name, kind in declared.items():
        shape = [int(size) for size in re.findall(r"\d+", kind.partition("[")[2])]
        dtype = _KINDS[kind.partition("[")[0]]
        feeds[name] = (3 * random.standard_normal(shape)).astype(dtype)
    return feeds


def computed(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results by onnxruntime; by the model itself below ai.onnx 7, of which onnxruntime knows little."""
    if proto.opset_import[0].version >= 7:
        return list(oracle()(proto.SerializeToString(), feeds).values())
    return list(Model(proto).run(feeds).values())


def check_same(proto: onnx.ModelProto, new: int, declared: dict[str, str]) -> Model:
    """Convert a model; it computes the same then."""
    model = Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    model.convert_opset(new)
    feeds = feeds_of(declared)
    for expected, actual in zip(computed(proto, feeds), computed(model.proto, feeds), strict=True):
        assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    assert not [
        node for node in model.nodes if node.op_type == "Resize" and "" in list(node.proto.input)[:3] and new < 13
    ]
    return model


X = "float[1, 2, 3, 6]"
SCALES = "s = Constant<value = float[4] {{1.0, 1.0, {}, {}}}>() "


def scaled(first: float, second: float, node: str) -> str:
    return SCALES.format(first, second) + node


IMAGES = {"x": X}
ROWS = {"x": "float[2, 3, 4]"}
SAME: list[Case] = [
    *(
        (scaled(first, second, f'y = {op_type}<mode = "{mode}">(x, s)'), old, new, IMAGES)
        for op_type, old in (("Upsample", 9), ("Resize", 10))
        for mode in ("linear", "nearest")
        for first, second in ((1.0, 2.0), (1.5, 2.3))
        for new in (11, 13, 18, 21)
    ),
    ('y = Upsample<mode = "linear", scales = [1.0, 1.0, 1.5, 2.3]>(x)', 7, 13, IMAGES),
    (scaled(1.5, 0.7, "y = Resize(x, s)"), 10, 13, IMAGES),
    (scaled(0.6, 0.7, "y = Resize(x, s)"), 10, 13, IMAGES),
    (scaled(0.6, 0.7, 'y = Resize<mode = "linear">(x, s)'), 10, 13, IMAGES),
    (scaled(1.5, 2.7, 'y = Resize<mode = "linear">(x, s)'), 10, 7, IMAGES),
    (scaled(1.5, 2.0, 'y = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , s)'),
     13, 9, IMAGES),
    (scaled(1.5, 2.0, "y = Resize(x, , s)"), 13, 11, IMAGES),
    ("s = Constant<value = int64[2] {5, 7}>() y = Resize<axes = [2, 3]>(x, , , s)", 18, 11, IMAGES),
    ('s = Constant<value = float[2] {1.5, 2.0}>() y = Resize<axes = [-2, 3], mode = "linear">(x, , s)', 19, 12, IMAGES),
    (scaled(1.5, 2.0, 'y = Resize<coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "floor">'
                      "(x, x, s)"), 11, 13, IMAGES),
    ("y = PRelu(x, s)", 6, 13, {"x": X, "s": "float[2]"}),
    ("y = PRelu(x, s)", 6, 7, {"x": "float[4, 3]", "s": "float[3]"}),
    *(("y = PRelu(x, s)", 9, 6, {"x": X, "s": f"float[{shape}]"}) for shape in ("2, 1, 1", "1, 2, 1, 1", "1", "1, 1")),
    ("y = GroupNormalization<num_groups = 2>(x, s, b)", 18, 21,
     {"x": "float[2, 4, 3, 3]", "s": "float[2]", "b": "float[2]"}),
    ("y = GroupNormalization<num_groups = 2>(x, s, b)", 18, 17,
     {"x": "float[2, 4, 3, 3]", "s": "float[2]", "b": "float[2]"}),
    ("y = GroupNormalization<num_groups = 2>(x, s, b)", 21, 18,
     {"x": "float[2, 4, 3, 3]", "s": "float[4]", "b": "float[4]"}),
    ("s = Constant<value = float[4] {1.0, 1.0, 1.5, 1.5}>() y = GroupNormalization<num_groups = 2>(x, s, s)", 21, 18,
     {"x": "float[2, 4, 3, 3]"}),
    *((f'y = GridSample<mode = "{mode}">(x, s)', old, new, {"x": "float[1, 1, 4, 4]", "s": "float[1, 3, 3, 2]"})
      for old, new, modes in ((20, 16, ("linear", "cubic", "nearest")), (16, 22, ("bilinear", "bicubic", "nearest")))
      for mode in modes),
    *(("y = Add(x, s)", 7, 6, {**ROWS, "s": f"float[{shape}]"})
      for shape in ("2, 3, 4", "4", "3, 1", "2, 1, 1", "1, 3, 1", "1")),
    ("y = Add(s, x)", 7, 6, {**ROWS, "s": "float[3, 1]"}),
    ("y = Sub<broadcast = 1, axis = 1>(x, s)", 6, 13, {**ROWS, "s": "float[3]"}),
    ("y = Mul<broadcast = 1, axis = 0>(x, s)", 1, 13, {**ROWS, "s": "float[2, 3]"}),
    ("y = Add<broadcast = 1>(x, s)", 1, 13, {**ROWS, "s": "float[3, 4]"}),
    ("y = Gemm<broadcast = 1>(a, b, c)", 6, 13, {"a": "float[N2, 3]", "b": "float[3, 4]", "c": "float[4]"}),
    ("y = Gemm(a, b, c)", 7, 6, {"a": "float[2, 3]", "b": "float[3, 4]", "c": "float[1, 4]"}),
    ("y = Gemm(a, b)", 11, 10, {"a": "float[2, 3]", "b": "float[3, 4]"}),
    ('y = Cast<to = "INT32">(x) -> int32', 1, 13, ROWS),
    ("y = Cast<to = 6>(x) -> int32", 13, 1, ROWS),
    ("y = Reshape<shape = [6, -1]>(x)", 1, 8, ROWS),
    ("s = Constant<value = int64[2] {6, 4}>() y = Reshape(x, s)", 13, 4, ROWS),
    ("s = Constant<value = int64[2] {6, 4}>() y = Reshape(x, s)", 13, 8, ROWS),
    ("y, m = Dropout(x)", 13, 11, ROWS),
    ("y = AveragePool<dilations = [1, 1], kernel_shape = [2, 2]>(x)", 19, 18, IMAGES),
    ("y = MaxPool<dilations = [1, 1], ceil_mode = 0, kernel_shape = [2, 2]>(x)", 11, 7, IMAGES),
    ("s = Constant<value_ints = [6, 4]>() y = Reshape(x, s)", 13, 11, ROWS),
    ("s = Constant<value_float = 2.0>() y = Add(x, s)", 13, 6, ROWS),
    ("y = RMSNormalization<axis = -1>(x, s)", 23, 17, {**ROWS, "s": "float[4]"}),
    ("y = RMSNormalization<axis = 1>(x, s)", 23, 17, {**ROWS, "s": "float[3, 4]"}),
    ("p = Constant<value = int64[2] {1, 2}>() a = Constant<value = int64[1] {-1}>() y = Pad(x, p, , a)", 18, 10, ROWS),
    ("i = Constant<value = int64[1] {0}>() r = Constant<value = float[1, 4] {0.0, 0.0, 4.3, 5.0}>() "
     "y = RoiAlign<output_height = 2, output_width = 2>(x, r, i)", 10, 16, IMAGES),
]  # fmt: skip


@pytest.mark.parametrize(("line", "old", "new", "declared"), SAME)
def test_what_another_version_says_otherwise_computes_the_same(
    line: str, old: int, new: int, declared: dict[str, str]
) -> None:
    check_same(model_of(line, old, declared), new, declared)


@pytest.mark.parametrize(
    ("line", "old", "new", "declared", "says"),
    [
        ("y = Resize(x, s)", 10, 11, {"x": X, "s": "float[4]"}, "make them a constant"),
        (scaled(1.5, 2.0, "y = Resize(x, , s)"), 13, 10, IMAGES, "rounds down where it enlarges"),
        (scaled(1.5, 0.7, "y = Resize(x, s)"), 10, 9, IMAGES, "only enlarges"),
        (scaled(1.5, 2.0, 'y = Resize<coordinate_transformation_mode = "half_pixel_symmetric">(x, , s)'), 19, 13,
         IMAGES, "has no coordinate_transformation_mode 'half_pixel_symmetric'"),
        ("y = PRelu(x, s)", 6, 13, {"x": "float[]", "s": "float[2]"}, "the rank of its input is not known"),
        ("y = PRelu(x, s)", 9, 6, {"x": X, "s": "float[6]"}, "one number per channel"),
        ("y = GroupNormalization<num_groups = 2>(x, s, b)", 18, 21,
         {"x": "float[N, C, 4, 4]", "s": "float[2]", "b": "float[2]"}, "the number of its channels is not known"),
        ("y = GridSample(x, s)", 20, 16, {"x": "float[1, 1, 4, 4, 4]", "s": "float[1, 3, 3, 3, 3]"}, "has 5 dims"),
        ("y = Max(x, s)", 8, 7, {**ROWS, "s": "float[4]"}, "not known to have one shape"),
        ("y = Add(x, s)", 7, 6, {**ROWS, "s": "float[2, 1, 4]"}, "consecutive dims of the first only"),
        ("y = Sub(s, x)", 7, 6, {**ROWS, "s": "float[4]"}, "consecutive dims of the first only"),
        ("y = Resize(x)", 10, 13, IMAGES, "does not have 1 input"),
        ("s = Constant<value = float[1] {2.0}>() y = Resize<axes = [7]>(x, , s)", 18, 13, IMAGES, "do not belong"),
        ("y, m = Dropout(x)", 10, 12, ROWS, "the mask of Dropout is not defined"),
        ('y = Pad<mode = "wrap">(x, p)', 19, 13, {**ROWS, "p": "int64[6]"}, "Pad of ai.onnx 13 has no mode 'wrap'"),
        ("y = DequantizeLinear<block_size = 2>(x, s)", 21, 9, {"x": "int64[4]", "s": "float[2]"},
         "1 node cannot be converted to ai.onnx 9: .*ai.onnx 9 has no DequantizeLinear"),
        ("y = DequantizeLinear<block_size = 2>(x, s)", 21, 13, {"x": "int64[4]", "s": "float[2]"},
         "DequantizeLinear of ai.onnx 13: it has no attribute 'block_size'"),
    ],
)  # fmt: skip
def test_what_another_version_cannot_say_is_refused(
    line: str, old: int, new: int, declared: dict[str, str], says: str
) -> None:
    model = Model(model_of(line, old, declared))
    before = model.to_bytes()
    with pytest.raises(EditError, match=says):
        model.convert_opset(new)
    assert model.to_bytes() == before


def test_a_mask_that_nothing_reads_is_no_reason_to_refuse() -> None:
    proto = model_of("y, m = Dropout(x)", 10, ROWS)
    del proto.graph.output[1]
    check_same(proto, 13, ROWS)
    check_same(check_same(proto, 13, ROWS).proto, 9, ROWS)


def test_a_deprecated_group_normalization_runs_by_its_function() -> None:
    declared = {"x": "float[2, 4, 4, 4]", "s": "float[2]", "b": "float[2]"}
    proto, feeds = model_of("y = GroupNormalization<num_groups = 2>(x, s, b)", 18, declared), feeds_of(declared)
    expected = oracle()(proto.SerializeToString(), feeds)["y"]
    np.testing.assert_allclose(Model(proto).run(feeds)["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("version", "op_type"), [(6, "Relu"), (7, "Relu"), (8, "Max")])
def test_a_rule_writes_no_node_that_would_have_to_broadcast_in_an_opset_that_does_not(
    version: int, op_type: str
) -> None:
    model = Model(model_of("y = Relu(x)", version, ROWS))
    model.rewrite("Relu(x) => Max(x, 0.0)")
    assert [node.op_type for node in model.nodes] == [op_type]


def test_a_node_that_makes_one_value_twice_is_refused_in_words() -> None:
    proto = model_of("y = CastLike (x, like)", 25, {"x": "int64[2]", "like": "float[2]"})
    proto.graph.node[0].output.append("y")
    with pytest.raises(EditError, match=r"nothing makes it|cannot be converted"):
        Model(proto).convert_opset(21)


PLACE = "z = Constant<value_ints = [3, 2]>() s = Shape<start = {0}, end = {1}>(x) k = Concat<axis = 0>(s, z)"
RESHAPES = {
    "a constant without 0": ("float[n,6] x", "k = Constant<value_ints = [-1, 2, 3]>()", True),
    "a constant with 0": ("float[0,6] x", "k = Constant<value_ints = [2, 0, 3]>()", False),
    "the size of the same place": ("float[n,6] x", PLACE.format(0, 1), True),
    "a size of another place": ("float[6,n] x", PLACE.format(1, 2), False),
    "sizes that are not known": ("float[4,6] x, int64[2] i", "k = Abs(i)", False),
}
"""{what a target is: inputs, its nodes, whether no 0 in it can be where the input has another size}."""


@pytest.mark.parametrize("kind", RESHAPES)
@pytest.mark.parametrize("new", [13, 8])
def test_a_reshape_that_has_no_zeros_to_allow_is_an_older_one(kind: str, new: int) -> None:
    """Seen: every Reshape of torch.export allows zeros, and its models could not be converted below ai.onnx 14."""
    inputs, nodes, converts = RESHAPES[kind]
    text = f"g ({inputs}) => (float[?,?,?] y) {{ {nodes} y = Reshape<allowzero = 1>(x, k) }}"
    model = Model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'))
    if not converts:
        with pytest.raises(EditError, match="where its target has a 0, and this one may have one"):
            model.convert_opset(new)
        return
    for rows in (4, 0) if "place" in kind else (4,):
        feeds = {"x": np.arange(6 * rows, dtype=np.float32).reshape(rows, 6)}
        before = model.run(feeds)["y"]
        model.convert_opset(new)
        np.testing.assert_array_equal(model.run(feeds)["y"], before)
        assert "allowzero" not in [attribute.name for attribute in model.find("Reshape")[0].proto.attribute]
        model.undo()
