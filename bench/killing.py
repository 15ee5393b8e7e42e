"""Processes that are killed while they save or edit a model: what is left of the file, and of the edits.

`python -m bench.killing save onnxlab|onnx PATH COUNT [SEED]` and `… edit PATH COUNT` print the number of losses;
another seed draws other moments, so that many kills can be had in pieces.
"""

import gc
import hashlib
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx

import onnxlab
from bench.measure import scratch_state
from onnxlab.graph.edit.changes import SetField


def run_and_kill(action: Callable[[int], object], moment: Callable[[int], object]) -> None:
    """Let a fork run `action(pipe)` and kill it when `moment(pipe)` returns."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            action(writer)
        finally:
            os._exit(1)
    os.close(writer)
    moment(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)


def ignoring_pipe(action: Callable[[], object], _: int) -> object:
    """Call `action` and leave the pipe alone."""
    return action()


def saves_lost(tool: str, path: Path, count: int, seed: int = 0) -> int:
    """Count files that are neither old nor new after a kill at a random moment of saving them over themselves."""
    model = onnxlab.load(path)
    proto = onnx.load(path)
    before = path.read_bytes()
    proto.producer_name = "saved"
    model.graph.apply(SetField(("model", 0), "producer_name", "saved"))
    saving: dict[str, Callable[[], object]] = {
        "onnxlab": lambda: model.save(overwrite=True),
        "onnx": lambda: onnx.save(proto, path),
    }
    save = saving[tool]
    start = time.perf_counter()
    save()
    took = time.perf_counter() - start
    whole = {hashlib.sha256(data).digest() for data in (before, path.read_bytes())}
    rng, lost = random.Random(seed), 0
    for _ in range(count):
        delay = rng.uniform(0, 1.2 * took)
        run_and_kill(partial(ignoring_pipe, save), partial(ignoring_pipe, partial(time.sleep, delay)))
        if hashlib.sha256(path.read_bytes()).digest() not in whole:
            lost += 1
            path.write_bytes(before)
        for left in path.parent.glob(f".{path.name}*"):  # temporary files, which a later save would remove in an hour
            left.unlink()
    return lost


def edit_and_say_so(path: Path, edits: int, pipe: int) -> None:
    """Rename nodes one by one and write a byte into the pipe after each."""
    model = onnxlab.load(path)
    for index in range(edits):
        model.nodes[index].name = f"edit {index}"
        os.write(pipe, b".")
    time.sleep(60)


def hear(edits: int, pipe: int) -> None:
    """Read as many bytes from the pipe as there are edits."""
    for _ in range(edits):
        os.read(pipe, 1)


def edits_lost(path: Path, count: int) -> int:
    """Count acknowledged edits that are not recovered after a kill right after the acknowledgement."""
    lost = 0
    for number in range(count):
        edits = number % 7 + 1

        run_and_kill(partial(edit_and_say_so, path, edits), partial(hear, edits))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = onnxlab.load(path)
        if model.files.recoverable:
            model.files.recover()
        lost += sum(model.nodes[index].name != f"edit {index}" for index in range(edits))
        del model
        gc.collect()  # its own journal goes with it
    return lost


if __name__ == "__main__":
    with scratch_state():
        if sys.argv[1] == "save":
            print(saves_lost(sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:6])))
        else:
            print(edits_lost(Path(sys.argv[2]), int(sys.argv[3])))
