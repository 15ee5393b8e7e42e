"""An old checkout beside this one: `python -m bench checkouts OLD [group …]`, in alternation.

    git worktree add --detach ../old 5e2e75f
    python -m bench checkouts ../old --repeats 3

Both run with this interpreter. Each repeat has new processes for each group, since where memory lies differs from one
to the next by some percent.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import models
from bench.checkout_cases import GROUPS
from bench.measure import Figure, scratch_state, table, with_bytecode

HERE = Path(__file__).resolve().parents[1]
BUDGET = 0.6
"""Processor seconds of each side of a case, at least TURNS turns."""
TURNS = 4
MOST_TURNS = 25
IMPORTS = ("import onnxlab", "import onnxlab; onnxlab.load")
MEAN, WORST = 1.03, 1.10
Ratios = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; with --check the exit code is 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(prog="python -m bench checkouts", description=(__doc__ or "").splitlines()[0])
    known = ("imports", *GROUPS)
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(known)} (all)")
    parser.add_argument("--repeats", type=int, default=3, help="times that all is measured (3)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is not kept")
    options = parser.parse_args(arguments)
    if unknown := set(options.groups) - set(known):
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with scratch_state():
        figures = list(rows(options.old.resolve(), options.groups or known, options.repeats))
    print(table(figures))
    return int(options.check and any(figure.kept is False for figure in figures))


def rows(old: Path, groups: Sequence[str], repeats: int) -> Iterator[Figure]:
    """Two figures for each group and repeat: the mean of its ratios, new to old, and the worst."""
    for repeat in range(1, repeats + 1):
        for group in groups:
            ratios = imports(old) if group == "imports" else compared(old, group)
            worst = max(ratios, key=lambda name: ratios[name])
            mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
            yield Figure(f"{group}, repeat {repeat}: geometric mean", mean, at_most=MEAN, note=f"{len(ratios)} cases")
            yield Figure(f"{group}, repeat {repeat}: worst", ratios[worst], at_most=WORST, note=worst)


def imports(old: Path) -> Ratios:
    """Fresh interpreters by turns; processor time, the interpreter's start included."""
    best = {(statement, checkout): math.inf for statement in IMPORTS for checkout in (old, HERE)}
    for _ in range(7):
        for statement, checkout in best:
            before = _children()
            subprocess.run([sys.executable, "-P", "-c", statement], check=True, env=_environment(checkout))
            best[statement, checkout] = min(best[statement, checkout], _children() - before)
    return {statement: _told(statement, best[statement, old], best[statement, HERE]) for statement in IMPORTS}


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _environment(checkout: Path) -> dict[str, str]:
    """With bytecode, and a C library that keeps freed memory, on both sides.

    Whether the heap has a hole of the right size, which is chance, decides on up to 8 ms of page faults.
    """
    return with_bytecode() | {
        "PYTHONPATH": str(checkout),
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    }


class Side:
    """A process that times the cases of a group with one checkout."""

    def __init__(self, checkout: Path) -> None:
        files = {name: str(path) for name, path in _files().items()}
        command = [sys.executable, "-P", str(HERE / "bench" / "checkout_cases.py"), json.dumps(files)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=_environment(checkout))

    def ask(self, request: object) -> Any:
        """The answer to a request: see `checkout_cases.serve`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(request, file=self._process.stdin, flush=True)
        if not (answer := self._process.stdout.readline()):
            raise RuntimeError(f"the process for {self._process.args!r} ended")
        return json.loads(answer)

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()


def compared(old: Path, group: str) -> Ratios:
    """{case: our time ÷ the old one's}, the least of turns of each side."""
    sides = Side(old), Side(HERE)
    try:
        ratios = {}
        cases = [side.ask(group) for side in sides]
        while all(cases):
            (name, _), (again, _) = cases
            if name != again:
                raise RuntimeError(f"the checkouts have other cases: {name!r} and {again!r}")
            calls = min(number for _, number in cases)
            best, spent, turns = [math.inf, math.inf], 0.0, 0
            while turns < TURNS or (spent < 2 * BUDGET and turns < MOST_TURNS):
                for index, side in enumerate(sides):
                    took = side.ask(calls)
                    best[index], spent = min(best[index], took), spent + took * calls
                turns += 1
            ratios[name] = _told(f"{group}: {name}", *best)
            cases = [side.ask("next") for side in sides]
        return ratios
    finally:
        for side in sides:
            side.close()


def _told(name: str, old: float, new: float) -> float:
    print(f"{name} | {old * 1e6:.1f} µs | {new * 1e6:.1f} µs | {new / old:.3f}", file=sys.stderr, flush=True)
    return new / old


def _files() -> dict[str, Path]:
    names = ("swin_s", "bert_base", "resnet50", "gpt2_kv", "silero_vad_if", "minilm_int8", "rapidocr_rec",
             "whisper_encoder", "deep_chain_12k")  # fmt: skip
    drawn = {"nodes_100000": models.many_nodes(), "external": models.large_external()}
    return {name: models.CORPUS[name] for name in names} | drawn | {"digits": HERE / "onnxlab" / "data" / "digits.onnx"}


if __name__ == "__main__":
    sys.exit(main())
