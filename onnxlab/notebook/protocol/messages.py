"""Requests of a page, looked at, and what is sent to it, written.

A request from the page is `{id, method, params}` and gets exactly one reply, `{id, result}` or `{id, error}`. Events go
to the page as `{event, seq, …}`. Messages of a page are not trusted: `parse` accepts only the methods and parameters
that METHODS lists.
"""

import base64
import importlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxlab.errors import Diagnostic, OnnxlabError
from onnxlab.infer.questions.dim_explanation import Explanation
from onnxlab.notebook.protocol.methods import METHODS
from onnxlab.notebook.protocol.schema import ID, MAX_ID

PROTOCOL = 1
JSON = dict[str, Any]


class ProtocolError(OnnxlabError):
    """A refused message. `code` is for programs, `hint` says what to do; `request` is the id of the request, or 0."""

    def __init__(self, code: str, message: str, hint: str = "", request: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.request = request


@dataclass(frozen=True, slots=True)
class Request:
    """A well-formed request: `params` holds every parameter of the method, None for one that was left out."""

    id: int
    method: str
    params: Mapping[str, Any]


def _js_nulls() -> tuple[type, ...]:
    """The type of JavaScript's null in Python, where Python runs in a browser; else nothing."""
    platform: str = sys.platform
    if platform != "emscripten":
        return ()
    ffi: Any = importlib.import_module("pyodide.ffi")
    return tuple(filter(None, [getattr(ffi, "JsNull", None)]))


_NULLS = _js_nulls()


def _plain(payload: Any) -> Any:
    """A message with JavaScript's null replaced by None, at any depth."""
    if isinstance(payload, _NULLS):
        return None
    if isinstance(payload, dict):
        return {key: _plain(item) for key, item in payload.items()}
    return [_plain(item) for item in payload] if isinstance(payload, list) else payload


def parse(content: object) -> Request:
    """Return the request in a message.

    Raises:
        ProtocolError: the message is no request, names an unknown method, or its parameters do not fit.
    """
    if _NULLS:
        content = _plain(content)
    if not isinstance(content, dict):
        raise ProtocolError("malformed", f"a request is an object, got {type(content).__name__}")
    number = content.get("id")
    if not isinstance(number, int) or not ID.fits(number) or not number:
        raise ProtocolError("malformed", f"a request has an integer id above 0, got {_shown(number)}")
    method, params = content.get("method"), content.get("params")
    if not isinstance(method, str) or method not in METHODS:
        known = ", ".join(METHODS)
        raise ProtocolError("unknown_method", f"no method {_shown(method)}; there are {known}", request=number)
    if not isinstance(params, dict):
        raise ProtocolError("malformed", f"{method}: params is an object, got {_shown(params)}", request=number)
    if fault := _fault(params):
        raise ProtocolError("malformed", f"{method}: {fault}", request=number)
    spec = METHODS[method].parameters
    if unknown := [str(name) for name in params if name not in spec]:
        takes = ", ".join(spec) or "none"
        message = f"{method} takes no parameter {_shown(unknown[0])}; it takes {takes}"
        raise ProtocolError("malformed", message, request=number)
    for name, parameter in spec.items():
        value = params.get(name)
        if parameter.required if value is None else not parameter.fits(value):
            message = f"{method}: {name} is {parameter.words}, got {_shown(value)}"
            raise ProtocolError("malformed", message, request=number)
    return Request(number, method, {name: params.get(name) for name in spec})


def _fault(params: JSON) -> str:
    """The fault of parameters that are invalid for every method, "" where there is none."""
    try:
        json.dumps(params, ensure_ascii=False).encode()
    except RecursionError:
        return "its parameters are nested too deeply"
    except UnicodeEncodeError:
        return "a text in its parameters has half of a surrogate pair, which is no character"
    except (TypeError, ValueError) as error:
        return f"its parameters are no JSON: {error}"
    return ""


def _shown(value: object) -> str:
    try:
        text = ascii(value)
    except RecursionError:
        text = f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."


# -- what is sent -----


def wire_version(version: int) -> int:
    """The model's version as the page counts it: from 1, since 0 stands for a page without a model."""
    return version + 1


def graph_version(version: int | None) -> int | None:
    """The page's version as the model counts it."""
    return None if version is None else version - 1


def result(request: int, payload: JSON) -> JSON:
    """The reply to a request that succeeded."""
    return {"id": request, "result": payload}


MAX_STEPS = 100


def explanation(explained: Explanation) -> JSON:
    """An explanation of a dim for the page: the text, and its steps with ids of their values and nodes."""
    first = explained.first_loss
    steps = [
        {
            "value": step.value, "node": step.node, "name": step.name, "what": step.what, "how": step.how,
            "lost": step.lost, "edits": list(step.edits), "passes": step.passes,
        }
        for step in explained.steps[:MAX_STEPS]
    ]  # fmt: skip
    where = explained.steps.index(first) if first is not None else -1
    return {"name": explained.name, "fact": str(explained.fact), "text": str(explained), "steps": steps, "lost": where}


def error(request: int, code: str, message: str, hint: str = "", node: int = 0) -> JSON:
    """The reply to a request that was refused."""
    payload: JSON = {"code": code, "message": message}
    if hint:
        payload["hint"] = hint
    if node:
        payload["node"] = node
    return {"id": request, "error": payload}


def to_base64(buffers: Sequence[bytes]) -> list[str]:
    """The buffers for the `b64` field, where a front end loses binary frames."""
    return [base64.b64encode(buffer).decode("ascii") for buffer in buffers]


def number(value: Any) -> Any:
    """A number in JSON's form: NaN and infinities as words, integers beyond 2**53 as strings of digits."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, int) and abs(value) > MAX_ID:
        return str(value)
    return value


_INTEGER = re.compile(r"[+-]?\d+")
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def from_wire(value: Any, kind: str) -> Any:
    """An attribute's value from the page's form, for an attribute of type `kind`: the inverse of `number`.

    A value that does not fit the kind is returned as it is, so that the edit refuses it with its own message.
    """
    if isinstance(value, list):
        return [from_wire(item, kind.removesuffix("s")) for item in value]
    if isinstance(value, str):
        if kind == "int" and _INTEGER.fullmatch(value):
            return int(value)
        if kind == "float" and value in _WORDS:
            return _WORDS[value]
    if kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def diagnostics(entries: Sequence[Diagnostic]) -> list[JSON]:
    """Diagnostics in the page's form."""
    return [
        {
            "severity": item.severity,
            "code": item.code,
            "message": item.message,
            "node": item.node,
            "value": item.value,
            "expected": item.expected,
            "found": item.found,
            "hint": item.hint,
        }
        for item in entries
    ]
