"""Loop-carried values that no iteration changes, such as a recurrent layer's weights."""

from __future__ import annotations

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
