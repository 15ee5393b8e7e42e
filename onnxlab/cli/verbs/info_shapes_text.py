"""`onnxlab info`, `shapes` and `text`: what is in a model."""

import argparse
from typing import TYPE_CHECKING, Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE
from onnxlab.cli.base.inputs import dims_of, names_of, open_model
from onnxlab.printable import printable_lines

if TYPE_CHECKING:
    from onnxlab.model import Model


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    info = verbs.add("info", _info, "say what is in the model")
    words = "print the operators that the model needs, as a required_operators.config of ONNX Runtime"
    info.add_argument("--operators", action="store_true", help=words)
    shapes = verbs.add("shapes", _shapes, "print type and shape of every value, as inference knows them")
    entries.sizes(shapes)
    shapes.add_argument("--values", metavar="NAMES", help="comma-separated; default: all of the main graph")
    text = verbs.add("text", _text, "print the model as lines, for git to compare")
    text.add_argument("--declared", action="store_true", help="without the types and shapes that inference knows")


def _info(options: argparse.Namespace) -> int:
    from onnxlab.render import text

    model = open_model(options)
    if options.operators:
        needed = model.files.required_operators()
        rows = [{"domain": domain, "version": since, "operator": name} for domain, since, name in needed.operators]
        answer(options, lambda: {"operators": rows}, lambda: str(needed))
        return DONE
    about = model.files.about()
    besides = f"\n{about}" if about.title != "ONNX" else ""
    answer(options, lambda: {**facts(model), "format": model.files.format}, lambda: text.summary(model) + besides)
    return DONE


def facts(model: "Model") -> dict[str, Any]:
    """The facts that `info --json` prints."""
    from collections import Counter

    from onnxlab.render import text

    count, nbytes = text.parameters(model)
    proto, graph = model.proto, model.graph
    return {
        "path": str(model.path) if model.path else None,
        "ir_version": proto.ir_version,
        "producer": " ".join(filter(None, (proto.producer_name, proto.producer_version))),
        "opsets": {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import},
        "nodes": len(graph.main.node_ids),
        "nodes_inside": len(graph.nodes) - len(graph.main.node_ids),
        "functions": len(proto.functions),
        "parameters": count,
        "parameter_bytes": nbytes,
        "inputs": [{"name": value.name, "type": str(model.fact(value.id))} for value in model.inputs],
        "outputs": [{"name": value.name, "type": str(model.fact(value.id))} for value in model.outputs],
        "operators": dict(Counter(node.op_type for node in model.nodes).most_common()),
        "metadata": {entry.key: entry.value for entry in proto.metadata_props},
    }


def _shapes(options: argparse.Namespace) -> int:
    model = open_model(options)
    names = names_of(options.values) or _names_of_values(model)
    sized = model.with_dims(dims_of(options.sizes)).facts if options.sizes else {}
    rows = [{"value": name, "type": str(sized.get(name) or model.fact(name))} for name in names]
    answer(options, lambda: {"values": rows}, lambda: printable_lines(f"{row['value']}: {row['type']}" for row in rows))
    return DONE


def _names_of_values(model: "Model") -> list[str]:
    """Values of the main graph, those that are given before those that nodes make."""
    graph = model.graph
    results = [value for node in graph.main.node_ids for value in graph.nodes[node].outputs if value]
    return [graph.values[value].name for value in dict.fromkeys((*graph.main.names.values(), *results))]


def _text(options: argparse.Namespace) -> int:
    from onnxlab.analysis.diff.outline import outline

    model = open_model(options)
    lines = outline(model.graph, None if options.declared else model.fact)
    answer(options, lambda: {"lines": lines.split("\n")}, lambda: lines)
    return DONE
