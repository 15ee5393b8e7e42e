"""Runtime optimizations of a file in ORT format: what ONNX Runtime may do with some nodes when it loads it.

A record in a file refers to nodes by their indexes. Here a record holds copies of its nodes, since an edit changes
indexes and nodes: a record is written only if the model still has all of its nodes unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import onnx

from onnxlab.formats.ort.reader import FlatTable

ABSENT: Final = (1 << 32) - 1
"""The index of an absent optional node."""

_COUNTS: Final = (
    "num_inputs", "num_outputs", "has_variadic_input", "has_variadic_output", "num_variadic_inputs",
    "num_variadic_outputs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuntimeOptimization:
    """One rewrite that the runtime may make.

    Attributes:
        optimizer, action: ONNX Runtime's names of the rewrite.
        nodes: the nodes that are rewritten, as bytes of their NodeProtos; None for an absent optional node.
        outputs: the outputs of these nodes, by which they are found in a model.
        produced: ids of the operators that the rewrite inserts, such as ":QLinearConv:10".
        counts: the numbers beside the nodes in the record.
    """

    optimizer: str
    action: str
    nodes: tuple[bytes | None, ...]
    outputs: tuple[tuple[str, ...], ...]
    produced: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        makes = self.texts()[-1]
        return f"{self.optimizer}: {self.action}{f' makes {makes}' if makes else ''}"

    def texts(self) -> tuple[str, ...]:
        """Optimizer, action, outputs of the nodes, and the operators that the rewrite inserts, for a table."""
        makes = ", ".join(entry.split(":")[1] if entry.count(":") == 2 else entry for entry in self.produced)
        names = ", ".join(name for outputs in self.outputs for name in outputs if name)
        return self.optimizer, self.action, names, makes

    def present(self, graph: onnx.GraphProto) -> list[int | None] | None:
        """The places of its nodes in a graph; None where an edit touched one of them."""
        by_output = {tuple(node.output): place for place, node in enumerate(graph.node)}
        places: list[int | None] = []
        for data, outputs in zip(self.nodes, self.outputs, strict=True):
            place = by_output.get(outputs)
            if data is None:
                places.append(None)
            elif place is None or graph.node[place].SerializeToString(deterministic=True) != data:
                return None
            else:
                places.append(place)
        return places


def read_optimizations(stored: FlatTable, nodes: Mapping[int, onnx.NodeProto]) -> Iterator[RuntimeOptimization]:
    """The records of a graph, without those that refer to missing nodes."""
    for optimizer in stored["records"]:
        for record in optimizer["runtime_optimization_records"]:
            places = record["nodes_to_optimize_indices"]
            if places is None:
                continue
            indexes = [int(index) for index in places["node_indices"]]
            if any(index != ABSENT and index not in nodes for index in indexes):
                continue
            present = [nodes.get(index) for index in indexes]
            yield RuntimeOptimization(
                optimizer.text("optimizer_name"),
                record.text("action_id"),
                tuple(None if node is None else node.SerializeToString(deterministic=True) for node in present),
                tuple(tuple(node.output) if node is not None else () for node in present),
                tuple(record.texts("produced_op_ids")),
                tuple((name, int(places[name])) for name in _COUNTS),
            )


def notes(optimizations: Sequence[RuntimeOptimization], node: onnx.NodeProto) -> dict[str, str]:
    """Notes on the runtime's rewrites of a node when it loads the file, and on those that an edit prevents."""
    outputs, lines = tuple(node.output), []
    for entry in optimizations:
        if outputs in entry.outputs:
            unedited = entry.nodes[entry.outputs.index(outputs)] == node.SerializeToString(deterministic=True)
            lines.append(f"{entry}, {sum(data is not None for data in entry.nodes)} nodes"
                         f"{'' if unedited else ' (not any more: the node was edited)'}")  # fmt: skip
    return {"Runtime optimization": "; ".join(lines)} if lines else {}


def optimization_tables(
    optimizations: Sequence[RuntimeOptimization], graph: onnx.GraphProto
) -> tuple[dict[str, Any] | None, list[RuntimeOptimization]]:
    """The records that still apply to a graph, as a table; and the others, edited since or of other graphs."""
    by_optimizer: dict[str, list[dict[str, Any]]] = {}
    dropped = []
    for entry in optimizations:
        places = entry.present(graph)
        if places is None:
            dropped.append(entry)
            continue
        indexes = [ABSENT if place is None else place for place in places]
        by_optimizer.setdefault(entry.optimizer, []).append({
            "action_id": entry.action,
            "nodes_to_optimize_indices": {"node_indices": indexes, **dict(entry.counts)},
            "produced_op_ids": list(entry.produced),
        })  # fmt: skip
    if not by_optimizer:
        return None, dropped
    records = [
        {"optimizer_name": name, "runtime_optimization_records": by_optimizer[name]}
        for name in sorted(by_optimizer, key=str.encode)
    ]
    return {"records": records}, dropped
