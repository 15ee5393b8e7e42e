"""Custom operators in inference: rules, bodies, versions, OpSchemas; models that are open when they come and go."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs, parser

import onnxlab
from onnxlab import ops, schemas
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.schemas import AttributeSchema, FormalParameter, Schema
from onnxlab.shapes import Fact, FactError, TensorFact

DOMAIN = "my.ops"
X, Y = FormalParameter("X", type_str="T"), FormalParameter("Y", type_str="T")
FLOATS = {"T": ("tensor(float)", "tensor(double)")}


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    for domain, op_type in list(schemas._custom):
        ops.unregister(domain, op_type)


def model(text: str, version: int = 1) -> onnx.ModelProto:
    """A graph from x = float[n, 4] to y."""
    head = f'<ir_version: 9, opset_import: ["" : 20, "{DOMAIN}" : {version}]>'
    return parser.parse_model(f"{head} g (float[n, 4] x) => (y) {{ {text} }}")


def inferred(text: str, version: int = 1) -> tuple[str, list[Any]]:
    """The fact of y as text, and the diagnostics."""
    graph = ModelGraph(model(text, version))
    inference = Inference(graph)
    return str(inference.fact(graph.resolve_value("y"))), inference.diagnostics


def doubled(ctx: Any, attributes: Any, x: Fact) -> Fact:
    return TensorFact(x.elem_type, (x.shape[0] * attributes["by"], *x.shape[1:]))  # type: ignore[attr-defined]


def declare(since: int = 1, **more: Any) -> Schema:
    by = AttributeSchema("by", "int", default=2)
    return Schema(DOMAIN, "Grow", since, (X,), (Y,), {"by": by}, FLOATS, **more)


def test_a_rule_and_the_default_of_an_attribute() -> None:
    ops.register(declare(), infer=doubled)
    assert inferred(f"y = {DOMAIN}.Grow (x)") == ("float32[2*n,4]", [])
    assert inferred(f"y = {DOMAIN}.Grow <by = 3> (x)") == ("float32[3*n,4]", [])


def test_each_version_has_its_own_rule() -> None:
    ops.register(declare(1), infer=doubled)
    ops.register(declare(3))
    ops.register(declare(5), infer=lambda ctx, attributes, x: x)
    facts = [inferred(f"y = {DOMAIN}.Grow (x)", version)[0] for version in (1, 2, 3, 4, 5, 9)]
    assert facts == ["float32[2*n,4]"] * 2 + ["float32[?]"] * 2 + ["float32[n,4]"] * 2


def test_arity_and_types_come_from_the_formals() -> None:
    more = (FormalParameter("A", "optional", "T"), FormalParameter("B", "variadic", "tensor(int64)"))
    ops.register(Schema(DOMAIN, "Many", 1, (X, *more), (Y,), {}, FLOATS), infer=lambda ctx, attributes, x, *rest: x)
    schema = schemas.find(DOMAIN, "Many", 1)
    assert schema is not None
    assert (schema.min_input, schema.max_input, schema.max_output) == (1, schemas.UNBOUNDED, 1)
    assert inferred(f"i = Shape(x) y = {DOMAIN}.Many (x, x, i, i)") == ("float32[n,4]", [])
    (problem,) = inferred(f"y = {DOMAIN}.Many (x, x, x)")[1]
    assert (problem.code, problem.expected, problem.found) == ("type-mismatch", "tensor(int64)", "tensor(float)")
    (problem,) = inferred(f"y = {DOMAIN}.Many ()")[1]
    assert (problem.code, problem.expected, problem.found) == ("arity", "at least 1", "0")


@pytest.mark.parametrize("schema", [
    Schema(DOMAIN, "", 1), Schema(DOMAIN, "A", 0), Schema(DOMAIN, "A", 1, (X,)),
    Schema(DOMAIN, "A", 1, (FormalParameter("X", "variadic"), FormalParameter("Y"))),
    Schema(DOMAIN, "A", 1, function=parser.parse_function('<domain: "d", opset_import: ["" : 20]> f (a) => (b) '
                                                          "{ b = Relu(a) }")),
], ids=["no name", "no version", "no constraint", "variadic first", "more formals in the body"])  # fmt: skip
def test_schemas_that_contradict_themselves_are_refused(schema: Schema) -> None:
    with pytest.raises(ValueError, match=r"schema|constraint|variadic"):
        ops.register(schema)
    assert schemas.find(DOMAIN, "A", 1) is None


def body(text: str) -> onnx.FunctionProto:
    return parser.parse_function(f'<domain: "any", opset_import: ["" : 20, "{DOMAIN}" : 1]> {text}')


def test_a_function_body_infers_and_runs() -> None:
    function = body("Grow <by> (a) => (b) { t = Constant <value_int: int = @by> () o = Constant <value_ints = [0]> () "
                    "u = Unsqueeze(t, o) one = Constant <value_ints = [1]> () r = Concat <axis = 0> (u, one) "
                    "b = Tile(a, r) }")  # fmt: skip
    ops.register(declare(function=function))
    assert inferred(f"y = {DOMAIN}.Grow (x)") == ("float32[2*n,4]", [])
    assert inferred(f"z = Relu(x) y = {DOMAIN}.Grow <by = 5> (z)") == ("float32[5*n,4]", [])
    x = np.ones((3, 4), np.float32)
    assert onnxlab.run(model(f"y = {DOMAIN}.Grow <by = 3> (x)"), {"x": x})["y"].shape == (9, 4)


def test_unknown_sizes_of_a_body_belong_to_the_node() -> None:
    ops.register(Schema(DOMAIN, "Found", 1, (X,), (Y,), {}, {"T": ("tensor(float)", "tensor(int64)")},
                        function=body("Found (a) => (b) { c = NonZero(a) b = Cast <to = 1> (c) }")))  # fmt: skip
    fact, problems = inferred(f"p = {DOMAIN}.Found (x) q = {DOMAIN}.Found (x) y = Concat <axis = 1> (p, q)")
    assert (fact, problems) == ("float32[2,p.1 + q.1]", [])


def test_what_is_wrong_in_a_body_is_told() -> None:
    ops.register(declare(function=body("Grow (a) => (b) { b = MatMul(a, a) }")))
    graph = ModelGraph(parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20, "{DOMAIN}" : 1]> g (float[3, 4] x) => (y) {{ y = {DOMAIN}.Grow (x) }}'
    ))  # fmt: skip
    (problem,) = Inference(graph).diagnostics
    assert problem.code == "shape-mismatch"
    assert "in its body" in problem.message
    assert problem.node


def test_a_body_that_leads_back_to_itself_is_refused() -> None:
    ops.register(declare(function=body(f"Grow (a) => (b) {{ b = {DOMAIN}.Other(a) }}")))
    ops.register(Schema(DOMAIN, "Other", 1, (X,), (Y,), {}, FLOATS,
                        function=body(f"Other (a) => (b) {{ b = {DOMAIN}.Grow(a) }}")))  # fmt: skip
    _, problems = inferred(f"y = {DOMAIN}.Grow (x)")
    assert [problem.code for problem in problems] == ["recursive-function"]


def test_an_op_schema_of_onnx_is_taken_with_its_inference() -> None:
    schema = defs.OpSchema(
        "Grow", DOMAIN, 1, inputs=[defs.OpSchema.FormalParameter("x", "tensor(float)")],
        outputs=[defs.OpSchema.FormalParameter("y", "tensor(float)")],
    )  # fmt: skip
    schema.set_type_and_shape_inference_function(lambda ctx: ctx.set_output_type(0, ctx.get_input_type(0)))
    ops.register(schema)
    assert inferred(f"y = {DOMAIN}.Grow (x)") == ("float32[n,4]", [])


def test_open_models_notice_operators_that_come_and_go() -> None:
    open_model = onnxlab.Model(model(f"y = {DOMAIN}.Grow (x)"))

    def fact() -> str:
        return str(open_model.inference.fact(open_model.graph.resolve_value("y")))

    assert fact() == "?"
    ops.register(declare(), infer=doubled)
    assert fact() == "float32[2*n,4]"
    ops.unregister(DOMAIN, "Grow")
    assert fact() == "?"
    assert [problem.code for problem in open_model.inference.diagnostics] == ["unknown-operator"]


def test_a_custom_operator_sees_elements_and_refuses() -> None:
    def only_two(ctx: Any, attributes: Any, shape: Fact) -> Fact:
        assert isinstance(shape, TensorFact)
        if shape.known is None or len(shape.known.items) != 2:
            raise FactError("it wants two sizes", expected="2", found=str(shape))
        return TensorFact(1, shape.known.items)

    ops.register(Schema("", "Relu", 20, (FormalParameter("s", type_str="tensor(int64)"),), (Y,), {}, FLOATS),
                 infer=only_two)  # fmt: skip
    assert inferred("s = Shape(x) y = Relu(s)") == ("float32[n,4]", [])
    (problem,) = inferred("s = Shape <end = 1> (x) y = Relu(s)")[1]
    assert (problem.code, problem.expected) == ("shape-mismatch", "2")


def test_domains_by_version_range() -> None:
    schemas.register_domain(DOMAIN, 2, 4)
    try:
        assert (schemas.version_range(DOMAIN), schemas.latest_opset(DOMAIN)) == ((2, 4), 4)
        for since in (1, 5):
            with pytest.raises(ValueError, match="from 2 to 4"):
                ops.register(declare(since))
        ops.register(declare(3))
    finally:
        schemas.unregister_domain(DOMAIN)
    assert schemas.version_range("nowhere") is None
    with pytest.raises(ValueError, match="installed onnx"):
        schemas.register_domain("", 1, 99)
    with pytest.raises(LookupError):
        schemas.unregister_domain(DOMAIN)


@pytest.mark.parametrize("returned", [None, (3, 4), [], "float32[n]"])
def test_a_rule_that_returns_no_facts_is_told_of(returned: Any) -> None:
    ops.register(declare(), infer=lambda ctx, attributes, x: returned)
    fact, problems = inferred(f"y = {DOMAIN}.Grow (x)")
    if returned == []:  # fewer outputs than the node has are unknown ones
        assert (fact, problems) == ("?", [])
        return
    (problem,) = problems
    assert (fact, problem.code, problem.expected) == ("float32[?]", "rule-failed", "facts")


def test_a_dim_that_a_schema_without_a_rule_lost_says_so() -> None:
    ops.register(declare())
    graph = ModelGraph(model(f"y = {DOMAIN}.Grow (x)"))
    assert "give ops.register one, infer=" in str(Inference(graph).explain(graph.resolve_value("y")))
