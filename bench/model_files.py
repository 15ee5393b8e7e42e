"""Files: nothing lost by a kill, the journal's cost, external data, `check` against onnx.checker."""

import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
from onnx import numpy_helper

import onnxlab
from bench import models
from bench.measure import Figure, Line, compare, timed
from onnxlab.analysis import check as checks
from onnxlab.errors import LoadError
from tests.analysis.mutations import bases, mutate
from tests.support.corpus import FOLDER

KILLS, KILLED_EDITS, BROKEN = 200, 60, 10_000


def rows() -> Iterator[Line]:
    """Everything that is measured of files; takes about five minutes."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        yield from kills(Path(folder))
        yield from journal()
        yield from external_data(Path(folder))
        yield from checking()


# -- kills ----------------------------------------------------------------------------------------------------------


def kills(folder: Path) -> Iterator[Figure]:
    """Kill writers at random moments and count lost files."""
    path = folder / "large.onnx"
    for tool, limit in (("onnxlab", 0), ("onnx", None)):
        onnx.save(heavy(160 << 20), path)
        yield Figure(
            f"files lost by kill −9 while saving 160 MB over itself, {tool}",
            killing("save", tool, str(path), str(KILLS)),
            f"of {KILLS}",
            at_most=limit,
            note="onnxlab" if tool == "onnxlab" else "onnx.save",
        )
    path.unlink()
    small = folder / "small.onnx"
    small.write_bytes(models.CORPUS["mobilenet_fp16"].read_bytes())
    yield Figure(
        "acknowledged edits lost by kill −9 right after them",
        killing("edit", str(small), str(KILLED_EDITS)),
        f"of {sum(number % 7 + 1 for number in range(KILLED_EDITS))}",
        at_most=0,
    )


def killing(*arguments: str) -> int:
    """Losses as bench.killing counts them, in a process without the threads of others."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.killing", *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def heavy(size: int) -> onnx.ModelProto:
    """A small model with `size` bytes of weights."""
    model = onnx.load(models.CORPUS["digits"]) if "digits" in models.CORPUS else onnx.ModelProto(ir_version=10)
    weights = np.random.default_rng(0).random(size // 4 // 8, np.float32)
    model.graph.name = model.graph.name or "heavy"
    model.graph.initializer.extend(numpy_helper.from_array(weights, f"heavy_{number}") for number in range(8))
    return model


# -- journal --------------------------------------------------------------------------------------------------------


def journal() -> Iterator[Figure]:
    """Measure an edit among 100,000 nodes with its record, and the share of the journal in it."""
    model = onnxlab.load(models.many_nodes())
    node = model.nodes["step_12500"]
    edit = alternating(partial(setattr, node, "doc_string"), "a", "b")
    first = timed(edit)
    yield Figure("first edit of a file among 100,000 nodes, which reads and hashes the file", first, "s")
    with_journal, without = float("inf"), float("inf")
    previous = model.graph.journal
    for _ in range(10):  # in turn, so that a busy machine slows both
        model.graph.journal = previous
        with_journal = min(with_journal, timed(edit, 200))
        model.graph.journal = None
        without = min(without, timed(edit, 200))
    yield Figure("edit among 100,000 nodes, journal included", with_journal, "s", at_most=200e-6)
    yield Figure("of that, the journal", with_journal - without, "s")


def alternating(action: Callable[[Any], Any], *values: Any) -> Callable[[], None]:
    """An action that uses each of `values` in turn."""
    turn = [0]

    def act() -> None:
        turn[0] += 1
        action(values[turn[0] % len(values)])

    return act


# -- external data --------------------------------------------------------------------------------------------------


def external_data(folder: Path) -> Iterator[Line]:
    """Measure opening a model with 1 GiB of external data."""
    path = models.large_external()
    onnxlab.load(path)
    yield Figure("open 1 GiB of external data", min(timed(partial(onnxlab.load, path)) for _ in range(9)), "s", 0.05)
    yield Figure("memory that opening it takes", memory_of_opening(path), "MB", at_most=20)
    yield compare(
        "open it and touch one element of each of its tensors",
        partial(touch_ours, path),
        partial(touch_theirs, path),
        against="onnx-ir",
        promise=1.5,
    )
    (folder / "external").mkdir()
    copy = folder / "external" / "model.onnx"
    copy.write_bytes(path.read_bytes())
    weights = folder / "external" / "model.onnx.data"
    weights.touch()
    os.truncate(weights, path.with_name("model.onnx.data").stat().st_size)
    copied = onnxlab.load(copy)
    copied.nodes[0].name = "renamed"
    written = bytes_written(copied.save)
    yield Figure("bytes written by saving it after a small edit", written / 1000, "kB", at_most=64)


def memory_of_opening(path: Path) -> float:
    """Megabytes by which a fresh process grows when it opens a model, after it has opened another."""
    script = (
        "import json, os, sys, psutil, onnxlab; me = psutil.Process(); onnxlab.load(sys.argv[2]); "
        "before = me.memory_info().rss; model = onnxlab.load(sys.argv[1]); "
        "print(json.dumps(me.memory_info().rss - before))"
    )
    small = models.CORPUS["script_control"]
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(small)], capture_output=True, text=True, check=True
    )
    return float(json.loads(done.stdout)) / 1e6


