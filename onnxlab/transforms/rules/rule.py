"""What a rule is: a pattern, named conditions, and what takes its place; and applying one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from onnxlab.graph.edit.changes import InsertNode, RemoveNode
from onnxlab.graph.index.records import NodeRecord
from onnxlab.transforms.patterns.matcher import Failure, Match, match
from onnxlab.transforms.patterns.pattern import Call, Name, parse
from onnxlab.transforms.rewriting import Array, Rewriting

Condition = Callable[[Match], bool]
Compute = Callable[[Match], Mapping[str, Array]]


@dataclass(frozen=True)
class Rule:
    """One rewrite of a few nodes.

    Attributes:
        name: by which it is asked for.
        text: the pattern and what takes its place: "Add(MatMul(a, w), c) => Gemm(a, w, c)". A node that takes the
            place of one of its operator has the attributes of that one.
        doc: one line for people.
        conditions: what must hold besides, by the words that say it does not.
        compute: constants that the replacement reads and the pattern does not have, by name.
    """

    name: str
    text: str
    doc: str
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    compute: Compute | None = None

    def __post_init__(self) -> None:
        left, _, right = self.text.partition("=>")
        object.__setattr__(self, "pattern", parse(left.strip()))
        object.__setattr__(self, "replacement", parse(right.strip()))

    pattern: Call = field(init=False)
    replacement: Call = field(init=False)

    def find(self, rewriting: Rewriting, node: NodeRecord) -> Match | Failure:
        """The match at a node, or why there is none."""
        found = match(rewriting, self.pattern, node)
        if isinstance(found, Failure):
            return found
        if rewriting.output(node) is None:
            return Failure(len(found.nodes), f"another output of {rewriting.graph.label(node)} is read too")
        for words, holds in self.conditions.items():
            if not holds(found):
                return Failure(len(found.nodes) + 1, words)
        return found

    def apply(self, rewriting: Rewriting, found: Match) -> None:
        """Put the replacement in the place of a match; the value that the outermost node makes keeps its name."""
        graph, root = rewriting.graph, found.root
        label, position = graph.label(root), graph.main.position(root)
        names = {name: value.name for name, value in found.values.items() if value is not None}
        for name, array in (self.compute(found) if self.compute is not None else {}).items():
            names[name] = rewriting.store(rewriting.fresh(f"{label}_{name}"), array).name
        made = _node(self.replacement, found, names)
        made.output.extend(root.proto.output)
        _adopt(made, found)
        graph.apply(RemoveNode(root.id), InsertNode(root.scope, position, made))
        for node in found.nodes[1:]:
            graph.apply(RemoveNode(node.id))
        rewriting.note(self.name, label, f"{self.pattern} became {self.replacement}")

    def why_not(self, rewriting: Rewriting, node: NodeRecord) -> str:
        """Why the rule does not apply at a node, in words; "" where it does."""
        found = self.find(rewriting, node)
        return f"{self.name}: {found.why}" if isinstance(found, Failure) else ""


def _node(call: Call, found: Match, names: Mapping[str, str]) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type=call.op_type, domain=call.domain)
    for wanted in call.inputs:
        assert isinstance(wanted, Name), "replacements are one node"
        node.input.append(names.get(wanted.name, ""))
    while node.input and not node.input[-1]:
        del node.input[-1]
    for old in found.nodes:
        if old.op_type == call.op_type and old.domain == call.domain:
            node.attribute.extend(old.proto.attribute)
            break
    return node


def _adopt(made: onnx.NodeProto, found: Match) -> None:
    """Give a node the name, documentation and metadata of those whose place it takes."""
    root: Any = found.root.proto
    made.name = root.name
    made.doc_string = "\n".join(dict.fromkeys(node.proto.doc_string for node in found.nodes if node.proto.doc_string))
    held: dict[str, str] = {}
    for node in found.nodes:
        for entry in node.proto.metadata_props:
            held.setdefault(entry.key, entry.value)
    for key, text in held.items():
        made.metadata_props.add(key=key, value=text)
