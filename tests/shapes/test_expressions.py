"""Canonical arithmetic of dims: equality is identity, and every identity is also true of numbers."""

import gc
import pickle

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from onnxlab.shapes import (
    Expr,
    broadcast,
    ceil_div,
    evaluate,
    exact_div,
    expressions,
    floor_div,
    maximum,
    minimum,
    notation,
    parse,
    product,
    substitute,
    symbol,
    text,
)
from onnxlab.shapes.expressions import MAX_SIZE, _exprs, size

N, H, W = symbol("n"), symbol("h"), symbol("w")


def test_equal_expressions_are_one_object() -> None:
    assert (N + H) * 2 is 2 * H + N * 2
    assert (N + 1) * (N - 1) is N * N - 1
    assert N - N == 0
    assert ceil_div(N, 2) is floor_div(N + 1, 2)
    assert -floor_div(-N, 2) is ceil_div(N, 2)
    assert floor_div(floor_div(N, 2), 3) is floor_div(N, 6)
    assert floor_div(N * 6 + 3, 4) is N + floor_div(2 * N + 3, 4)
    assert minimum(N, minimum(H, 3)) is minimum(3, N, H)
    assert maximum(N, 0) is N
    assert minimum(N, N + 1) is N
    assert broadcast(minimum(N, 512), N) is N
    assert broadcast(broadcast(minimum(N, 512), H), N) is broadcast(N, H)
    assert broadcast(maximum(N + 1, 4), N + 1) is maximum(N + 1, 4)
    assert floor_div(48 * N * H, 4 * N * W) is floor_div(12 * H, W)
    assert floor_div(6 * N * H + 9 * H, 4 * H) is floor_div(6 * N + 9, 4)


@pytest.mark.parametrize(
    ("above", "below", "expected"),
    [
        (N * H * 768, 12 * N, H * 64),
        ((N + H) * 64, N + H, 64),
        (N * N - 1, N + 1, N - 1),
        (N * 3, 2, None),
        (N + 1, H, None),
        (0, N, 0),
    ],
)
def test_exact_division(above: Expr, below: Expr, expected: Expr | None) -> None:
    assert exact_div(above, below) == expected


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        floor_div(N, 0)


@pytest.mark.parametrize(
    "written",
    [
        "2*n + 1",
        "floor((h + 1)/2)",
        "h*n - 3",
        "min(n, 4)",
        "max(h - 1, 0) + n",
        "floor(n/(h*w))",
        "-n + 3",
        "floor(n/64)",
    ],
)
def test_text_reads_back(written: str) -> None:
    assert text(parse(written)) == written


@pytest.mark.parametrize("name", ["batch-size", "dim 1", "3", "-1", "a/b", "?", "", "foo(3)", "x +", "2 * 3"])
def test_what_is_not_arithmetic_is_a_name(name: str) -> None:
    assert parse(name) is symbol(name)


def test_ceil_and_double_slash_are_read() -> None:
    assert parse("ceil(n/2)") is ceil_div(N, 2)
    assert parse("(n + 1)//2") is ceil_div(N, 2)


def test_growth_is_bounded_and_still_evaluates() -> None:
    total = N
    for index in range(200):
        total = total * symbol(f"s{index % 7}") + index
        assert size(total) <= MAX_SIZE
    bindings = {"n": 3} | {f"s{index}": 1 for index in range(7)}
    assert evaluate(total, bindings) == 3 + sum(range(200))


@pytest.mark.slow
def test_interning_is_weak() -> None:
    product = symbol("only_here") * 12345
    key = frozenset(product.terms.items())
    assert key in _exprs
    del product, key
    gc.collect()
    assert not any("only_here" in str(expr) for expr in list(_exprs.values()))


def test_pickling_keeps_identity() -> None:
    dim = floor_div(N * 3 + H, 4) + maximum(N - 1, 0)
    assert pickle.loads(pickle.dumps(dim)) is dim


def test_unknown_symbols_are_equal_by_key_and_not_by_name() -> None:
    first, other = symbol("d", key=("unknown", 1)), symbol("d", key=("unknown", 2))
    assert first is not other
    assert symbol("renamed", key=("unknown", 1)) is first
    assert str(first) == "renamed"


dims = st.recursive(
    st.integers(0, 6) | st.sampled_from([N, H, W]),
    lambda inner: st.tuples(st.sampled_from("+-*/m^cdb"), inner, inner),
    max_leaves=8,
)


