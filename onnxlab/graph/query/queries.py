"""Finding nodes and values by what they are: `find(graph, op_type="Conv", name="*/attn/*", shape=(…, 768))`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cache
from re import compile as compile_pattern
from typing import Any

import numpy as np

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
        fact_of: what is known of values, for `dtype` and `shape`.
        name: of the node; one without a name is found by its label ("Conv#12").
        domain: "" and "ai.onnx" are the same.
        dtype: of one of the node's outputs: "float16", a NumPy dtype or a DataType.
        shape: of the same output: ints, names of dims, None for any dim, `...` for any number of dims.
        scope: searched alone; None for all.
        where: called last with each node; what it returns decides.
        attributes: values by name, the operator's defaults included; `...` for "is set", None for "is not set".
    """
    tests = _tests(graph, op_type, domain, name, attributes or {})
    if dtype is not None or shape is not None:
        wanted = 0 if dtype is None else elem_type_of(dtype)
        fits = _fact_test(wanted, shape)
        tests.append(lambda node: any(vid and fits(fact_of(vid)) for vid in node.outputs))
    if where is not None:
        tests.append(where)
    nodes = graph.nodes
    found: Iterable[int] = nodes_of(graph, scope)
    for test in tests:
        found = [node for node in found if test(nodes[node])]
    return list(found)


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
    for key, wanted in attributes.items():
        tests.append(lambda node, key=key, wanted=wanted: _has_attribute(graph, node, key, wanted))  # type: ignore[misc]
    return tests


def _canonical(domain: Pattern) -> Pattern:
    if isinstance(domain, str):
        return "" if domain == "ai.onnx" else domain
    return ["" if each == "ai.onnx" else each for each in domain]


def _glob(pattern: Pattern) -> Callable[[str], bool]:
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    if not any(sign in each for each in patterns for sign in "*?["):
        return frozenset(patterns).__contains__
    compiled = [compile_pattern(translate(each)) for each in patterns]
    exact = frozenset(patterns)  # a name may hold brackets itself

    return lambda text: text in exact or any(each.match(text) for each in compiled)


def _has_attribute(graph: ModelGraph, node: NodeRecord, name: str, wanted: Any) -> bool:
    given = next((attribute for attribute in node.proto.attribute if attribute.name == name), None)
    if wanted is None or wanted is ...:
        return (given is None) == (wanted is None)
    if given is not None:
        return _equal(decode(given), wanted)
    schema = graph.schema(node)
    spec = schema.attributes.get(name) if schema else None
    return spec is not None and spec.default is not None and _equal(spec.default, wanted)


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(found, float):
        return bool(np.float32(found) == np.float32(wanted))  # attributes hold single precision
    if isinstance(found, np.ndarray) or isinstance(wanted, np.ndarray):
        return bool(np.array_equal(found, wanted))
    if isinstance(found, list) and isinstance(wanted, Sequence) and not isinstance(wanted, str | bytes):
        return len(found) == len(wanted) and all(map(_equal, found, wanted))
    return bool(found == wanted)


def _fact_test(elem_type: int, shape: Sequence[Any] | None) -> Callable[[Fact], bool]:
    """Whether a tensor is of an element type (0 for any) and a shape."""

    @cache  # facts are interned: a network has few different ones
    def fits(fact: Fact) -> bool:
        if elem_type and getattr(fact, "elem_type", 0) != elem_type:
            return False
        return shape is None or (fact.shape is not None and fits_shape(fact.shape, shape))

    return fits


def fits_shape(shape: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether dims are those wanted: ints, names of dims, None for any one, `...` (once) for any number of them."""
    wanted = tuple(wanted)
    if ... in wanted:
        at = wanted.index(...)
        head, tail = wanted[:at], wanted[at + 1 :]
        if len(shape) < len(head) + len(tail):
            return False
        return fits_shape(shape[: len(head)], head) and fits_shape(shape[len(shape) - len(tail) :], tail)
    if len(shape) != len(wanted):
        return False
    return all(want is None or dim == want or text(dim) == want for dim, want in zip(shape, wanted, strict=True))


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
        NameLookupError: there is no such kind.
    """
    if kind is not None and kind not in _KINDS:
        raise NameLookupError(f"values are of the kinds {', '.join(_KINDS)}, not {kind!r}.{suggestion(kind, _KINDS)}")
    scopes = graph.scopes.values() if scope is None else [scope]
    found: list[ValueRecord] = [graph.values[vid] for each in scopes for vid in each.names.values()]
    if kind is not None:
        found = [value for value in found if _KINDS[kind](value)]
    if name is not None:
        fits_name = _glob(name)
        found = [value for value in found if fits_name(value.name)]
    if dtype is not None or shape is not None:
        fits = _fact_test(0 if dtype is None else elem_type_of(dtype), shape)
        found = [value for value in found if fits(fact_of(value.id))]
    return [value.id for value in found]


_KINDS: dict[str, Callable[[ValueRecord], Any]] = {
    "input": lambda value: value.is_input,
    "output": lambda value: value.formal_outputs,
    "initializer": lambda value: value.initializer is not None,
    "made": lambda value: value.producers,
    "unused": lambda value: not value.uses and not value.formal_outputs,
}
