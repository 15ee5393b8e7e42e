"""Hostile trials of new models, files, inputs, journals, messages, kills, full disks and signals.

    python -m bench hostile [--trials N] [--seed S] [--only GENERATOR …] [--seconds T] [--processes P]
    python -m bench hostile --replay GENERATOR SEED         # one trial again, with what it did

Each trial runs in a fork of a process that has everything imported, with limits of time and memory; the generators are
the modules of `tests/hostile`. Every failure prints a reproduction of a few lines and its seed, once per signature, and
leaves its files in `build/hostile`. The seed is drawn from the clock unless it is given.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.measure import Figure, Line, scratch_state, table
from tests.hostile import campaign, server
from tests.hostile.trial import PROMISES

TRIALS = 2000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign, or one trial again; the exit code is 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m bench hostile", description="Hostile trials.")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"how many ({TRIALS})")
    parser.add_argument("--seed", type=int, help="of the campaign; default: from the clock")
    parser.add_argument("--only", nargs="+", choices=server.GENERATORS, help="these generators")
    parser.add_argument("--seconds", type=float, help="end after this time")
    parser.add_argument("--processes", type=int, default=1, help="trials at once (1)")
    parser.add_argument("--replay", nargs=2, metavar=("GENERATOR", "SEED"), help="do one trial again")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a promise is not kept")
    options = parser.parse_args(arguments)
    with scratch_state():
        if options.replay:
            return replay(options.replay[0], int(options.replay[1]))
        seed = int(time.time()) % 10**6 if options.seed is None else options.seed
        names = options.only or server.GENERATORS
        lines = list(rows(options.trials, seed, names, options.processes, options.seconds))
    print(table(lines))
    return int(options.check and any(line.kept is False for line in lines))


def rows(
    trials: int = TRIALS,
    seed: int = 0,
    names: Sequence[str] = server.GENERATORS,
    processes: int = 1,
    seconds: float | None = None,
) -> Iterator[Line]:
    """A line for each promise, then what the trials were."""
    server.preload(names)  # type: ignore[no-untyped-call]
    started = time.monotonic()
    run: Any = campaign.campaign
    result = run(trials, seed, names, processes, seconds, _told, _progress())
    took = time.monotonic() - started
    for promise, words in PROMISES.items():
        broken = [item for item in result.findings.values() if item.promise == promise]
        cases = sum(item.count for item in broken)
        note = f"{len(broken)} different" if broken else ""
        yield Figure(words, cases, at_most=0, note=note)
    shares = ", ".join(f"{count} {name}" for name, count in sorted(result.done.items()))
    yield Figure("trials", sum(result.done.values()), note=f"seed {seed}: {shares}")
    yield Figure("the most memory of a trial, over the baseline", result.peak / 1e6, "MB", note="its files included")
    yield Figure("the longest trial", result.slowest, "s")
    yield Figure("all trials", took, "s", note=f"{result.deaths} ended by another library's fault")


def _told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _progress() -> Callable[[Any], None]:
    """Tells once a minute how far it is."""
    state = {"next": time.monotonic() + 60}

    def progress(totals: Any) -> None:
        if time.monotonic() > state["next"]:
            state["next"] += 60
            _told(f"-- {sum(totals.done.values())} trials, {len(totals.findings)} findings")

    return progress


def replay(name: str, seed: int) -> int:
    """Do one trial again in a child; prints its steps and what is found, and leaves its files."""
    server.preload([name])  # type: ignore[no-untyped-call]
    ((child, outcome),) = server.serve([(name, seed)])  # type: ignore[no-untyped-call]
    folder = campaign.FOLDER / f"replay-{name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    campaign.FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.move(child.folder, folder)
    print("\n".join(outcome["lines"]))
    print(outcome.get("signature", "all was well"), outcome.get("text", ""), sep="\n")
    print(f"files: {folder}; peak {outcome.get('peak', 0) / 1e6:.0f} MB; {outcome['seconds']:.1f} s")
    return int(outcome["promise"] is not None)


if __name__ == "__main__":
    sys.exit(main())
