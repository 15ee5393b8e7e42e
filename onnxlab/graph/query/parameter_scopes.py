"""Paths from the names of parameters, for models whose nodes have no scopes in their names.

Optimizers and converters rename nodes and keep the names of weights: `encoder.layer.5.attention.self.query.weight`.
A node with such weights has the path of their names. A node without weights has the path of the last node that it reads
from.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import compress

from onnxlab.graph.index.name_scopes import ROOT, NameScopes
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.ops import find_traits

LEAST_SHARE = 8
"""Nodes count as having scopes where at least one of LEAST_SHARE claims one."""
LEAST_PATHS = 3
_KIND = re.compile(r"[._](w|b|weights?|bias|kernel|filter)(_\d+)?$")
COUNTED = re.compile(r"[a-z\d_]+_\d+\.[wb]_\d+")
"""Names that PaddlePaddle makes of operator and number, "conv2d_7.w_0", which tell nothing of modules."""
_MEANINGLESS = re.compile(rf"(?i:onnx::|p2o|val_|const|_?\d|helper\.|graph_constant)|{COUNTED.pattern}")


def parameter_paths(
    nodes: Sequence[NodeRecord], values: Mapping[int, ValueRecord], sources: Sequence[int], names: NameScopes
) -> list[int] | None:
    """The path of each node by its parameters; None where these say nothing of most of the model.

    Args:
        nodes: the nodes of one scope, in topological order.
        sources: whether a node reads nothing but weights; such a node has the path of its readers.
    """
    stored = _stored_names(nodes, values, sources)
    if not stored:
        return None
    paths = [ROOT if source else _path_of(node, stored, names) for node, source in zip(nodes, sources, strict=True)]
    if sum(path != ROOT for path in paths) * LEAST_SHARE < len(nodes):
        return None
    if len(set(paths)) < LEAST_PATHS:
        return None
    _adopt_from_readers(nodes, stored, sources, paths)
    by_value: dict[int, tuple[int, int]] = {}  # place and path of a value's producer
    for place, node in enumerate(nodes):
        if paths[place] == ROOT and not sources[place] and not _is_border(node):
            inputs = [by_value[value] for value in node.inputs if value in by_value]
            if inputs:
                paths[place] = max(inputs)[1]
        if paths[place] != ROOT:
            by_value.update((value, (place, paths[place])) for value in node.outputs if value)
    return paths


def _is_border(node: NodeRecord) -> bool:
    """Whether a node stands between modules rather than in the one before it."""
    return find_traits(node.domain, node.op_type).category == "pooling"


def _adopt_from_readers(
    nodes: Sequence[NodeRecord], stored: Mapping[int, str], sources: Sequence[int], paths: list[int]
) -> None:
    """A product whose weight was given a new name goes to what reads it: its bias still has the old one."""
    path_of: dict[int, int] = {}  # by value: the path of its first reader
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        if paths[place] == ROOT and not sources[place] and any(value in stored for value in node.inputs):
            paths[place] = next((path_of[value] for value in node.outputs if path_of.get(value, ROOT) != ROOT), ROOT)
        path_of.update(dict.fromkeys(node.inputs, paths[place]))


def _stored_names(
    nodes: Sequence[NodeRecord], values: Mapping[int, ValueRecord], sources: Sequence[int]
) -> dict[int, str]:
    """The name of the parameter behind each value that is one, or is made of nothing but one."""
    names = {value.id: value.name for value in values.values() if value.initializer is not None}
    for node in compress(nodes, sources):
        if node.op_type != "Constant":
            read = (names[value] for value in node.inputs if value in names and node.op_type != "ConstantOfShape")
            name = next(read, "")
            names.update((value, name or values[value].name) for value in node.outputs if value)
    return names


def _path_of(node: NodeRecord, stored: Mapping[int, str], names: NameScopes) -> int:
    common = ROOT
    for value in node.inputs:
        name = stored.get(value, "")
        if not name or _MEANINGLESS.match(name):
            continue
        path = names.named(parts_of(name))
        if path != ROOT:
            common = path if common == ROOT else names.common(common, path)
    return common


def parts_of(name: str) -> tuple[str, ...]:
    """Split a name: "encoder.layer.5.query.weight" is in ("encoder", "layer.5", "query"), "conv1_w" in ("conv1",)."""
    parts = [part for part in name.split("/" if "/" in name else ".") if part]
    if len(parts) == 1 and (stem := _KIND.sub("", name)) != name:
        return (stem,)
    parts = parts[:-1]
    joined: list[str] = []
    for part in parts:
        if part.isdecimal() and joined:
            joined[-1] = f"{joined[-1]}.{part}"
        else:
            joined.append(part)
    return tuple(joined)
