"""Patterns of nodes that become one step: found however they are written, and left alone where they do not suit."""

import numpy as np
import onnx.parser
import pytest

from onnxlab.errors import TransformError
from onnxlab.execution.base.provider import Part
from onnxlab.execution.numba.rules.fusion.fusions import FUSIONS
from onnxlab.execution.numba.rules.part_matcher import PartMatcher
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.query.patterns.parser import parse
from onnxlab.graph.query.patterns.syntax_tree import NodePattern, Number, Rest
from tests.execution.numba.rules.test_attention import fusions
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, check

SHAPES = {"q": (2, 3, 5, 8), "k": (2, 3, 8, 7), "v": (2, 3, 7, 9), "mask": (2, 1, 5, 7), "x": (3, 5, 17),
          "scale": (17,), "bias": (17,)}  # fmt: skip
CONSTANTS = {"divisor": np.float32(3.0), "epsilon": np.float32(1e-3)}
FACTOR = np.float32(0.3)


class Writer:
    """A model of one term of a pattern."""

    def __init__(self, term, opset=17, constants=()):
        self.recipe, self.feeds, self.names = Recipe(opset), {}, {}
        self.rng = np.random.default_rng(0)
        self.constants = dict(constants)
        self.scalar = "MatMul" in str(term)
        self.model = self.recipe.model(self.write(term))

    def write(self, term):
        if isinstance(term, Number):
            return self.recipe.constant(np.float32(self.constants.get(term.value, term.value)))
        if not isinstance(term, NodePattern):
            return self.variable(term.name)
        if term.name in self.names:
            return self.names[term.name]
        operands = [self.write(operand) for operand in term.inputs if not isinstance(operand, Rest)]
        attributes = {"ReduceMean": {"axes": [-1]}, "Softmax": {"axis": -1}}.get(term.op_type, {})
        output = self.recipe.node(term.op_type, *operands, **attributes)
        if term.name:
            self.names[term.name] = output
        return output

    def variable(self, name):
        if name not in self.names:
            if name in CONSTANTS or (name == "scale" and self.scalar):
                self.names[name] = self.recipe.constant(CONSTANTS.get(name, FACTOR))
            else:
                self.feeds[name] = self.rng.standard_normal(SHAPES[name], dtype=np.float32)
                self.names[name] = self.recipe.input(name, self.feeds[name])
        return self.names[name]


ROWS = [(fusion.name, term) for fusion in FUSIONS for text in fusion.patterns for term in parse(text)]


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in ROWS))
def test_every_row_of_the_table_fuses_to_what_numpy_computes(name):
    for row, term in ROWS:
        if row == name:
            written = Writer(term)
            assert fusions(written.model, written.feeds) == [name], term
            check(written.model, written.feeds, 1e-5)


def test_infinities_and_nan_come_out_of_a_gelu_as_in_numpy():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -20.0, 20.0, 1e-30], np.float32)
    for op_type, options in (("Gelu", {}), ("Gelu", {"approximate": "tanh"}), ("Mish", {}), ("Tanh", {}), ("Erf", {})):
        recipe = Recipe(21)
        check(recipe.model(recipe.node(op_type, recipe.input("x", x), **options)), {"x": x})


def test_another_constant_is_no_gelu():
    term = parse("Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1)), 0.5)")[0]
    written = Writer(term, constants={1.4142135: 2.0})
    check(written.model, written.feeds, 1e-5)


def test_a_mean_of_other_axes_is_no_norm():
    recipe = Recipe(17)
    x = np.random.default_rng(1).standard_normal((3, 5, 4), dtype=np.float32)
    name = recipe.input("x", x)
    d = recipe.node("Sub", name, recipe.node("ReduceMean", name, axes=[1]))
    spread = recipe.node("ReduceMean", recipe.node("Mul", d, d), axes=[1])
    root = recipe.node("Sqrt", recipe.node("Add", spread, recipe.constant(np.float32(0.1))))
    check(recipe.model(recipe.node("Div", d, root)), {"x": x}, 1e-5)


def test_operators_that_do_nothing_may_stand_in_between():
    recipe = Recipe(17)
    x = np.random.default_rng(2).standard_normal((3, 5), dtype=np.float32)
    name = recipe.input("x", x)
    curve = recipe.node("Cast", recipe.node("Sigmoid", recipe.node("Identity", name)), to=1)
    model = recipe.model(recipe.node("Mul", curve, name))
    assert fusions(model, {"x": x}) == ["Silu"]
    check(model, {"x": x}, 1e-6)


def test_what_is_read_elsewhere_is_not_swallowed():
    recipe = Recipe(17)
    x = np.random.default_rng(3).standard_normal((3, 5), dtype=np.float32)
    name = recipe.input("x", x)
    inner = recipe.node("Sigmoid", name)
    model = recipe.model(recipe.node("Mul", inner, name), recipe.node("Neg", inner))
    both = Both(model)
    both.run({"x": x})
    assert fusions(model, {"x": x}) == []


def test_a_pattern_that_is_none_is_refused():
    for text in ("Mul(x", "x.y", "Mul(x, [2)"):
        with pytest.raises(TransformError):
            parse(text)


