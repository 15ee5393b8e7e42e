"""Formats of files: ORT format against onnxruntime's own files, its speed and size, and thousands of damaged files.

    python -m bench formats

Sixty models of onnxruntime's own tests with what onnxruntime 1.31.1 makes of them, the corpus, and the training
checkpoints of tests/formats. Damaged files are made of all of these from a fixed seed.
"""

import gc
import io
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import onnxlab
from bench import damage, dialects
from bench.measure import Figure, Line, Row
from onnxlab.errors import SaveError
from onnxlab.formats.ort import decoding
from onnxlab.formats.ort.encoding import encode
from onnxlab.formats.ort.preparing import prepared, without_kernels
from onnxlab.formats.ort.saving import written
from onnxlab.formats.pt2.converting import VARIABLE
from tests.formats.ort import test_ort
from tests.support import corpus
from tests.support.ort_files import feeds, is_random, outputs, same, session
from tests.support.samples import FORMATS, ort_pairs, samples


def rows() -> Iterator[Line]:
    """Every measure of the formats that onnxlab reads and writes itself."""
    warnings.simplefilter("ignore")
    pairs = ort_pairs()
    yield from read_and_written(pairs)
    yield from as_onnxruntime(pairs)
    yield from from_sources(pairs)
    yield from speed(pairs)
    yield from of_the_corpus()
    yield from of_torch()
    yield from weights()
    yield from dialects.rows()
    yield from damage.rows()


def read_and_written(pairs: dict[str, tuple[bytes, bytes]]) -> Iterator[Line]:
    """Files of onnxruntime, read, and written anew."""
    loaded = equal = compared = 0
    for _, stored in pairs.values():
        model, extra = decoding.decode(stored)
        data, _ = encode(model, extra, 6)
        ours, theirs = session(data), session(stored)
        loaded += 1
        arrays = feeds(theirs)
        if arrays is not None and not is_random(model):
            compared += 1
            equal += same(outputs(ours, arrays), outputs(theirs, arrays))
    yield Figure("ort: files of onnxruntime read, written anew and loaded", loaded, at_least=len(pairs))
    yield Figure("ort: of these, outputs equal to the bit", equal, at_least=compared, note=f"of {compared} that run")


def as_onnxruntime(pairs: dict[str, tuple[bytes, bytes]]) -> Iterator[Line]:
    """The content of files: of those that onnxruntime wrote against their sources, and of ours against theirs."""
    same_nodes = sum(
        test_ort.operators(onnxlab.load(stored).proto) == test_ort.operators(onnx.load_from_string(source))
        for source, stored in pairs.values()
    )
    edited = len(test_ort.RECAST)
    yield Figure("ort: files with the nodes of their sources", same_nodes, at_least=len(pairs) - edited,
                 note=f"of {len(pairs)}; in {edited} onnxruntime inserted or merged Casts")  # fmt: skip
    differences = {name: parts for name in pairs if (parts := test_ort.different(name))}
    note = "; ".join(f"{name}: {', '.join(parts)}" for name, parts in differences.items())
    yield Figure("ort: nodes, counts, edges and resolver as onnxruntime writes them", len(pairs) - len(differences),
                 at_least=59, note=note)  # fmt: skip


def from_sources(pairs: dict[str, tuple[bytes, bytes]]) -> Iterator[Line]:
    """Models in ONNX, written in ORT format without onnxruntime."""
    loaded = wrong = 0
    halves = size = theirs_size = 0
    for source, stored in pairs.values():
        model = onnx.load_from_string(source)
        ready = prepared(model)
        if without_kernels(ready):
            halves += 1
            continue
        data, _ = encode(ready, None, 6)
        ours, theirs = session(data), session(source)
        loaded, size, theirs_size = loaded + 1, size + len(data), theirs_size + len(stored)
        arrays = feeds(theirs)
        if arrays is not None and not is_random(model):
            wrong += not same(outputs(ours, arrays), outputs(theirs, arrays))
    yield Figure("ort: written without onnxruntime and loaded by it", loaded, at_least=52, note=f"of {len(pairs)}")
    yield Figure("ort: of these, wrong outputs", wrong, at_most=0)
    yield Figure("ort: left to onnxruntime, for float16 without kernels", halves)
    yield Figure("ort: size against onnxruntime's own files", size / theirs_size, at_most=1.05, note="ratio")


