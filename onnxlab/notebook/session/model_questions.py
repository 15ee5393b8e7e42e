"""Questions of a page that need nothing but the model."""

from collections.abc import Callable, Mapping

from onnxlab.notebook.edits import cut_preview
from onnxlab.notebook.panels import attribute_columns, ensembles, memory_curve, pairing, rewrites, watch_list
from onnxlab.notebook.protocol.messages import JSON

ABOUT_MODEL: Mapping[str, Callable[..., JSON]] = {
    "rewrites": rewrites.preview,
    "gains": rewrites.gains,
    "near_misses": rewrites.near_misses,
    "pattern": rewrites.pattern,
    "pattern_places": rewrites.places,
    "cut_preview": cut_preview.preview,
    "memory": memory_curve.curve,
    "trees": ensembles.trees,
    **dict.fromkeys(("pair", "paired_tensor", "paired_nodes", "compare_values", "stop_comparing"), pairing.alone),
    **dict.fromkeys(("counterparts", "compare"), pairing.elsewhere),
    "watches": watch_list.watches,
    "watch": watch_list.watch,
    "unwatch": watch_list.unwatch,
    "attribute_names": lambda model: attribute_columns.names(model.graph),
    "attribute_column": lambda model, name: attribute_columns.column(model.graph, name),
}
"""Functions that answer questions, by method."""
