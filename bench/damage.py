"""Damaged files of the binary formats: each is one clear LoadError or a model, in time and in bounded memory.

    python -m bench.damage FORMAT FIRST COUNT FOLDER

is the child that reads them, from the trial FIRST on; it prints its findings as JSON at the end, and leaves the number
of the trial that it is at in FOLDER/at, so that the parent can tell which file ended it.
"""

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import onnxlab
from bench.measure import Figure, Line
from bench.peak import peak
from onnxlab.errors import LoadError
from onnxlab.graph.protos import tensors
from tests.support.mutations import damaged
from tests.support.samples import FORMATS, ort_pairs, samples

COUNT = 10_000
SPARE = 16 << 20
SLOW, HANGS = 1.0, 20
KINDS = {"ort": ".ort", "checkpoint": ".ckpt", "pt2": ".pt2", "safetensors": ".safetensors", "npz": ".npz"}


def rows(count: int = COUNT) -> Iterator[Line]:
    """A few lines for each format."""
    for kind in KINDS:
        totals = campaign(kind, count)
        yield Figure(f"{kind}: damaged files that end the process", totals["ended"], at_most=0)
        yield Figure(f"{kind}: damaged files that fail otherwise than by LoadError", totals["wrong"], at_most=0,
                     note=f"{totals['refused']} of {count} refused; {totals['first']}".rstrip("; "))  # fmt: skip
        yield Figure(
            f"{kind}: damaged files that take more than {SLOW:g} s of the processor", totals["slow"], at_most=0
        )
        yield Figure(f"{kind}: memory above 4 × the file", totals["memory"], "bytes", at_most=SPARE)


def campaign(kind: str, count: int) -> dict[str, Any]:
    """The findings of all trials of a format; a child that ends goes on in another, behind the file that ended it."""
    total: dict[str, Any] = {"refused": 0, "wrong": 0, "slow": 0, "memory": 0, "ended": 0, "first": ""}
    first = 0
    with tempfile.TemporaryDirectory() as folder:
        while first < count:
            command = [sys.executable, "-m", "bench.damage", kind, str(first), str(count - first), folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                counts = json.loads(done.stdout.splitlines()[-1])
                for name in ("refused", "wrong", "slow"):
                    total[name] += counts[name]
                total["memory"] = max(total["memory"], counts["memory"])
                total["first"] = total["first"] or counts["first"]
                break
            if not (at := Path(folder) / "at").exists():
                raise RuntimeError(f"the child does not start: {done.stderr}")
            total["ended"] += 1
            total["first"] = (
                total["first"] or f"trial {at.read_text()} ended by {done.returncode}: {done.stderr[-200:]!r}"
            )
            first = int(at.read_text()) + 1
    return total


def originals(kind: str) -> Sequence[bytes]:
    """The files that are damaged."""
    if kind == "ort":
        return [stored for _, stored in ort_pairs().values()]
    if kind == "checkpoint":
        return [data for name, data in samples("training/artifacts").items() if "checkpoint" in name]
    if kind == "pt2":
        more = [data for name, data in samples("pt2/torch").items() if name.endswith(".pt2")]
        return [(FORMATS / "pt2" / "module.pt2").read_bytes(), *more]
    return [_weights(kind, places) for places in (1, 3, 12)]


def _weights(kind: str, count: int) -> bytes:
    """A file of weights of several types and shapes."""
    chance, data = np.random.default_rng(count), io.BytesIO()
    dtypes: tuple[type[Any], ...] = (np.float32, np.float16, np.int64, np.uint8, np.float64)
    arrays = {
        f"layer.{place}.weight": chance.standard_normal((place, 3, 4)).astype(dtypes[place % len(dtypes)])
        for place in range(count)
    }
    if kind == "npz":
        (np.savez if count % 2 else np.savez_compressed)(data, allow_pickle=False, **arrays)
        return data.getvalue()
    stored = [tensors.from_array(array, name) for name, array in arrays.items()]
    model = onnxlab.load(onnxlab.load().proto)
    with tempfile.TemporaryDirectory() as folder:
        for name, tensor in [(weight.name, weight) for weight in stored]:
            model.add_initializer(name, tensors.to_array(tensor))
        path = Path(folder) / "m.safetensors"
        model.files.save_weights(path)
        return path.read_bytes()


def child(kind: str, first: int, count: int, folder: Path) -> dict[str, Any]:
    """Read damaged files one after the other."""
    warnings.simplefilter("ignore")
    path, at = folder / f"m{KINDS[kind]}", folder / "at"
    files = originals(kind)
    for data in files:  # so that all is imported
        path.write_bytes(data)
        with contextlib.suppress(LoadError):  # a checkpoint without values
            touch(path)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    counts: dict[str, Any] = {"refused": 0, "wrong": 0, "slow": 0, "memory": 0, "first": ""}
    for number, data in enumerate(damaged(files, first + count)):
        if number < first:
            continue
        at.write_text(str(number))
        path.write_bytes(data)
        signal.alarm(HANGS)
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of those before
        before, start = peak(), time.process_time()
        try:
            touch(path)
        except LoadError:
            counts["refused"] += 1
        except Exception as error:  # whatever it is, it is a fault
            counts["wrong"] += 1
            counts["first"] = counts["first"] or f"trial {number}: {type(error).__name__}: {error}"[:200]
        counts["slow"] += time.process_time() - start > SLOW
        counts["memory"] = max(counts["memory"], peak() - before - 4 * len(data))
        signal.alarm(0)
    return counts


def touch(path: Path) -> None:
    """Open a file, and read all its tensors."""
    model = onnxlab.load(path)
    for tensor in model.proto.graph.initializer:
        tensors.to_array(tensor, path.parent)


if __name__ == "__main__":
    os.environ["ONNXLAB_JOURNAL"] = "off"
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))