def speed(pairs: dict[str, tuple[bytes, bytes]]) -> Iterator[Line]:
    """Time to write, against a session of onnxruntime that saves."""
    sources = [source for source, _ in pairs.values() if not without_kernels(prepared(onnx.load_from_string(source)))]
    names = ("resnet50", "bert_base")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "m.ort"
        ours, theirs = fastest(
            lambda: [written(onnx.load_from_string(source), None, 6) for source in sources],
            lambda: [session(source, target) for source in sources],
        )
        yield Row("ort: write the small models", ours, theirs, "onnxruntime, session and save", 1.5)
        for name in names:
            path = str(corpus.path(name))
            model = onnx.load(path)
            ours, theirs = fastest(lambda: written(model, None, 6), lambda: session(path, target), 9)  # noqa: B023
            yield Row(f"ort: write {name}", ours, theirs, "onnxruntime, session and save", 1.5)


def fastest(ours: Callable[[], Any], theirs: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Seconds of the processor of the fastest of a few runs of two sides, by turns."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for action, spent in zip((ours, theirs), seconds, strict=True):
            gc.collect()
            start = time.process_time()
            action()
            spent.append(time.process_time() - start)
    return min(seconds[0]), min(seconds[1])


def of_torch() -> Iterator[Line]:
    """Files of torch: graphs against torch's own, and outputs where an interpreter has torch."""
    held = samples("pt2/torch")
    programs = json.loads(held["programs.json"])
    files = {name: held.get(f"{name}.pt2", b"") for name in programs}
    files["module"] = (FORMATS / "pt2" / "module.pt2").read_bytes()
    equal = 0
    for name, calls in programs.items():
        nodes = onnxlab.load(files[name]).proto.graph.node
        edges = [
            (sorted({value for value in node.input if value}), sorted(filter(None, node.output))) for node in nodes
        ]
        equal += edges == [(call["reads"], call["makes"]) for call in calls]
    yield Figure("torch: archives with the nodes and edges of their ExportedProgram", equal, at_least=len(programs))
    if not os.environ.get(VARIABLE):
        yield Figure("torch: files converted", 0, note=f"not measured: {VARIABLE} names no interpreter that has torch")
        return
    image = ["float32[N,3,8,8]"]
    inputs: dict[str, list[str]] = {"module": [], "traced": image, "scripted": image, "loop": ["float32[3]", "int64[]"]}
    worst = 0.0
    with np.load(io.BytesIO(held["outputs.npz"])) as arrays:
        for name, types in inputs.items():
            model = onnxlab.load(files.get(name) or held[f"{name}.pt"], trust=True, inputs=types)
            feeds = {value.name: arrays[f"{name}/in{place}"] for place, value in enumerate(model.inputs)}
            for place, array in enumerate(model.run(feeds).values()):
                worst = max(worst, float(np.abs(array - arrays[f"{name}/out{place}"]).max()))
    yield Figure("torch: largest difference of the four samples, converted", worst, at_most=1e-5)


def weights() -> Iterator[Line]:
    """Weights of the corpus' models, written, read and written again."""
    same_bytes = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("mnist_cnn", "resnet50", "bert_base"):
            if name not in corpus.Corpus():
                continue
            for suffix in (".safetensors", ".npz"):
                first, second = Path(folder) / f"1{suffix}", Path(folder) / f"2{suffix}"
                model = onnxlab.load(corpus.path(name))
                model.files.save_weights(first)
                model.files.load_weights(first)
                model.files.save_weights(second)
                count += 1
                same_bytes += first.read_bytes() == second.read_bytes()
    yield Figure("weights: files that come back equal to the byte", same_bytes, at_least=count)


def of_the_corpus() -> Iterator[Line]:
    """Every model of the corpus in ORT format: outputs equal, or a refusal by name."""
    equal, refused, wrong = 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in corpus.Corpus():
            path = corpus.path(name)
            target = Path(folder) / "m.ort"
            try:
                onnxlab.load(path).save(target)
                ours, theirs = session(target.read_bytes()), session(str(path))
            except SaveError as error:
                refused.append(f"{name}: {error}"[:200])
                continue
            except Exception as error:  # onnxruntime's own kinds of error, by the dozen
                wrong.append(f"{name}: {error}"[:200])
                continue
            arrays = corpus.inputs(name, path)
            if same(outputs(ours, arrays), outputs(theirs, arrays)):
                equal += 1
            else:
                wrong.append(name)
            del ours, theirs
    note = "; ".join([*refused, *wrong])
    yield Figure("ort: models of the corpus with equal outputs", equal, note=note)
    yield Figure("ort: models of the corpus that fail or differ", len(wrong), at_most=0, note="; ".join(wrong))
