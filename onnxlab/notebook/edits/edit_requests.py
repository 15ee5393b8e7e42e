"""Edits that the page asks for: rows of the table of edits, with parameters as JSON has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.graph.edit.script import Recorded
from onnxlab.graph.edits import EDITS
from onnxlab.graph.edits.recording.edit_spec import EditSpec
from onnxlab.graph.edits.recording.python_calls import handle
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.notebook.edits import typed_tensors
from onnxlab.notebook.edits.kinds import KINDS, ParameterContext, check, chosen_value, node_of, present_array
from onnxlab.notebook.protocol.messages import ProtocolError
from onnxlab.notebook.protocol.uploads import Uploads

if TYPE_CHECKING:
    from onnxlab.model import Model

NOT_BY_HAND = {"for_each_copy", "inline_function"}
"""Edits that take a Python function, or that the page makes by other edits."""

LEFT_OUT = {"add_node": {"outputs"}}
"""Parameters that Python must pass, but that the kernel chooses where a request leaves them out."""

MOST_WRITTEN = 64
"""Changed elements of a tensor that are written out in a statement."""


@dataclass(frozen=True, slots=True)
class EditRequest:
    """An edit of the table with its subject and parameters.

    Attributes:
        on: the kind of subject: "model", "graph", "node", "nodes" or "value".
        subject: ids of nodes or values; empty for the model and its graph.
        parameters: the parameters as the request has them.
    """

    spec: EditSpec
    on: str
    subject: tuple[int, ...]
    parameters: Mapping[str, Any]


def parse(name: str, on: str, subject: Sequence[int], parameters: Mapping[str, Any]) -> EditRequest:
    """Check a request before anything is done.

    Raises:
        ProtocolError: there is no such edit, or the subject or a parameter does not fit it.
    """
    spec = EDITS.get(name)
    if spec is None or name in NOT_BY_HAND:
        known = ", ".join(edit for edit in EDITS if edit not in NOT_BY_HAND)
        raise ProtocolError("malformed", f"edit: no edit {name!r}; there are {known}")
    if on not in spec.subjects and not (on == "nodes" and "node" in spec.subjects):
        raise ProtocolError("malformed", f"edit: {name} is done to {' or '.join(spec.subjects)}, got {on!r}")
    fits = {"model": not subject, "graph": not subject, "nodes": len(subject) > 0}.get(on, len(subject) == 1)
    if not fits:
        raise ProtocolError("malformed", f"edit: {name} is done to {on}, got {len(subject)} ids")
    optional = {key for key, edit in spec.parameters.items() if not edit.required} | LEFT_OUT.get(name, set())
    if not spec.parameters.keys() - optional <= parameters.keys() <= spec.parameters.keys():
        takes = ", ".join(spec.parameters) or "nothing"
        raise ProtocolError("malformed", f"edit: {name} takes {takes}, got {', '.join(parameters) or 'nothing'}")
    for key, payload in parameters.items():
        if payload is not None or key not in optional:
            check(name, key, spec.parameters[key].kind, payload)
    return EditRequest(spec, on, tuple(subject), parameters)


def perform(model: "Model", request: EditRequest, uploads: Uploads, origin: str) -> None:
    """Make an edit as one undo step of a view.

    Raises:
        NameLookupError: the subject is not in the model any more.
        EditError: the model refuses; nothing changed.
    """
    spec, graph = request.spec, model.graph
    subjects = _subjects(model, request)
    label = _label_of_several(request, len(subjects)) if len(subjects) > 1 else ""
    with graph.edit(label, origin) as edit:
        for subject in subjects:
            unset = spec.name == "clear_attribute" and request.parameters["name"] not in set(subject.attributes)
            if unset:
                continue  # the default is in effect already
            place = ParameterContext(model, request.on, subject, request.parameters, uploads)
            caption = _caption(place, spec)
            _make(place, request)
            if caption is not None:
                edit.sum_up(caption)


def _subjects(model: "Model", request: EditRequest) -> list[Any]:
    """The subjects of the edit, one after the other; a list of nodes is one subject where the edit takes lists."""
    if request.on in ("model", "graph"):
        return [model]
    if request.on == "value":
        return [chosen_value(model, ident) for ident in request.subject]
    nodes = [node_of(model, ident) for ident in request.subject]
    return [nodes] if "nodes" in request.spec.subjects else list(nodes)


def _label_of_several(request: EditRequest, count: int) -> str:
    """The label of an edit of several nodes; from the edit's name where its label is of what no request has."""
    spec = request.spec
    defaults = {name: parameter.default for name, parameter in spec.parameters.items() if not parameter.required}
    try:
        return spec.label_of({**defaults, **request.parameters}, f"{count} nodes")
    except KeyError:
        return f"{spec.name.replace('_', ' ')} of {count} nodes"


