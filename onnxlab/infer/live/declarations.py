"""Declarations that follow what is inferred: changed in the very edit that makes them wrong.

Only declarations of values whose fact an edit changes are compared, and in them only what changes: a declaration that
was wrong before stays. Declarations of the model's inputs never change: everything is inferred from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from weakref import ref

import onnx

from onnxlab import dtypes
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import SetTypes
from onnxlab.graph.edit.commits import OpenEdit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.declaring import Action
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.graph.state.graph_state import DeclarationKind
from onnxlab.infer.facts.symbols import is_open
from onnxlab.infer.facts.type_protos import fact_of_type, type_of_fact
from onnxlab.infer.live.live_inference import Inference
from onnxlab.infer.rules.schema_checks import contradiction
from onnxlab.shapes import UNKNOWN, VARIES, Dim, Fact, SparseTensorFact, TensorFact, shown, symbol

Changed = Mapping[int, tuple[Fact, Fact]]


class DeclarationChange(NamedTuple):
    """A changed declaration: its value, with the path, and the types before and after."""

    value: str
    old: Fact
    new: Fact

    def __str__(self) -> str:
        return f"{self.value}: {self.old} → {self.new}"


class DeclarationUpdater:
    """Lets the declarations of a model follow an inference; see `graph.commits.Completer`."""

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = ref(graph)
        self._inference = ref(inference)

    def complete(self, transaction: OpenEdit, touched: Touched) -> None:
        """Correct, as a part of the edit, the declarations that it makes wrong."""
        graph, inference = self._graph(), self._inference()
        if graph is None or inference is None or touched.described or inference.policy.prefer == "declared":
            return
        changed: Changed = inference.foresee(touched)
        if touched.adopted:  # what the declaration says was true of another value
            adopted = {vid: _fact(info.type) for vid in touched.adopted if (info := graph.values[vid].info)}
            now = {vid: inference.fact(vid) for vid in adopted}
            now |= {vid: _sized(now[vid], adopted[vid]) for vid in touched.alike & adopted.keys()}
            changed = {**changed, **{vid: (declared, now[vid]) for vid, declared in adopted.items()}}
        for change in corrections(graph, changed) if changed else ():
            note = _told(graph, change)
            transaction.apply(change, None)
            if note not in transaction.label:  # the label has the note where a script repeats the edit
                transaction.label += note

    def abandon(self) -> None:
        """Infer anew: the edit was taken back."""
        if (inference := self._inference()) is not None:
            inference.forget_foreseen()


def _sized(fact: Fact, declared: Fact) -> Fact:
    """A fact with the dims that are declared where no number is known."""
    if not (isinstance(fact, TensorFact) and isinstance(declared, TensorFact) and fact.shape and declared.shape):
        return fact
    if len(fact.shape) != len(declared.shape):
        return fact
    dims = [dim if isinstance(dim, int) else stated for dim, stated in zip(fact.shape, declared.shape, strict=True)]
    return TensorFact(fact.elem_type, tuple(dims))


def _told(graph: ModelGraph, change: SetTypes) -> str:
    """The part of an edit's label about outputs of the model that get another element type."""
    scope = graph.scopes[change.scope]
    if change.kind != "output" or scope is not graph.main:
        return ""
    notes = []
    for at, encoded in zip(change.places, change.types, strict=True):
        info = scope.proto.output[at]
        now = onnx.TypeProto.FromString(encoded or b"")
        old, new = info.type.tensor_type.elem_type, now.tensor_type.elem_type
        if old != new and {old, new} <= set(dtypes.ELEM_TYPES):
            notes.append(f"output {info.name}: {dtypes.name(old)} → {dtypes.name(new)}")
        elif info.type.WhichOneof("value") != now.WhichOneof("value"):
            notes.append(f"output {info.name}: {_fact(info.type)} → {_fact(now)}")
    return f" ({', '.join(notes)})" if notes else ""


def corrections(graph: ModelGraph, changed: Changed) -> list[SetTypes]:
    """The changes that correct the declarations of values whose facts changed."""
    values, known = graph.values, dict[tuple[bytes, Fact, Fact], "bytes | None"]()
    declarations: dict[tuple[int, DeclarationKind], tuple[list[int | str], list[bytes]]] = {}
    for vid, (old, new) in changed.items():
        value = values.get(vid)
        if value is None or new is UNKNOWN or (value.info is None and not value.formal_outputs):
            continue
        for place in graph.declared_at(value):
            key = (place.info.type.SerializePartialToString(), old, new)
            if key not in known:
                known[key] = corrected(place.info.type, old, new)
            if (encoded := known[key]) is not None:
                at, types = declarations.setdefault((place.scope, place.kind), ([], []))
                at.append(place.at)
                types.append(encoded)
    return [SetTypes(scope, kind, tuple(at), tuple(types)) for (scope, kind), (at, types) in declarations.items()]


