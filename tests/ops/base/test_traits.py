"""Rows of traits: none is missing, none says what the shape rules deny, and no other file lists operators by name."""

import ast
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab import ops, schemas
from onnxlab.ops.base import registry
from onnxlab.ops.base.traits import UNKNOWN, OpTraits, traits
from tests.ops.base.test_node_cases import array, cases

PACKAGE = Path(onnxlab.__file__).parent
DOMAINS = ("", "ai.onnx.ml", "com.microsoft")
ROWS = registry.all_traits()

# What may name operators outside of ops/: compiled rules, which stay with their provider.
RULES = (PACKAGE / "execution" / "numba" / "rules", PACKAGE / "transforms" / "rules")
"""What is compiled and what is rewritten is a matter of operators by their names."""


def known_operators() -> set[tuple[str, str]]:
    """(domain, operator) of all that have a schema, a kernel or a shape rule."""
    registered = {*registry.kernels(), *registry.rules()}
    return registered | {(domain, name) for domain in DOMAINS for name in schemas.operators(domain)}


NAMES = {name for _, name in known_operators()}


def test_every_operator_has_a_row() -> None:
    missing = sorted(known_operators() - ROWS.keys())
    assert missing == [], (
        "add a row: traits(…) beside the kernel; else they are grey, cost one pass and are never folded"
    )


def test_every_row_is_of_an_operator() -> None:
    extra = {key for key in ROWS if key not in known_operators() and key[0] in ("", "ai.onnx.ml")}
    assert extra == set()


@pytest.mark.parametrize("field", ["category", "shape", "flops"])
def test_a_row_says_what_matters_most(field: str) -> None:
    fields = {"category": "matrix", "shape": "shapes", "flops": 1}
    del fields[field]
    with pytest.raises(TypeError, match=field):
        OpTraits(**fields)


def test_a_row_takes_the_words_that_exist_alone() -> None:
    with pytest.raises(ValueError, match="expected one of convolution, matrix"):
        traits("Fold", OpTraits(category="convolutions", shape="shapes", flops=1))
    with pytest.raises(ValueError, match="expected one of shapes, sizes, elements"):
        traits("Fold", OpTraits(category="matrix", shape="shape", flops=1))
    with pytest.raises(ValueError, match="Conv has a row of traits already"):
        traits("Conv", ops.find_traits("", "Conv"))


def test_an_unknown_operator_has_what_is_safe() -> None:
    assert ops.traits_of("unknown::Operator") is UNKNOWN
    assert (UNKNOWN.category, UNKNOWN.shape, UNKNOWN.half, UNKNOWN.elements) == ("custom", "other", "", "some")


def test_a_custom_operator_brings_its_own() -> None:
    schema = schemas.Schema("", "Relu", 2, (schemas.FormalParameter("X"),), (schemas.FormalParameter("Y"),))
    ops.register(schema)
    try:
        assert ops.find_traits("", "Relu") is UNKNOWN
    finally:
        ops.unregister("", "Relu", 2)
    assert ops.find_traits("ai.onnx", "Relu").category == "activation"
    row = OpTraits(category="matrix", shape="shapes", flops=3)
    ops.register(schemas.Schema("mine", "Halve", 1), traits=row)
    try:
        assert ops.traits_of("mine::Halve") is row
    finally:
        ops.unregister("mine", "Halve")
    assert ops.traits_of("mine::Halve") is UNKNOWN


REGISTRATIONS = """
import json, sys
from onnxlab.ops.base import derivatives, registry, traits

homes = {}

def note(domain, op_type):
    frame = sys._getframe()
    while not frame.f_globals["__name__"].startswith("onnxlab.ops.") or ".base." in frame.f_globals["__name__"]:
        frame = frame.f_back
    homes.setdefault(f"{domain}::{op_type}", set()).add(frame.f_globals["__name__"])

def noting(table):
    add = table.add
    table.add = lambda entry: (note(entry.domain, entry.op_type), add(entry))

class Rows(dict):
    def __setitem__(self, key, row):
        note(*key)
        super().__setitem__(key, row)

class Gradients(dict):
    def update(self, rules):
        for op_type in rules:
            note("", op_type)
        super().update(rules)

noting(registry._kernels)
noting(registry._rules)
traits._rows, derivatives._RULES = Rows(), Gradients()
registry.load()
print(json.dumps({name: sorted(files) for name, files in homes.items()}))
"""


def test_an_operator_has_one_home() -> None:
    """Kernel, shape rule, gradient and row of an operator stand in one file."""
    done = subprocess.run([sys.executable, "-c", REGISTRATIONS], capture_output=True, text=True, check=True)
    homes = json.loads(done.stdout)
    assert len(homes) >= len(ROWS)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


