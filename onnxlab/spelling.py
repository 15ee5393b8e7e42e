"""Near names for a misspelt one, and objects that refuse attributes which they do not have."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

_FACTS = "model.fact(value), or all of model.with_dims().facts"
_STORED = 'model.find_values(kind="initializer"), and the array of each of them'
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "Model": {
        **dict.fromkeys(("weights", "initializer", "initializers", "parameters", "state_dict", "tensors"), _STORED),
        **dict.fromkeys(("infer_shapes", "shape", "shapes", "shape_of", "value_info"), _FACTS),
        **dict.fromkeys(("summary", "info"), "print(model)"),
        **dict.fromkeys(("show", "draw", "plot", "display"), "model.view(), model.to_svg(path) or model.to_html(path)"),
        **dict.fromkeys(("export", "to_onnx", "write"), "model.save(path)"),
        **dict.fromkeys(("copy", "clone"), "copy.copy(model)"),
        **dict.fromkeys(("opset", "opset_version", "opset_import"), "model.opsets"),
        **dict.fromkeys(("predict", "forward", "infer"), "model.run(feeds)"),
        **dict.fromkeys(("cleanup", "prune"), "model.drop_dead_nodes()"),
        "toposort": "model.sort_nodes()",
        "remove_node": "model.nodes[name].remove()",
        "ir_version": "model.proto.ir_version",
    },
    "Node": {
        "op": "node.op_type",
        "attrs": "node.attributes",
        "delete": "node.remove(), or node.remove(bypass=True)",
    },
    "Value": {
        **dict.fromkeys(("shape", "dtype", "type", "fact"), "model.fact(value)"),
        **dict.fromkeys(("consumers", "readers"), "value.uses"),
        "values": "value.array where it is stored, model.values[name] after a run",
    },
}
"""{class: {a name that other tools have: what stands for it here}}."""


def suggestion(key: str, names: Iterable[str]) -> str:
    """The end of a message, " Did you mean …", with names close to the key; "" where there are none."""
    pool = [name for name in names if name]
    close = difflib.get_close_matches(key, pool[:20_000], 3)
    close += [name for name in pool if key.lower() in name.lower() and name not in close][: 5 - len(close)]
    return f" Did you mean {', '.join(repr(name) for name in close)}?" if close else ""


class Spelled:
    """An object of which a misspelt attribute can be neither read nor set; classes derived from it have `__slots__`."""

    __slots__ = ()

    if not TYPE_CHECKING:  # else every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property of that name raised the AttributeError
                return object.__getattribute__(self, name)
            raise misspelt(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                object.__setattr__(self, name, value)
            except AttributeError:
                if hasattr(type(self), name):  # a property that cannot be set
                    raise
                raise misspelt(self, name) from None


def misspelt(owner: object, name: str) -> AttributeError:
    """The refusal of an attribute, with the near names that the object has."""
    known = [member for member in dir(type(owner)) if not member.startswith("_")]
    kind = type(owner).__name__
    counterpart = ELSEWHERE.get(kind, {}).get(name)
    text = f"a {kind} has no attribute {name!r}.{f' Use {counterpart}.' if counterpart else suggestion(name, known)}"
    return AttributeError(text, name=name, obj=None)  # with an `obj`, Python would add the near name once more