@pytest.mark.parametrize("large", [False, True])
def test_products_of_one_value_are_one_while_they_are_small(large):
    rng = np.random.default_rng(4)
    recipe = Recipe(17)
    x = rng.standard_normal((2, 300 if large else 5, 65), dtype=np.float32)
    name, outputs = recipe.input("x", x), []
    for columns, bias, scale in ((33, True, 0.3), (17, False, None), (300, True, None)):
        y = recipe.node("MatMul", name, recipe.constant(rng.standard_normal((65, columns), dtype=np.float32)))
        y = recipe.node("Add", y, recipe.constant(rng.standard_normal(columns, dtype=np.float32))) if bias else y
        y = recipe.node("Mul", y, recipe.constant(np.float32(scale))) if scale else y
        outputs.append(recipe.node("Tanh", recipe.node("Neg", y)))  # read before the next is made
    model = recipe.model(*outputs)
    assert fusions(model, {"x": x}) == ["products of one value"]
    check(model, {"x": x}, 1e-5)
    both = Both(model)
    both.run({"x": x})
    (plan,) = plans_of(both.regions()[0]).values()
    assert plan.records == (6 if large else 4)


def test_products_of_one_value_by_two_names_are_left_apart():
    """The second name is that of a node behind the first product, in whose place both would be lowered."""
    rng, recipe = np.random.default_rng(7), Recipe()
    x = rng.standard_normal((2, 600, 64), dtype=np.float32)
    source = recipe.node("Relu", recipe.input("x", x))
    w = [recipe.constant(rng.standard_normal((64, 64), dtype=np.float32)) for _ in range(2)]
    first = recipe.node("MatMul", source, w[0])
    second = recipe.node("MatMul", recipe.node("Identity", source), w[1])
    both = Both(recipe.model(first, second))
    ours, theirs = both.run({"x": x})
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-4)
    assert [region.reason for region in both.regions()] == [""]


def test_products_whose_matrices_are_computed_are_left_apart():
    rng = np.random.default_rng(5)
    recipe = Recipe(17)
    x, w = (rng.standard_normal((8, 8), dtype=np.float32) for _ in range(2))
    names = [recipe.input("x", x), recipe.input("w", w)]
    model = recipe.model(recipe.node("MatMul", *names), recipe.node("MatMul", names[0], recipe.constant(w)))
    assert fusions(model, {"x": x, "w": w}) == []
    check(model, {"x": x, "w": w}, 1e-5)


@pytest.mark.parametrize("simple", [False, True])
def test_skip_norms_with_their_bias_and_their_sum(simple):
    rng = np.random.default_rng(6)
    feeds = {"x": (3, 5, 33), "skip": (3, 5, 33), "gamma": (33,)} | ({} if simple else {"beta": (33,)}) | {"b": (33,)}
    feeds = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in feeds.items()}
    op_type = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    for skip, bias, outputs in ((feeds["skip"], True, 4), (feeds["skip"], False, 4), (feeds["skip"][:1], True, 1),
                                (feeds["skip"], False, 1)):  # fmt: skip
        fed = {name: array for name, array in (feeds | {"skip": skip}).items() if bias or name != "b"}
        recipe = Recipe(21)
        names = [recipe.input(name, array) for name, array in fed.items()]
        outputs_of_node = recipe.nodes_of(op_type, outputs, *names, domain="com.microsoft", epsilon=1e-3)
        check(recipe.model(*outputs_of_node[::3]), fed, 1e-5)


def test_a_simplified_norm_along_several_axes():
    rng = np.random.default_rng(7)
    feeds = {"x": rng.standard_normal((2, 5, 7), dtype=np.float32), "scale": np.ones((5, 7), np.float32)}
    recipe = Recipe(21)
    names = [recipe.input(name, array) for name, array in feeds.items()]
    check(recipe.model(recipe.node("SimplifiedLayerNormalization", *names, axis=1)), feeds, 1e-5)


def test_values_that_are_the_scores_themselves_are_no_attention():
    recipe, x = Recipe(), np.random.default_rng(6).standard_normal((3, 3)).astype(np.float32)
    eye = recipe.constant(np.eye(3, dtype=np.float32))
    scores = recipe.node("MatMul", recipe.input("x", x, ["n", 3]), eye)
    spread = recipe.node("Softmax", recipe.node("Add", scores, eye))
    check(recipe.model(recipe.node("MatMul", spread, scores)), {"x": x})


@pytest.mark.parametrize(("text", "values"), [
    ("Add(x, y:const)", {"x": "e", "y": "w"}), ("Add(x, y:const float32 [n, 4])", {"x": "e", "y": "w"}),
    ("Add(x, y:const float16)", None), ("Add(x, y:const [n])", None), ("Add(x:const, y:const)", None),
    ("Add|Sub(x, y)", {"x": "w", "y": "e"}), ("Sub|Div(x, y)", None),
    ("Add(w, Clip(x, min?, max?))", {"w": "w", "x": "s"}),
    ("Add(w, Clip(Softmax(x, axis=-1)))", {"w": "w", "x": "x"}), ("Add(w, Clip(Softmax(x, axis=1)))", None),
    ("Add(w, Clip(Softmax(x:once)))", None), ("Add(w, Clip(Softmax(Split(y).1)))", None),
    ("Add(w, com.microsoft::Clip(x))", None), ("Add(w, *rest)", {"w": "w"}),
])  # fmt: skip
def test_a_part_is_asked_what_a_live_graph_is_asked(text, values):
    weights = f"<float[3,4] w = {{{','.join(['1'] * 12)}}}>"
    body = "{ s = Softmax(x) e = Clip(s) y = Add(w, e) z = Neg(x) }"
    graph = f"g (float[3,4] x) => (float[3,4] y, float[3,4] z) {weights} {body}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}')
    snapshot = ModelGraph(model).snapshot()
    main = snapshot.main
    constants = {name: snapshot.array(vid) for name, vid in main.initializers.items()}
    matcher = PartMatcher(Part("numba", main.nodes, main.inputs, main.outputs), constants)
    root = next(node for node in main.nodes if node.op_type == "Add")
    matches = [match for way in parse(text) if (match := matcher.find(way, root)) is not None]
    assert [dict(match.values) for match in matches] == ([] if values is None else [values])
