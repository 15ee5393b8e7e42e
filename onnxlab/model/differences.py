"""`diff`: the structural difference of two models, in whatever formats they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from onnxlab.model.model import Model
from onnxlab.model.opening import load
from onnxlab.model.source import ModelSource

if TYPE_CHECKING:
    from onnxlab.analysis.diff.change import Ignorable
    from onnxlab.analysis.diff.difference import Diff


def diff(
    a: Model | ModelSource,
    b: Model | ModelSource,
    *,
    ignore: Collection[Ignorable] = (),
    tolerance: float = 0.0,
) -> Diff:
    """Compare two models by structure, whatever their nodes and values are called.

    Nodes, values, bodies, functions, initializers, metadata and opsets are matched and compared. `print` it, ask for
    `to_markdown` or `to_json`, look at `changes` and `regions`, or make the changes elsewhere: `model.patch(diff)`.

    Args:
        a, b: a Model each, or what `onnxlab.load` takes: any format.
        ignore: what is to be left out: "names", "order", "docs", "metadata", "declarations", "weights", "attributes",
            "opsets", "producer".
        tolerance: how far stored tensors may be apart to count as equal, relative to the largest magnitude.

    Returns:
        Diff: true where there is a difference.

    Raises:
        LoadError: a file is missing, or is no model.
        ValueError: there is nothing of such a name to be ignored.

    Examples:
        >>> other = onnxlab.load()
        >>> other.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
        >>> print(onnxlab.diff(model, other))
        1 changed; 24 of 24 nodes matched
        ~ node /stem/relu/Relu: operator Relu → Sigmoid
    """
    from onnxlab.analysis.diff.difference import Diff

    left, right = (side if isinstance(side, Model) else load(side) for side in (a, b))
    with left.graph.lock, right.graph.lock:
        difference = Diff(left.graph, right.graph, ignore, tolerance)
        difference.changes  # noqa: B018 (now, since the models may be edited later)
    return difference
