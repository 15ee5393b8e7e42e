"""Peaks of memory by facts alone, against the anonymous memory of onnxruntime above its loaded session.

The schedule is that of onnxruntime, which its profile tells. Models whose
values take less than a megabyte are left out: pages and the allocator's own records decide there. So are the light
ones, whose weights are made by nodes in the run, which no real model does; of those four, three are within 10 %. Of
lac_bigru, whose values take 0.4 MB, onnxruntime takes 1.4 MB.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import onnxlab
from bench.measure import Figure, Line
from onnxlab.analysis.memory.timeline import MemoryTimeline, timeline
from onnxlab.limits import format_bytes
from tests.support import corpus

BATCHES = {
    "rapidocr_cls": 16, "rapidocr_det": 1, "rapidocr_rec": 4, "resnet50": 4, "swin_s": 4, "bert_base": 64,
    "whisper_encoder": 1, "minilm_int8": 64, "gpt2_kv": 64, "llama12_dyn_ext": 64, "magika": 16,
    "tashkeel_bilstm_int8": 32, "mobilenet_fp16": 8, "tashkeel_ensemble_int8": 32,
}  # fmt: skip
"""How often the inputs of a model stand one behind the other along a dynamic axis 0."""

EXPLAINED = {
    "mobilenet_fp16": "its float16 kernels are those of float32, between casts that it inserts",
    "tashkeel_ensemble_int8": "its LSTM kernels probably take memory of their own, which was not measured",
}
"""Why onnxruntime takes more or less."""

_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_ARENA_MAX": "1"}
_NEAR = 0.1


def rows() -> Iterator[Line]:
    """A line for each model, and how many are near."""
    near, explained = 0, 0
    for name, times in BATCHES.items():
        ours, theirs = peaks(name, times)
        ratio = ours / theirs
        is_near = abs(ratio - 1) <= _NEAR
        near += is_near
        explained += not is_near and name in EXPLAINED
        note = f"{format_bytes(ours)} against {format_bytes(theirs)}"
        yield Figure(
            f"peak of {name}, ours ÷ onnxruntime", ratio, note=f"{note}; {EXPLAINED.get(name, '')}".rstrip("; ")
        )
    least = -(-8 * len(BATCHES) // 10)
    yield Figure("peaks within 10 % of onnxruntime", near, at_least=least, note=f"of {len(BATCHES)} models")
    yield Figure("other peaks that are explained", explained, at_least=len(BATCHES) - near, note="by kernels or values")


def peaks(name: str, times: int) -> tuple[int, int]:
    """(ours, onnxruntime's) bytes, inputs left out of both."""
    model = onnxlab.load(corpus.path(name))
    feeds = {key: _repeated(model, key, array, times) for key, array in corpus.inputs(name, corpus.path(name)).items()}
    measured = _onnxruntime(name, feeds)
    memory = _timeline(model, feeds, measured["order"])
    return memory.peak - memory.inputs, measured["peak"]


def _repeated(model: onnxlab.Model, key: str, array: Any, times: int) -> Any:
    shape = model.fact(key).shape
    return array if not shape or isinstance(shape[0], int) else np.concatenate([array] * times)


def _onnxruntime(name: str, feeds: dict[str, Any]) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file, **feeds)
        file.flush()
        command = [sys.executable, "-m", "bench.anonymous_memory", str(corpus.path(name)), file.name]
        done = subprocess.run(command, env=os.environ | _ENVIRONMENT, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _timeline(model: onnxlab.Model, feeds: dict[str, Any], names: list[str]) -> MemoryTimeline:
    """The timeline in onnxruntime's order; nodes that it does not run on their own stand before what reads them."""
    graph = model.graph
    nodes = graph.nodes
    by_name = {
        nodes[ident].name or f"{nodes[ident].op_type}_{at}": ident for at, ident in enumerate(graph.main.node_ids)
    }
    left = {ident for ident in graph.main.node_ids if ident not in {by_name.get(name) for name in names}}
    order: dict[int, None] = {}

    def emit(ident: int) -> None:
        for vid in nodes[ident].inputs:
            producer = graph.values[vid].producer if vid else None
            if producer and producer[0] in left and producer[0] not in order:
                emit(producer[0])
        order[ident] = None

    for name in dict.fromkeys(names):
        if name in by_name:
            emit(by_name[name])
    for ident in graph.main.node_ids:
        if ident not in order:
            emit(ident)
    return timeline(graph, model.inference, {}, feeds, share="onnxruntime", order=list(order))
