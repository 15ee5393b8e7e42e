"""Operators that any graph of this process may meet, with what was inferred by them.

Networks are made of the same layers: what a convolution makes of an input of these dims is the same in the next model,
and in the same one loaded again. Only operators of ONNX and of ONNX Runtime, without bodies, are kept.
"""

from __future__ import annotations

from collections.abc import Hashable

from google.protobuf.message import Message

from onnxlab import schemas
from onnxlab.graph.index.readonly_index import MAX_SIGNATURE
from onnxlab.infer.rules.operators import REMEMBERED, Operator, decoded

OUTCOMES = 50_000
"""The number of outcomes, of all operators together, beyond which the operators kept here are dropped."""

_DOMAINS = ("ai.onnx.", "com.microsoft")

Table = dict[object, Operator]
"""Operators by what a node is given, and how many inputs and outputs it has."""

_tables: dict[Hashable, Table] = {}


def table(environment: Hashable) -> Table:
    """The operators of an environment: everything that decides what an operator does, apart from its node."""
    if REMEMBERED.count > OUTCOMES:
        forget()
    return _tables.setdefault(environment, {})


def forget() -> None:
    """Drop the operators kept here; graphs that use them keep theirs."""
    REMEMBERED.count = 0
    _tables.clear()


def keep(among: Table, place: object, operator: Operator) -> None:
    """Keep an operator for other graphs, unless a custom schema can change its meaning, or it is large.

    Attributes that are messages of the model are copied: one field of a message keeps all of the message in memory.
    """
    if not is_cacheable(operator) or len(operator.given) > MAX_SIGNATURE:
        return
    if any(isinstance(value, Message) for value in operator.attributes.values()):
        operator.attributes = decoded(operator.proto.attribute, operator.schema, {})
    among[place] = operator


def is_cacheable(operator: Operator) -> bool:
    """Whether an operator may serve other graphs: no custom schema can change its meaning."""
    schema = operator.schema
    return (
        schema is not None
        and not operator.function
        and (not operator.domain or operator.domain.startswith(_DOMAINS))
        and schemas.custom(operator.domain, operator.op_type, operator.version) is None
    )


def is_current(operator: Operator) -> bool:
    """Whether an operator's schema is still the one that its name stands for."""
    version = operator.version or schemas.latest_opset(operator.domain)
    return schemas.find(operator.domain, operator.op_type, version) is operator.schema
