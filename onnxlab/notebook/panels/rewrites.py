"""What rewriting would do and did, for the page: rules with the nodes where they apply, and rules that almost fit."""

from typing import TYPE_CHECKING

from onnxlab.errors import NameLookupError
from onnxlab.graph.handles.handles import Node
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.printable import printable
from onnxlab.transforms.receipt import Receipt
from onnxlab.transforms.rules import table
from onnxlab.transforms.rules.rule import Level, Rule

if TYPE_CHECKING:
    from onnxlab.model import Model

MOST_NODES = 2000
"""Nodes that are listed for a rule."""

MOST_NEAR = 20
"""Rules that are listed for a node."""


def level_of(word: str) -> Level:
    """The level that a page asks for.

    Raises:
        ProtocolError: there is no such level.
    """
    if word not in table.LEVELS:
        raise ProtocolError("invalid", f"there is no level {word!r}", f"Use one of {', '.join(table.LEVELS)}.")
    return word


def preview(model: "Model", level: str) -> JSON:
    """What optimizing to a level would do, by rule."""
    receipt = model.optimize(level_of(level), dry_run=True)
    docs = {rule.name: rule.doc for rule in table.STANDARD}
    names = model.graph.main.names
    nodes_of: dict[str, dict[int, None]] = {}
    for rewrite in receipt.applied:
        producer = model.graph.values[names[rewrite.value]].producer if rewrite.value in names else None
        nodes = nodes_of.setdefault(rewrite.rule, {})
        if producer is not None and len(nodes) < MOST_NODES:
            nodes[producer[0]] = None
    rules = [
        {"rule": rule, "doc": docs.get(rule, ""), "count": count, "nodes": list(nodes_of[rule]), "alone": rule in docs}
        for rule, count in receipt.counts.items()
    ]
    return {"rules": rules, "nodes": list(receipt.nodes)}


def near_misses(model: "Model", node: int) -> JSON:
    """The rules that apply at a node or almost do, but for those written in Python, which say little."""
    if node not in model.graph.nodes:
        raise NameLookupError(f"node {node} is not in the model any more")
    written = [rule for rule in table.STANDARD if isinstance(rule, Rule) and rule.level != "decompose"]
    misses = [miss for miss in model.near_misses(Node(model.graph, node), written) if not miss.why or miss.progress > 0]
    rules = [
        {"rule": miss.rule, "doc": miss.doc, "why": printable(miss.why), "progress": miss.progress}
        for miss in misses[:MOST_NEAR]
    ]
    return {"rules": rules}


def on_wire(receipt: Receipt) -> JSON:
    """What a rewrite did."""
    return {
        "applied": len(receipt.applied),
        "nodes": list(receipt.nodes),
        "verdict": receipt.verdict,
        "refused": [printable(str(refusal)) for refusal in receipt.refused],
    }
