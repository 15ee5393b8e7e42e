"""All tools, and how a call of one is answered."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxlab.errors import OnnxlabError
from onnxlab.mcp import changing, looking
from onnxlab.mcp.answers import LONG_TEXT, RefusedCall, cut, written
from onnxlab.mcp.call import Right, Tool, ToolCall

if TYPE_CHECKING:
    from onnxlab.model import Model

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*looking.TOOLS, *changing.TOOLS)}
_OPTION: Mapping[Right, str] = {"edit": "--edit", "save": "--save"}


def allowed(rights: frozenset[Right]) -> list[Tool]:
    """The tools that a client with these rights is told of."""
    return [tool for tool in TOOLS.values() if tool.right in rights]


def answer(models: Mapping[str, "Model"], rights: frozenset[Right], name: object, arguments: object) -> str:
    """The answer to a call, as JSON.

    Raises:
        RefusedCall: the tool is unknown or not allowed, the arguments do not fit, or the model refuses.
    """
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise RefusedCall(
            f"no tool {cut(repr(name), 60)}; there are {', '.join(tool.name for tool in allowed(rights))}"
        )
    if tool.right not in rights:
        raise RefusedCall(
            f"{tool.name} is not allowed: the user starts `onnxlab mcp` with {_OPTION[tool.right]} for that"
        )
    checked = tool.check(arguments)
    try:
        return written(tool.act(ToolCall(models, _model(models, tool, checked), checked, rights)), tool.most)
    except (OnnxlabError, OSError, ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
        raise RefusedCall(cut(error, LONG_TEXT) or type(error).__name__) from error
    except RecursionError as error:
        raise RefusedCall("the arguments are nested too deeply; give plain lists and objects") from error


def _model(models: Mapping[str, "Model"], tool: Tool, arguments: Mapping[str, object]) -> "Model":
    """The model that a call is about; the only one where it names none."""
    if not models:
        raise RefusedCall("no model is served; the user runs onnxlab.serve(model) in a cell")
    name = arguments.get("model")
    if name is None:
        if tool.about_model and len(models) > 1:
            raise RefusedCall(f"several models are served: say which, of {', '.join(map(cut, models))}")
        return next(iter(models.values()))
    if not isinstance(name, str) or name not in models:
        raise RefusedCall(f"no served model is called {cut(repr(name), 60)}; there are {', '.join(map(cut, models))}")
    return models[name]