def _make(place: ParameterContext, request: EditRequest) -> None:
    spec = request.spec
    args = {
        name: None if value is None else KINDS[spec.parameters[name].kind].read(place, value)
        for name, value in request.parameters.items()
        if value is not None or KINDS[spec.parameters[name].kind].fits(None)  # null counts as left out
    }
    if (perform_otherwise := _OTHERWISE.get(spec.name)) is not None:
        perform_otherwise(place, args)
        return
    assert spec.statement is not None
    positional = [args[name] for name, parameter in spec.parameters.items() if parameter.required]
    keywords = {
        name: args[name] for name, parameter in spec.parameters.items() if not parameter.required and name in args
    }
    if request.on == "graph":  # fields of the main graph are attributes of the model
        setattr(place.model, f"graph_{spec.statement.attribute}", positional[0])  # type: ignore[union-attr]
        return
    spec.statement.make(place.model, place.subject, positional, keywords)


# -- edits whose requests differ from Python ---------------------------------------------------------------------------


def _add_node(place: ParameterContext, args: Mapping[str, Any]) -> None:
    model, op_type, domain = place.model, args["op_type"], args.get("domain", "")
    scope = args.get("scope", "")
    outputs = args.get("outputs") or _free_names(model, op_type, domain, bool(scope))
    model.add_node(op_type, args["inputs"], outputs, args.get("name", ""), domain, scope=scope)


def _free_names(model: "Model", op_type: str, domain: str, inner: bool) -> list[str]:
    """A free name for each output that the operator must have."""
    graph = model.graph
    version = graph.opset_version(domain)
    schema = schemas.find(domain, op_type, version) if version else None
    used = {name for scope in graph.scopes.values() for name in scope.names} if inner else graph.main.names
    outputs: list[str] = []
    for number in range(schema.min_output if schema else 1):
        stem = f"{op_type.lower()}_{number}" if number else op_type.lower()
        free = (name for name in [stem, *(f"{stem}_{i}" for i in range(1, len(used) + 2))] if name not in used)
        outputs.append(next(free))
    return outputs


def _add_input(place: ParameterContext, args: Mapping[str, Any]) -> None:
    dtype, shape = args.get("dtype"), args.get("shape")
    if shape is not None and dtype is None:
        raise EditError(f"{args['name']!r} is given a shape but no type; give both or neither")
    place.model.add_input(args["name"], dtype, shape, scope=args.get("scope", ""))


def _set_input(place: ParameterContext, args: Mapping[str, Any]) -> None:
    if args["value"] is None:
        place.subject.set_input(args["slot"], None)
    else:
        place.model.connect(args["value"], place.subject, args["slot"])


def _set_operator(place: ParameterContext, args: Mapping[str, Any]) -> None:
    domain = args.get("domain", "")
    place.subject.replace(args["op_type"], None if domain == place.subject.domain else domain)


