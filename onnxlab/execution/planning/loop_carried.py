"""Loop-carried values that no iteration changes, such as a recurrent layer's weights, or to which each appends an item.

A value that a body reads only to append to it, as a list of tokens, is left out of the body's program: the program
makes the item, and the loop appends all items at once where it runs as a whole. Else each iteration, whose shapes would
differ from those of the one before, would need a plan of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnxlab.graph.edit.snapshot import NodeView, ScopeView


def invariant_inputs(node: NodeView, body: ScopeView) -> Iterator[tuple[str, str]]:
    """(input of a Loop's or Scan's body, value of the node) for each body input that no iteration changes."""
    copies = (copy for copy in body.nodes if copy.op_type == "Identity" and not copy.domain)
    sources = {copy.outputs[0]: copy.inputs[0] for copy in copies if copy.outputs and copy.inputs}
    sources.pop("", None)
    for source, carried, after in _carried(node, body):
        for _ in sources:  # bounded: in a faulty model the sources may form a cycle
            if after not in sources:
                break
            after = sources[after]
        if after == carried and source:
            yield carried, source


def _carried(node: NodeView, body: ScopeView) -> Iterator[tuple[str, str, str]]:
    """(value of the node, input of the body, output of the body) for each value that is carried."""
    if node.domain or node.op_type not in ("Loop", "Scan"):
        return
    if node.op_type == "Loop":  # the trip count and the condition come first, the condition comes out
        yield from zip(node.inputs[2:], body.inputs[2:], body.outputs[1:], strict=False)
    else:
        scanned = node.attributes.get("num_scan_inputs")  # required: without it, the node raises an error when it runs
        count = len(node.inputs) - scanned if isinstance(scanned, int) else 0
        yield from zip(node.inputs[:count], body.inputs, body.outputs, strict=False)


def grown_inputs(node: NodeView, body: ScopeView, captured: Counter[str]) -> Iterator[tuple[int, int, NodeView]]:
    """(place among the inputs, place among the outputs, the Concat) of values to which a Loop's body appends items.

    Args:
        captured: how often bodies inside of the body read each name.
    """
    if node.domain or node.op_type != "Loop":
        return
    reads = captured + Counter(name for inner in body.nodes for name in inner.inputs) + Counter(body.outputs)
    makers = {inner.outputs[0]: inner for inner in body.nodes if inner.op_type == "Concat" and not inner.domain}
    count, items = len(node.inputs) - 2, set[str]()
    for place, (_, carried, after) in enumerate(_carried(node, body)):
        maker = makers.get(after)
        if maker is None or len(maker.inputs) != 2 or maker.inputs[0] != carried:
            continue
        item = maker.inputs[1]
        is_other = item in items or item == body.outputs[0] or item in body.outputs[1 + count :]
        if reads[carried] == reads[after] == 1 and not is_other:
            items.add(item)
            yield place + 2, place + 1, maker
