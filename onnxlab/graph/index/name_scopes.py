"""Places of nodes in the exporter's hierarchy: the path of scopes in a name or in metadata.

A path is an int that identifies a node of one tree. The tree only grows, so that a path keeps its int over all
edits. Three notations are read; where a node has several, the first of this list counts:

* torch's dynamo exporter, `metadata_props["pkg.torch.onnx.name_scopes"]`:
  `['', 'encoder', 'encoder.layer.5', 'matmul_10']`, each entry whole, the last one being the node itself;
* the same exporter's `metadata_props["namespace"]`: `: Model/encoder: Encoder/encoder.layer.5:
  Layer/matmul: aten.matmul`;
* names cut at slashes, as torch's older exporter, TensorFlow and JAX write them: `/encoder/layer.5/MatMul`.
"""

from collections.abc import Callable, Iterable, Sequence

from onnxlab.graph.index.records import NodeRecord

ROOT = 0
_NO_SCOPE = "_empty_nn_module_stack_from_metadata_hook"
"""Scope that torch's exporter writes for nodes that belong to no module."""
_SCOPES = "pkg.torch.onnx.name_scopes"
_NAMESPACE = "namespace"
BY_HAND = "onnxlab.group"
"""The entry of a node's metadata that names the groups made by hand around it; see `query.hierarchy_by_hand`."""

MAX_DEPTH = 32
"""Deepest nesting of scopes that is represented; deeper scopes in a name are ignored."""


class NameScopes:
    """The tree of paths: parallel lists by path, and a memo from what a node says to its path.

    Attributes:
        parents: the path without its last part, by path; the parent of ROOT is ROOT.
        names: the last part as displayed, by path.
        depths: number of parts, by path.
        by_hand: metadata of groups made by hand, by the id of a node whose path was asked for.
    """

    def __init__(self) -> None:
        self.parents = [ROOT]
        self.names = [""]
        self.depths = [0]
        self._children: dict[tuple[int, str], int] = {}
        self._memo: dict[str, int] = {"": ROOT}
        self.by_hand: dict[int, str] = {}

    def path(self, node: NodeRecord) -> int:
        """The path that a node claims; ROOT where it says nothing."""
        proto = node.proto
        entries = proto.metadata_props
        if self.by_hand:
            self.by_hand.pop(node.id, None)
        if entries:
            metadata = {entry.key: entry.value for entry in entries}
            if group := metadata.get(BY_HAND):
                self.by_hand[node.id] = group
            if scopes := metadata.get(_SCOPES):
                return self._remember(scopes, split_name_scopes)
            if namespace := metadata.get(_NAMESPACE):
                return self._remember(namespace, split_namespace)
        return self._of_name(proto.name)

    def paths(self, nodes: Iterable[NodeRecord]) -> list[int]:
        """The paths that many nodes claim."""
        known, paths = self._memo.get, []
        for node in nodes:
            proto = node.proto
            if proto.metadata_props:
                paths.append(self.path(node))
                continue
            name = proto.name
            path = known(name[: name.rfind("/") + 1])
            paths.append(self._of_name(name) if path is None else path)
        return paths

    def common(self, left: int, right: int) -> int:
        """The longest path that both lie in."""
        parents, depths = self.parents, self.depths
        while left != right:
            if depths[left] >= depths[right]:
                left = parents[left]
            else:
                right = parents[right]
        return left

    def named(self, parts: Sequence[str]) -> int:
        """The path of these parts, made where it is new."""
        return self._insert(parts, whole=False)

    def _of_name(self, name: str) -> int:
        head = name[: name.rfind("/") + 1]
        path = self._memo.get(head)
        if path is None:
            path = self._memo[head] = self._insert([part for part in head.split("/") if part], whole=False)
        return path

    def _remember(self, text: str, split: Callable[[str], list[str]]) -> int:
        key = text[: max(text.rfind(","), text.rfind("/")) + 1] or text
        path = self._memo.get(key)
        if path is None:
            path = self._memo[key] = self._insert(split(text), whole=True)
        return path

    def _insert(self, parts: Sequence[str], whole: bool) -> int:
        """The path of `parts`, made where it is new; `whole` parts repeat the name of the one around them.

        A part that is only a number is displayed together with the part around it, "layers.3".
        """
        path, outer = ROOT, ""
        for part in parts[:MAX_DEPTH]:
            child = self._children.get((path, part))
            if child is None:
                child = self._children[path, part] = len(self.names)
                self.parents.append(path)
                shown = part.removeprefix(outer + ".") if whole and outer else part
                self.names.append(f"{self.names[path]}.{shown}" if shown.isdigit() and path != ROOT else shown)
                self.depths.append(self.depths[path] + 1)
            path, outer = child, part
        return path


def split_name_scopes(text: str) -> list[str]:
    """`['', 'm', 'm.layer.5', 'add']` -> ["m", "m.layer.5"].

    The text is Python's repr of a list of names without quotes. It is split by hand, since literal_eval takes 20 times
    as long.
    """
    parts = text.strip().removeprefix("[").removesuffix("]").split(",")
    return [name for part in parts[:-1] if (name := part.strip().strip("'\"")) not in ("", _NO_SCOPE)]


def split_namespace(text: str) -> list[str]:
    """`: Model/m: Encoder/m.layer.5: Layer/add: aten.add` -> ["m", "m.layer.5"]."""
    names = [part.partition(":")[0].strip() for part in text.split("/")]
    return [name for name in names[:-1] if name not in ("", _NO_SCOPE)]
