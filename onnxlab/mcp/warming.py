"""The first use of what answers need: imports, and kernels, that a first call would wait for."""

import contextlib
from functools import cache

import onnx.parser

from onnxlab.mcp.tools import answer
from onnxlab.model.opening import load

_MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] z) { y = Relu(x) z = Abs(y) }'
_TOOLS = ("run", "picture", "diff", "check", "summary")


@cache
def warm() -> None:
    """Use tools that only look once, on a model of two nodes; a process needs that once."""
    with contextlib.suppress(Exception):  # a call of the tool tells what is wrong
        models = {"small": load(onnx.parser.parse_model(_MODEL))}
        for tool in _TOOLS:
            answer(models, frozenset({"look"}), tool, {})