# -- what rows say of shapes -----------------------------------------------------------------------------------------


def shapes_of_outputs(model: onnx.ModelProto, feeds: list, fixed: list[int]) -> dict[str, tuple | None]:
    """The inferred shapes of outputs from those of the inputs, and from the elements of some of them."""
    names = [value.name for value in model.graph.input]
    for output in model.graph.output:
        output.type.Clear()
    inputs = [value for slot, value in enumerate(model.graph.input) if slot not in fixed]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(feeds[slot], names[slot]) for slot in fixed)
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    judged = onnxlab.Model(model)
    values = judged.graph.main.outputs
    return {judged.graph.values[value].name: judged.inference.fact(value).shape for value in values}


@pytest.mark.parametrize(
    "op_type", sorted(name for (domain, name), row in ROWS.items() if not domain and row.shape in ("shapes", "sizes"))
)
def test_shapes_follow_from_what_the_row_says(op_type: str) -> None:
    row = ops.find_traits("", op_type)
    for case in cases()["", op_type][:2]:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        feeds = [array(value) for value in case.data_sets[0][0]]
        if len(model.graph.node) > 1 or not all(isinstance(feed, np.ndarray) for feed in feeds):
            continue
        names = [value.name for value in model.graph.input]
        fixed = [] if row.shape == "shapes" else [names.index(n) for n in [*model.graph.node[0].input][1:] if n]
        arrays = [array(value) for value in case.data_sets[0][1]]
        shapes = shapes_of_outputs(model, feeds, fixed)
        for (name, shape), expected in zip(shapes.items(), arrays, strict=True):
            assert shape == expected.shape, (case.name, name)


# -- tables elsewhere ------------------------------------------------------------------------------------------------


def tables(source: str) -> Iterator[tuple[int, list[str]]]:
    """(line, names) of each literal of a source that lists three operators or more, as items, keys or words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            items: list[ast.expr | None] = [*node.elts]
        elif isinstance(node, ast.Dict):
            items = node.keys
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            operators = [word for word in words if word in NAMES]
            if len(operators) >= 3 and 2 * len(operators) > len(words):
                yield node.lineno, operators
            continue
        else:
            continue
        operators = [name for item in items for name in operators_in(item)[:1]]
        if len(operators) >= 3:
            yield node.lineno, operators


def operators_in(item: ast.expr | None) -> list[str]:
    """The operators that a literal names: itself, or an item of a tuple."""
    if isinstance(item, ast.Tuple):
        return [*itertools.chain.from_iterable(operators_in(element) for element in item.elts)]
    if isinstance(item, ast.Constant) and isinstance(item.value, str):
        name = item.value.rpartition("::")[2]
        return [name] if name in NAMES else []
    return []


SOURCES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not any(path.is_relative_to(folder) for folder in (PACKAGE / "ops", *RULES))
]
EXEMPT = {
    PACKAGE / "attribute_choices.py",  # what onnx's schemas say of attributes in prose alone, and so a part of them
    PACKAGE / "formats" / "glow" / "standard.py",  # what Glow's operators are called by ONNX
    PACKAGE / "formats" / "ort" / "preparing.py",  # operators without a kernel in ONNX Runtime, held to it by a test
    PACKAGE / "execution" / "base" / "blas.py",  # kernels here that call no BLAS, in modules of which others do
    *(PACKAGE / "graph" / "edits" / "opsets").glob("*.py"),  # how single versions differ, which only a conversion asks
    PACKAGE / "graph" / "query" / "unit_words.py",  # words for units, the most telling operator first
}


def test_no_other_file_lists_operators() -> None:
    listed = {
        f"{path.relative_to(PACKAGE)}:{line} lists {', '.join(names[:4])}"
        for path in SOURCES
        if path not in EXEMPT
        for line, names in tables(path.read_text(encoding="utf-8"))
    }
    assert listed == set(), "make it a trait in ops/base/traits.py, and ask find_traits"


@pytest.mark.parametrize(
    "source",
    [
        'X = {"Conv", "Relu", "com.microsoft::Gelu"}',
        'X = {"Conv": 1, "Relu": 2, "Add": 3}',
        'def f(op): return op in ("Conv", "Relu", "Add")',
        'X = {("", "Conv"): 1, ("", "Relu"): 2, ("ai.onnx.ml", "Scaler"): 3}',
        'X = "Conv Relu Add".split()',
    ],
)
def test_a_table_is_found(source: str) -> None:
    assert len([*tables(source)]) == 1


@pytest.mark.parametrize("source", ['X = {"Conv", "Relu"}', '"""The bias of a Conv, before Relu or Add, is kept."""'])
def test_two_names_or_prose_are_no_table(source: str) -> None:
    assert [*tables(source)] == []
