"""Inputs, outputs and attributes of an operator, as its domain defines them: the formals of one version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

Option = Literal["single", "optional", "variadic"]

UNBOUNDED: Final = 2**31 - 1
"""Maximal arity of an operator whose last input or output is variadic."""


@dataclass(frozen=True, slots=True)
class FormalParameter:
    """A formal input or output; `type_str` is a type ("tensor(int64)") or a key of `type_constraints`.

    Attributes:
        homogeneous: whether all values of a variadic parameter have one type.
    """

    name: str
    option: Option = "single"
    type_str: str = ""
    doc: str = ""
    homogeneous: bool = True


@dataclass(frozen=True, slots=True)
class AttributeSchema:
    """A formal attribute.

    Attributes:
        type: "int", "float", "string", "tensor", "graph", "sparse_tensor", "type_proto" or a plural of these.
        default: Python value (str, int, float, list; TensorProto for tensors) or None where there is none.
        choices: the values that a string (or each of several) may have, where the operator limits them.
    """

    name: str
    type: str
    required: bool = False
    default: Any = None
    doc: str = ""
    choices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of an operator; the default domain is "".

    Attributes:
        type_constraints: {"T": ("tensor(float)", …)}, what the `type_str` of a parameter stands for.
        has_function: whether a function body, too, defines the operator.
        function: the function body of a custom operator: an onnx.FunctionProto whose formals match those above by
            position.
        onnx: onnx's own schema object, None for a custom one that was not made from such an object.
        runtime: what defines the operator where neither ONNX nor the user does: "onnxruntime", "onnxruntime-training".
        unchecked_attributes: whether nodes may have attributes that are not listed.
        defaults: {attribute: default} of those that have one, lists as tuples.
        required: names of the attributes that a node must set.
    """

    domain: str
    op_type: str
    since_version: int
    inputs: tuple[FormalParameter, ...] = ()
    outputs: tuple[FormalParameter, ...] = ()
    attributes: Mapping[str, AttributeSchema] = field(default_factory=dict)
    type_constraints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    min_input: int = 0
    max_input: int = UNBOUNDED
    min_output: int = 0
    max_output: int = UNBOUNDED
    doc: str = ""
    deprecated: bool = False
    has_function: bool = False
    function: Any = field(default=None, repr=False, compare=False)
    onnx: Any = field(default=None, repr=False, compare=False)
    runtime: str = field(default="", compare=False)
    unchecked_attributes: bool = field(default=False, compare=False)
    defaults: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    required: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = {name: spec.default for name, spec in self.attributes.items() if spec.default is not None}
        frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        object.__setattr__(self, "defaults", MappingProxyType(frozen))
        object.__setattr__(self, "required", tuple(n for n, spec in self.attributes.items() if spec.required))

    @property
    def removed(self) -> bool:
        """Whether the operator is no more: it is deprecated, and nothing says which nodes it stands for.

        GroupNormalization-18 is deprecated too, and runs by the function that its schema carries.
        """
        return self.deprecated and not self.has_function

    def input(self, slot: int) -> FormalParameter | None:
        """Return the formal parameter of an input slot (the variadic one for all that follow), or None."""
        return _formal(self.inputs, slot)

    def output(self, slot: int) -> FormalParameter | None:
        """Return the formal parameter of an output slot (the variadic one for all that follow), or None."""
        return _formal(self.outputs, slot)


def _formal(formals: tuple[FormalParameter, ...], slot: int) -> FormalParameter | None:
    if slot < len(formals):
        return formals[slot]
    return formals[-1] if formals and formals[-1].option == "variadic" else None