def _broadcast(a: int, b: int) -> int:
    assume(a == b or 1 in (a, b))
    return max(a, b) if a and b else 0


_OPERATIONS = {
    "+": (lambda a, b: a + b,) * 2,
    "-": (lambda a, b: a - b,) * 2,
    "*": (lambda a, b: a * b,) * 2,
    "/": (lambda a, b: floor_div(a, 3), lambda a, b: a // 3),
    "c": (lambda a, b: ceil_div(a, 4), lambda a, b: -(-a // 4)),
    "m": (lambda a, b: minimum(a, b), min),
    "^": (lambda a, b: maximum(a, b), max),
    "d": (lambda a, b: floor_div(a * b, maximum(b, 1) * 2), lambda a, b: (a * b) // (max(b, 1) * 2)),
    "b": (lambda a, b: broadcast(maximum(a, 0), maximum(b, 0)), lambda a, b: _broadcast(max(a, 0), max(b, 0))),
}


def _both(tree: object, bindings: dict[str, int]) -> tuple[object, int]:
    if isinstance(tree, tuple):
        operation, left, right = tree
        (a, x), (b, y) = _both(left, bindings), _both(right, bindings)
        symbolic, plain = _OPERATIONS[operation]
        number = plain(x, y)  # type: ignore[operator]  # first: it may refuse what the symbols would
        return symbolic(a, b), number
    return tree, evaluate(tree, bindings)


@settings(suppress_health_check=[HealthCheck.too_slow])  # which depends on how busy the machine is
@given(dims, st.tuples(*[st.integers(0, 9)] * 3))
def test_every_expression_evaluates_to_the_number(tree: object, numbers: tuple[int, ...]) -> None:
    bindings = dict(zip("nhw", numbers, strict=True))
    symbolic, plain = _both(tree, bindings)
    assert evaluate(symbolic, bindings) == plain
    assert isinstance(symbolic, int) or symbolic.minimum is None or symbolic.minimum <= plain  # type: ignore[attr-defined]
    assert evaluate(parse(text(symbolic)), bindings) == plain if isinstance(symbolic, Expr) else True


def test_product_of_no_dims_is_one() -> None:
    assert product([]) == 1
    assert product([N, 2, 3]) is 6 * N


def test_an_expression_that_grew_too_large_is_the_same_however_often_it_is_made() -> None:
    def total() -> object:
        return sum((symbol(f"large_{i}") * (i + 2) for i in range(80)), start=symbol("start"))

    assert total() is total()


def test_what_people_are_shown_is_cut_and_what_is_written_is_not() -> None:
    n, long = symbol("n" * 100), symbol("x" * 10_000)
    total = sum(symbol(f"{'name' * 5}{number}") for number in range(40))
    assert len(str(total)) == notation.MAX_SHOWN
    assert str(total).endswith("…")
    assert parse(text(total)) is total
    assert str(long + 1) == "x" * 59 + "… + 1"
    assert text(n) == "n" * 100


def test_calls_within_calls_are_written_and_evaluated_however_deep() -> None:
    dim = symbol("n")
    for divisor in range(3000):  # each in the definition of another
        dim = maximum(floor_div(dim * 3 + divisor, 7), symbol("m") - divisor)
    assert isinstance(evaluate(dim, {"n": 5, "m": 9}), int | None)
    assert len(str(dim)) <= notation.MAX_SHOWN


def test_polynomials_of_polynomials_become_unknown() -> None:
    dim = symbol("n")
    for _ in range(60):
        dim = dim * dim + dim
    assert dim.weight <= expressions.MAX_WEIGHT + expressions.MAX_SIZE
    assert expressions.is_grown(dim)
    assert evaluate(dim, {"n": 3}) is None


@pytest.mark.parametrize("written", ["(" * 90 + "n" + ")" * 90 + " + 1", "n + " + "9" * 5000, "n+" * 2000 + "n"])
def test_texts_that_nest_too_deep_or_are_too_long_are_names(written: str) -> None:
    assert parse(written) is symbol(written)


def test_a_function_without_a_value_is_kept() -> None:
    quotient, wide = floor_div(N, H), broadcast(N, H)
    assert evaluate(quotient, {"n": 3, "h": 0}) is None
    assert evaluate(wide, {"n": 3, "h": 2}) is None
    assert substitute(wide * 2, {"n": 3, "h": 2}) == wide * 2
    assert evaluate(wide, {"n": 3, "h": 1}) == 3
