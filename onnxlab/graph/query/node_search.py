"""Finding nodes and values by what they are: `find(graph, op_type="Conv", name="*/attn/*", shape=(…, 768))`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cache
from re import compile as compile_pattern
from typing import Any

import numpy as np

from onnxlab.argument_types import expect, listed, several
from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.graph.protos.value_info import elem_type_of
from onnxlab.graph.query.cones import nodes_of
from onnxlab.shapes import UNKNOWN, Fact, text
from onnxlab.spelling import suggestion

FactOf = Callable[[int], Fact]
"""The fact of a value id."""

Pattern = str | Iterable[str]
"""A glob ("Conv*", case matters), or several of which one must match."""


def find(
    graph: ModelGraph,
    fact_of: FactOf = lambda _: UNKNOWN,
    *,
    op_type: Pattern | None = None,
    domain: Pattern | None = None,
    name: Pattern | None = None,
    dtype: Any = None,
    shape: Sequence[Any] | None = None,
    scope: Scope | None = None,
    where: Callable[[NodeRecord], Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> list[int]:
    """Ids of the nodes for which everything holds that is given; bodies and functions are searched too.

    Args:
        fact_of: returns the facts of values, for `dtype` and `shape`.
        name: glob for the node's name; a node without a name is found by its label ("Conv#12").
        domain: glob for the operator's domain; "" and "ai.onnx" are the same.
        dtype: element type of one of the node's outputs: "float16", a NumPy dtype or a DataType.
        shape: shape of the same output: ints, names of dims, None for any dim, `...` for any number of dims.
        scope: the only scope to search; None for all.
        where: called last, with each remaining node; a node with a false result is left out.
        attributes: values by name, the operator's defaults included; `...` for "is set", None for "is not set".
    """
    tests = _tests(graph, op_type, domain, name, attributes or {})
    if dtype is not None or shape is not None:
        elem_type = 0 if dtype is None else elem_type_of(dtype)
        fits = _fact_test(elem_type, shape)
        tests.append(lambda node: any(vid and fits(fact_of(vid)) for vid in node.outputs))
    if where is not None:
        tests.append(where)
    nodes = graph.nodes
    matches: Iterable[int] = nodes_of(graph, scope)
    for test in tests:
        matches = [node for node in matches if test(nodes[node])]
    return list(matches)


def _tests(
    graph: ModelGraph, op_type: Pattern | None, domain: Pattern | None, name: Pattern | None, attributes: Any
) -> list[Callable[[NodeRecord], Any]]:
    """Cheap tests first."""
    tests: list[Callable[[NodeRecord], Any]] = []
    if op_type is not None:
        fits_op = _glob(op_type)
        tests.append(lambda node: fits_op(node.proto.op_type))
    if domain is not None:
        fits_domain = _glob(_canonical(domain))
        tests.append(lambda node: fits_domain(node.domain))
    if name is not None:
        fits_name = _glob(name)
        tests.append(lambda node: fits_name(node.proto.name or graph.label(node)))
    for key, expected in attributes.items():
        tests.append(lambda node, key=key, expected=expected: _has_attribute(graph, node, key, expected))  # type: ignore[misc]
    return tests


def _canonical(domain: Pattern) -> Pattern:
    if isinstance(domain, str):
        return "" if domain == "ai.onnx" else domain
    return ["" if name == "ai.onnx" else name for name in domain]


def _glob(pattern: Pattern) -> Callable[[str], bool]:
    patterns = several(pattern, str, "what to find", "a name or several, in which * and ? stand for anything")
    if not any(sign in glob for glob in patterns for sign in "*?["):
        return frozenset(patterns).__contains__
    compiled = [compile_pattern(translate(glob)) for glob in patterns]
    exact = frozenset(patterns)  # a name may itself contain brackets

    return lambda text: text in exact or any(glob.match(text) for glob in compiled)


def _has_attribute(graph: ModelGraph, node: NodeRecord, name: str, expected: Any) -> bool:
    attribute_proto = next((attribute for attribute in node.proto.attribute if attribute.name == name), None)
    if expected is None or expected is ...:
        return (attribute_proto is None) == (expected is None)
    if attribute_proto is not None:
        return _equal(decode(attribute_proto), expected)
    schema = graph.schema(node)
    spec = schema.attributes.get(name) if schema else None
    return spec is not None and spec.default is not None and _equal(spec.default, expected)


def _equal(actual: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        return bool(np.float32(actual) == np.float32(expected))  # attributes hold single precision
    if isinstance(actual, np.ndarray) or isinstance(expected, np.ndarray):
        return bool(np.array_equal(actual, expected))
    if isinstance(actual, list) and isinstance(expected, Sequence) and not isinstance(expected, str | bytes):
        return len(actual) == len(expected) and all(map(_equal, actual, expected))
    return bool(actual == expected)


def _fact_test(elem_type: int, shape: Sequence[Any] | None) -> Callable[[Fact], bool]:
    """Whether a tensor is of an element type (0 for any) and a shape."""

    @cache  # facts are interned: a network has few different ones
    def fits(fact: Fact) -> bool:
        if elem_type and getattr(fact, "elem_type", 0) != elem_type:
            return False
        return shape is None or (fact.shape is not None and fits_shape(fact.shape, shape))

    return fits


def fits_shape(shape: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether dims are those wanted: ints, names of dims, None for any one, `...` (once) for any number of them."""
    expected = tuple(listed(expected, "shape", "a list of dims, as ['batch', 3, None]"))
    if ... in expected:
        at = expected.index(...)
        head, tail = expected[:at], expected[at + 1 :]
        if len(shape) < len(head) + len(tail):
            return False
        return fits_shape(shape[: len(head)], head) and fits_shape(shape[len(shape) - len(tail) :], tail)
    if len(shape) != len(expected):
        return False
    return all(want is None or dim == want or text(dim) == want for dim, want in zip(shape, expected, strict=True))


def find_values(
    graph: ModelGraph,
    fact_of: FactOf = lambda _: UNKNOWN,
    *,
    name: Pattern | None = None,
    dtype: Any = None,
    shape: Sequence[Any] | None = None,
    kind: str | None = None,
    scope: Scope | None = None,
) -> list[int]:
    """Ids of the values for which everything holds that is given; see `find`.

    Args:
        kind: "input", "output", "initializer", "made" (by a node) or "unused".

    Raises:
        NameLookupError: `kind` is none of these.
    """
    if kind is not None and expect(kind, str, "kind", f"one of {', '.join(_KINDS)}") not in _KINDS:
        raise NameLookupError(f"values are of the kinds {', '.join(_KINDS)}, not {kind!r}.{suggestion(kind, _KINDS)}")
    scopes = graph.scopes.values() if scope is None else [scope]
    matches: list[ValueRecord] = [graph.values[vid] for inner in scopes for vid in inner.names.values()]
    if kind is not None:
        matches = [value for value in matches if _KINDS[kind](value)]
    if name is not None:
        fits_name = _glob(name)
        matches = [value for value in matches if fits_name(value.name)]
    if dtype is not None or shape is not None:
        fits = _fact_test(0 if dtype is None else elem_type_of(dtype), shape)
        matches = [value for value in matches if fits(fact_of(value.id))]
    return [value.id for value in matches]


_KINDS: dict[str, Callable[[ValueRecord], Any]] = {
    "input": lambda value: value.is_input,
    "output": lambda value: value.formal_outputs,
    "initializer": lambda value: value.initializer is not None,
    "made": lambda value: value.producers,
    "unused": lambda value: not value.uses and not value.formal_outputs,
}
