"""One call of an assistant: the models that it may ask about, what it may do, and its arguments, looked at."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from onnxlab.mcp.answers import JSON, MOST, RefusedCall, cut

if TYPE_CHECKING:
    from onnxlab.model import Model

Right = Literal["look", "edit", "save"]
PATIENCE = 10.0
"""Seconds that a call waits for a cell that is in the middle of an edit."""
KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "node": (str, int),
    "value": (str, int),
}
_SCHEMAS: Mapping[str, JSON] = {
    "node": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "name, or id as answers tell it"},
    "value": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "name, or id as answers tell it"},
}
MOST_TEXT = 1_000
MOST_NUMBER = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """A parameter of a tool: a key of KINDS, and what it is, in words."""

    kind: str
    words: str = ""
    required: bool = False

    def schema(self) -> JSON:
        """Its JSON schema."""
        schema = dict(_SCHEMAS.get(self.kind, {"type": self.kind}))
        return {**schema, "description": self.words} if self.words else schema

    def fits(self, payload: object) -> bool:
        """Whether an argument is one."""
        if not isinstance(payload, KINDS[self.kind]) or (isinstance(payload, bool) and self.kind != "boolean"):
            return False
        if isinstance(payload, str):
            return len(payload) <= MOST_TEXT
        return not isinstance(payload, int) or 0 <= payload <= MOST_NUMBER


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call whose arguments fit its tool.

    Attributes:
        models: what is served, by name.
        model: the one that the call is about.
        rights: what its client may do.
    """

    models: Mapping[str, "Model"]
    model: "Model"
    arguments: JSON
    rights: frozenset[Right]

    def __getitem__(self, name: str) -> Any:
        """An argument, None where it was left out."""
        return self.arguments.get(name)

    def number(self, name: str, default: int = 0) -> int:
        """An argument that counts."""
        number = self.arguments.get(name)
        return default if number is None else int(number)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that an assistant may call.

    Attributes:
        right: what the client must be allowed.
        about_model: whether it takes the name of a model, where several are served.
        most: characters of its answer.
    """

    name: str
    words: str
    act: Callable[[ToolCall], JSON]
    parameters: Mapping[str, ToolParameter] = field(default_factory=dict)
    right: Right = "look"
    about_model: bool = True
    most: int = MOST

    def taken(self) -> Mapping[str, ToolParameter]:
        """All parameters."""
        which = {"model": ToolParameter("string", "name of a served model; needed where several are")}
        return {**self.parameters, **(which if self.about_model else {})}

    def schema(self) -> JSON:
        """The JSON schema of its arguments."""
        parameters = self.taken()
        return {
            "type": "object",
            "properties": {name: parameter.schema() for name, parameter in parameters.items()},
            "required": [name for name, parameter in parameters.items() if parameter.required],
            "additionalProperties": False,
        }

    def check(self, arguments: object) -> JSON:
        """The arguments, looked at.

        Raises:
            RefusedCall: one is missing, unknown or of another kind.
        """
        if not isinstance(arguments, dict):
            raise RefusedCall(f"{self.name}: arguments are a JSON object, got {cut(repr(arguments), 60)}")
        parameters = self.taken()
        if unknown := [name for name in arguments if name not in parameters]:
            raise RefusedCall(
                f"{self.name} takes no {cut(unknown[0])!r}; it takes {', '.join(parameters) or 'nothing'}"
            )
        for name, parameter in parameters.items():
            payload = arguments.get(name)
            if payload is None and not parameter.required:
                continue
            if not parameter.fits(payload):
                kind = {"node": "name or id", "value": "name or id"}.get(parameter.kind, parameter.kind)
                raise RefusedCall(f"{self.name}: {name} is of the kind {kind}, got {cut(repr(payload), 60)}")
        return {name: payload for name, payload in arguments.items() if payload is not None}


@contextmanager
def held(model: "Model") -> Iterator[None]:
    """Hold the model's lock.

    Raises:
        RefusedCall: a cell has it for too long.
    """
    lock = model.graph.lock
    if not lock.acquire(timeout=PATIENCE):
        raise RefusedCall(f"the model is busy: a cell has been editing it for {PATIENCE:g} s; ask again later")
    try:
        yield
    finally:
        lock.release()
