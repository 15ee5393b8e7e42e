"""Formats of files: ORT format against onnxruntime's own files, its speed and size, and thousands of damaged files.

    python -m bench formats

Sixty models of onnxruntime's own tests with what onnxruntime 1.31.1 makes of them, the corpus, and the training
checkpoints of tests/formats. Damaged files are made of all of these from a fixed seed.
"""

import gc
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx

import onnxlab
from bench.measure import Figure, Line, Row
from onnxlab.errors import LoadError, SaveError
from onnxlab.formats.ort import checkpoint, decoding
from onnxlab.formats.ort.encoding import encode
from onnxlab.formats.ort.preparing import prepared, without_kernels
from onnxlab.formats.ort.saving import written
from tests.support import corpus
from tests.support.mutations import damaged
from tests.support.ort_files import feeds, is_random, outputs, same, session
from tests.support.samples import ort_pairs, samples

DAMAGED = 10_000
TRACED = 400
"""Damaged files whose memory is traced, which makes reading them many times slower."""

SLOW = 1.0
SPARE = 16 << 20


def rows() -> Iterator[Line]:
    """Every measure of the formats that onnxlab reads and writes itself."""
    warnings.simplefilter("ignore")
    pairs = ort_pairs()
    yield from read_and_written(pairs)
    yield from from_sources(pairs)
    yield from speed(pairs)
    yield from of_the_corpus()
    yield from hostile("ORT format", [stored for _, stored in pairs.values()], decoding.decode)
    files = [data for name, data in samples("training/artifacts").items() if "checkpoint" in name]
    yield from hostile("checkpoints", files, checkpoint.decode)


def read_and_written(pairs: dict[str, tuple[bytes, bytes]]) -> Iterator[Line]:
    """Files of onnxruntime, read, and written anew."""
    loaded = equal = compared = 0
    for _, stored in pairs.values():
        model, extra = decoding.decode(stored)
        data, _ = encode(model, extra, 6)
        ours, theirs = session(data), session(stored)
        loaded += 1
        given = feeds(theirs)
        if given is not None and not is_random(model):
            compared += 1
            equal += same(outputs(ours, given), outputs(theirs, given))
    yield Figure("ort: files of onnxruntime read, written anew and loaded", loaded, at_least=len(pairs))
    yield Figure("ort: of these, outputs equal to the bit", equal, at_least=compared, note=f"of {compared} that run")


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
        given = feeds(theirs)
        if given is not None and not is_random(model):
            wrong += not same(outputs(ours, given), outputs(theirs, given))
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
        ours = best(lambda: [written(onnx.load_from_string(source), None, 6) for source in sources])
        theirs = best(lambda: [session(source, target) for source in sources])
        yield Row("ort: write the small models", ours, theirs, "onnxruntime, session and save", 1.5)
        for name in names:
            path = str(corpus.path(name))
            model = onnx.load(path)
            ours = best(lambda: written(model, None, 6), 2)  # noqa: B023  called at once
            theirs = best(lambda: session(path, target), 2)  # noqa: B023
            yield Row(f"ort: write {name}", ours, theirs, "onnxruntime, session and save", 1.5)


def best(action: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the quickest of a few runs."""
    found = []
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


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
            given = corpus.inputs(name, path)
            if same(outputs(ours, given), outputs(theirs, given)):
                equal += 1
            else:
                wrong.append(name)
            del ours, theirs
    note = "; ".join([*refused, *wrong])
    yield Figure("ort: models of the corpus with equal outputs", equal, note=note)
    yield Figure("ort: models of the corpus that fail or differ", len(wrong), at_most=0, note="; ".join(wrong))


def hostile(what: str, files: Sequence[bytes], decode: Callable[[bytes], Any]) -> Iterator[Line]:
    """Damaged files: each is a model or one clear error."""
    refused = crashed = slow = 0
    for data in damaged(files, DAMAGED):
        start = time.perf_counter()
        try:
            decode(data)
        except LoadError:
            refused += 1
        except Exception:  # whatever it is, it is a fault
            crashed += 1
        slow += time.perf_counter() - start > SLOW
    yield Figure(f"{what}: damaged files that fail otherwise than by LoadError", crashed, at_most=0,
                 note=f"{refused} of {DAMAGED} refused")  # fmt: skip
    yield Figure(f"{what}: damaged files that take more than a second", slow, at_most=0)
    yield Figure(f"{what}: memory above 4 × the file", greedy(files, decode), "bytes", at_most=SPARE)


def greedy(files: Sequence[bytes], decode: Callable[[bytes], Any]) -> int:
    """The most bytes above four times the file that reading a damaged one takes."""
    most = 0
    tracemalloc.start()
    try:
        for data in damaged(files, TRACED, seed=1):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                found = decode(data)
            except LoadError:
                found = None
            most = max(most, tracemalloc.get_traced_memory()[1] - before - 4 * len(data))
            del found
    finally:
        tracemalloc.stop()
    return most