def _set_field(place: ParameterContext, args: Mapping[str, Any]) -> None:
    """Set a field of the model; ir_version and model_version are numbers, all others are text."""
    field, value = args["field"], args["value"].strip()
    if field in ("ir_version", "model_version"):
        try:
            value = int(value)
        except ValueError:
            raise EditError(f"{field} is an integer, got {value!r}") from None
    place.model.set_field(field, value)


def _insert(place: ParameterContext, args: Mapping[str, Any]) -> None:
    connect, feed = _wires(args)
    place.model.insert(
        _other(args), connect, args.get("prefix", ""), args.get("outputs", True),
        {value: name for name, value in feed.items()},
    )  # fmt: skip


def _other(args: Mapping[str, Any]) -> Any:
    """The model in the chosen file. Raises LoadError where the file is no model."""
    return args["file"].opened()


def _wires(args: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, Value]]:
    """The values that the other model's inputs read, in turn, and those that its outputs replace; None: not wired."""
    file, (inputs, outputs) = args["file"].name, wired_values(_other(args))
    sides = (("connect", inputs, "inputs"), ("feed", outputs, "outputs"))
    for key, values, side in sides:
        if len(args[key]) > len(values):
            raise EditError(f"{file} has {len(values)} {side}, got {len(args[key])} values for them")
    connect, feed = (
        {theirs.name: ours for theirs, ours in zip(values, args[key], strict=False) if ours is not None}
        for key, values, _ in sides
    )
    return connect, feed


def wired_values(other: "Model") -> tuple[list[Value], list[Value]]:
    """The inputs and outputs of a model that can be wired to values of another, in their order."""
    return [value for value in other.inputs if not value.initializer], list(other.outputs)


def _set_metadata(place: ParameterContext, args: Mapping[str, Any]) -> None:
    entries = place.model.graph_metadata if place.on == "graph" else place.subject.metadata
    if args["text"] is None:
        entries.pop(args["key"], None)
    else:
        entries[args["key"]] = args["text"]


_OTHERWISE: Mapping[str, Callable[[ParameterContext, Mapping[str, Any]], None]] = {
    "add_node": _add_node,
    "add_input": _add_input,
    "set_input": _set_input,
    "set_operator": _set_operator,
    "set_model_field": _set_field,
    "set_metadata": _set_metadata,
    "insert_model": _insert,
}


# -- statements of edits with files or elements ------------------------------------------------------------------------


def _caption(place: ParameterContext, spec: EditSpec) -> Recorded | None:
    """The statement of an edit for which the page sent a file, or single elements; None for all others."""
    payloads = place.given
    if spec.name == "insert_model":
        return Recorded("", _insertion(place))
    array = payloads.get("array") if spec.name == "set_initializer" else payloads.get("value")
    if not isinstance(array, dict):
        return None
    graph, subject = place.model.graph, place.subject
    record = graph.nodes[subject.id] if isinstance(subject, Node) else graph.values[subject.id]
    where = f".attributes[{payloads['name']!r}]" if isinstance(subject, Node) else ".array"
    target = f"{handle(graph.names, record)}{where}"
    if "file" in array:
        return Recorded("", f"{target} = np.load({place.uploads.get(array['file']).name!r})")
    if "elements" in array and len(array["elements"]) <= MOST_WRITTEN:
        return Recorded("", typed_tensors.changed_line(target, present_array(place), array["elements"]), exact=True)
    return None


def _insertion(place: ParameterContext) -> str:
    payloads = place.given
    read = {name: KINDS[kind].read(place, payloads[name]) for name, kind in
            (("file", "model_file"), ("connect", "values"), ("feed", "values"))}  # fmt: skip
    connect, feed = _wires(read)
    words = [repr(read["file"].name)]
    words += [repr({name: value.name for name, value in connect.items()})] if connect else []
    words += [f"prefix={payloads['prefix']!r}"] if payloads.get("prefix") else []
    words += [] if payloads.get("outputs", True) else ["add_outputs=False"]
    words += [f"feed={ {value.name: name for name, value in feed.items()}!r}"] if feed else []
    return f"model.insert({', '.join(words)})"