def touch_ours(path: Path) -> None:
    """Load a file with onnxlab and read one element of every weight."""
    model = onnxlab.load(path)
    for tensor in model.proto.graph.initializer:
        model.tensor(tensor.name)[0, 0]


def touch_theirs(path: Path) -> None:
    """Load a file with onnx_ir and read one element of every weight."""
    for value in onnx_ir.load(path).graph.initializers.values():
        tensor = value.const_value
        assert tensor is not None
        tensor.numpy()[0, 0]


def bytes_written(action: Callable[[], Any]) -> int:
    """Bytes that this process gave to `write` meanwhile."""

    def count() -> int:
        with open("/proc/self/io", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("wchar")).split()[1])

    before = count()
    action()
    return count() - before


# -- check ----------------------------------------------------------------------------------------------------------


def checking() -> Iterator[Line]:
    """Compare verdicts and times of check with onnx.checker's."""
    cases = node_cases()
    wrong = sum(differ(case) for case in cases)
    yield Figure("verdicts of check other than onnx.checker's on ONNX's node cases", wrong, f"of {len(cases)}", 0)
    rng = random.Random(1)
    broken_models = [broken(rng) for _ in range(BROKEN)]
    wrong = sum(differ(model) for model in broken_models if model is not None)
    yield Figure("verdicts of check other than onnx.checker's on broken models", wrong, f"of {BROKEN}", at_most=0)
    for name in ("bert_base", "swin_s"):
        proto = onnx.load(models.CORPUS[name])
        yield compare(
            f"check {name}, all problems",
            partial(onnxlab.check, proto, types=False),
            partial(onnx.checker.check_model, proto),
            against="onnx.checker, first problem",
            repeats=3,
        )
    model = onnxlab.load(models.many_nodes())
    model.check(types=False)
    node = model.nodes["turn_12500"]
    turn = alternating(partial(node.attributes.__setitem__, "perm"), [0, 2, 1], [1, 0, 2])

    def edit_and_check() -> None:
        turn()
        model.check(types=False)

    best = min(timed(edit_and_check, 20) for _ in range(5))
    yield Figure("edit among 100,000 nodes and check what it touched", best, "s")


def node_cases() -> list[onnx.ModelProto]:
    """The models of ONNX's node tests."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case.model for case in load_model_tests(kind="node") if case.model is not None]


def broken(rng: random.Random) -> onnx.ModelProto | None:
    """One of the valid models with a field or two changed; None where that leaves no model."""
    model = rng.choice(bases())
    for _ in range(rng.choice((1, 1, 1, 2))):
        mutate(model, rng)
    return model if model.HasField("graph") else None


def differ(model: onnx.ModelProto) -> bool:
    """Whether `check` and onnx.checker disagree on whether a model is valid."""
    try:
        refused = any(checks.errors(onnxlab.check(model.SerializeToString(), types=False)))
    except LoadError:
        return False  # no model any more
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return not refused
    return refused