def corrected(declared: onnx.TypeProto, old: Fact, new: Fact) -> bytes | None:
    """The declared type, serialized, corrected where the change of a fact made it wrong; None if it did not."""
    kind = declared.WhichOneof("value")
    tensors = {"tensor_type": TensorFact, "sparse_tensor_type": SparseTensorFact}
    if kind is None:
        return None
    if isinstance(new, tensors.get(kind, ())):
        type_proto = onnx.TypeProto()
        type_proto.CopyFrom(declared)
        wrong = _correct_tensor(getattr(type_proto, kind), old, new)
    else:
        wrong = bool(contradiction(fact_of_type(declared, _varies), new))
        type_proto = typed(new)
    return type_proto.SerializePartialToString() if wrong else None


def _varies(_: int) -> Dim:
    return VARIES


def _correct_tensor(declared: Any, old: Fact, new: Any) -> bool:
    wrong = False
    if new.elem_type and declared.elem_type and declared.elem_type != new.elem_type != getattr(old, "elem_type", 0):
        declared.elem_type = new.elem_type
        wrong = True
    shape, before = new.shape, old.shape
    if shape is None or not declared.HasField("shape"):
        return wrong
    dims = declared.shape.dim
    if len(dims) != len(shape):
        if before is not None and len(before) == len(shape):
            return wrong  # the ranks differed before the edit
        del dims[:]
        for dim in shape:
            write_dim(dims.add(), dim)
        return True
    known: Iterable[Dim | None] = before if before is not None and len(before) == len(shape) else [None] * len(shape)
    for entry, was, dim in zip(dims, known, shape, strict=True):
        if was != dim and _is_wrong(entry, was, dim):
            write_dim(entry, dim)
            wrong = True
    return wrong


def _is_wrong(entry: onnx.TensorShapeProto.Dimension, was: Dim | None, dim: Dim) -> bool:
    """Whether a declared dim does not hold any more where the fact was `was` and is `dim`."""
    field = entry.WhichOneof("value")
    stated = getattr(entry, field) if field else None
    if stated is None or _says(stated, dim):
        return False
    if was is not None and _says(stated, was):
        return True  # the declaration said what was known
    return isinstance(stated, int) and not is_open(dim)


def _says(stated: int | str, dim: Dim) -> bool:
    """Whether a declared number or name is that of a dim."""
    if isinstance(stated, int):
        return isinstance(dim, int) and stated == dim
    return not isinstance(dim, int) and stated == shown(dim)


def write_dim(entry: onnx.TensorShapeProto.Dimension, dim: Dim) -> None:
    """Write a dim into a declaration; a dim of unknown size leaves it empty, and a denotation stays."""
    entry.ClearField("dim_value")
    entry.ClearField("dim_param")
    if isinstance(dim, int):
        entry.dim_value = dim
    elif not is_open(dim):
        entry.dim_param = str(dim)


def typed(fact: Fact) -> onnx.TypeProto:
    """The type that declares a fact; dims of unknown size are left empty."""
    return type_of_fact(fact, lambda dim: None if is_open(dim) else str(dim))


def merged(declared: onnx.TypeProto, fact: Fact) -> onnx.TypeProto:
    """The declared type with all that is inferred in the place of what it says; the rest of it stays."""
    kind = declared.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type") or not isinstance(fact, TensorFact | SparseTensorFact):
        return declared if fact is UNKNOWN else typed(fact)
    inferred = typed(fact)
    if inferred.WhichOneof("value") != kind:
        return inferred
    result = onnx.TypeProto()
    result.CopyFrom(declared)
    target, known = getattr(result, kind), getattr(inferred, kind)
    if fact.elem_type:
        target.elem_type = fact.elem_type
    if fact.shape is None:
        return result
    if not target.HasField("shape") or len(target.shape.dim) != len(fact.shape):
        target.shape.CopyFrom(known.shape)
        return result
    for entry, dim in zip(target.shape.dim, fact.shape, strict=True):
        if isinstance(dim, int) or not is_open(dim):
            write_dim(entry, dim)
    return result


def rewrite(graph: ModelGraph, inference: Inference, action: Action) -> list[DeclarationChange]:
    """`edits.set_declarations` by what is inferred. Raises EditError as that does."""

    def type_of(vid: int, declared: onnx.TypeProto) -> onnx.TypeProto:
        return merged(declared, inference.fact(vid))

    done = edits.set_declarations(graph, action, type_of, inference.believes)
    return [DeclarationChange(change.value, _fact(change.old), _fact(change.new)) for change in done]


def _fact(declared: onnx.TypeProto | None) -> Fact:
    """A declared type as it is shown."""
    return UNKNOWN if declared is None else fact_of_type(declared, lambda _: symbol("?"))
