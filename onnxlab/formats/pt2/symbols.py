"""Sizes of torch.export as dims of ONNX: numbers, symbols, and expressions of them as text."""

import ast
from typing import Any

_JOINED = {"Add": " + ", "Mul": "*"}
_CALLS = {"FloorDiv": "//", "CleanDiv": "//", "IntTrueDiv": "/", "PythonMod": "%", "Mod": "%", "Pow": "**"}
_LONGEST = 10_000


def dim_of(size: Any) -> int | str | None:
    """A dim of one entry of `sizes`: a number, a symbol or expression as text, None where it is unknown.

    Args:
        size: `{"as_int": 3}` or `{"as_expr": {"expr_str": "Symbol('s77', …)"}}`; anything else is unknown.
    """
    if not isinstance(size, dict):
        return None
    number = size.get("as_int")
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    expression = size.get("as_expr")
    text = expression.get("expr_str") if isinstance(expression, dict) else None
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _text(tree, 0)


def _text(tree: ast.expr, depth: int) -> str | None:
    """An expression of sympy's constructors as arithmetic, None where there is no such form."""
    if depth > 50:
        return None
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int) and not isinstance(tree.value, bool):
        return str(tree.value)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        inner = _text(tree.operand, depth + 1)
        return None if inner is None else f"-{inner}"
    if isinstance(tree, ast.Name) and tree.id.isidentifier():
        return tree.id
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return None
    name = tree.func.id
    if name == "Symbol":
        return _symbol(tree)
    parts = [_text(argument, depth + 1) for argument in tree.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    return _call(name, known)


def _symbol(tree: ast.Call) -> str | None:
    name = tree.args[0].value if tree.args and isinstance(tree.args[0], ast.Constant) else None
    return name if isinstance(name, str) and name.isidentifier() else None


def _call(name: str, parts: list[str]) -> str | None:
    if name == "Integer" and len(parts) == 1:
        return parts[0]
    if name in _JOINED:
        return _JOINED[name].join(part if part.isidentifier() or part.isdigit() else f"({part})" for part in parts)
    if name in _CALLS and len(parts) == 2:
        first, second = (part if part.isidentifier() or part.isdigit() else f"({part})" for part in parts)
        return f"{first}{_CALLS[name]}{second}"
    return f"{name.lower()}({', '.join(parts)})" if name in ("Max", "Min") else None
