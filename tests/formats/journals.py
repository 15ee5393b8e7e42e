"""Journals of models that crashed."""

import contextlib
import os
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.errors import EditError, JournalWarning
from onnxlab.graph import edits
from onnxlab.graph.edit import changes


def crash(model: onnxlab.Model) -> None:
    """Release the lock as the death of the process does, and tidy nothing up."""
    holder = model.graph.journal._holder  # type: ignore[attr-defined]
    if holder.file:
        os.close(holder.file._descriptor)
        holder.file._descriptor, holder.file = -1, None


def reopened(path: Path) -> onnxlab.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JournalWarning)
        return onnxlab.load(path)


def random_edits(model: onnxlab.Model, count: int, seed: int = 0) -> Iterator[bytes]:
    """`count` commits of every sort, undo and redo among them; yields the model's bytes after each."""
    rng, graph = random.Random(seed), model.graph
    done = 0
    while done < count:
        node = graph.nodes[rng.choice(list(graph.nodes))]
        value = graph.values[rng.choice(list(graph.values))]
        choices: list[Any] = [
            lambda node=node: edits.rename_node(graph, node, f"n{graph.version}"),
            lambda value=value: edits.rename_value(graph, value, f"v{graph.version}"),
            lambda node=node: edits.remove_nodes(graph, [node], True),
            lambda node=node, value=value: edits.set_input(graph, node, 0, value.name),
            lambda value=value: edits.add_node(
                graph, helper.make_node("Neg", [value.name], [f"o{graph.version}"]), graph.scopes[value.scope]
            ),
            lambda: graph.apply(changes.SetField(("model", 0), "producer_name", f"p{graph.version}")),
            lambda: graph.apply(
                changes.SetInitializer(graph.main.id, "w", numpy_helper.from_array(np.ones(graph.version + 1), "w"))
            ),
            model.undo,
            model.redo,
        ]
        version = graph.version
        with contextlib.suppress(EditError, ValueError, IndexError):
            rng.choice(choices)()
        if graph.version > version:
            done += 1
            yield model.to_bytes()
