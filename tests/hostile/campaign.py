"""A campaign: many trials of all generators, findings by signature, an example of each on the disk."""

import hashlib
import shutil
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.hostile.server import GENERATORS, generator, serve

FOLDER = Path(__file__).resolve().parent.parent.parent / "build" / "hostile"
_SEEDS = 10**7  # of one campaign


@dataclass
class Finding:
    """All cases of one signature."""

    promise: str
    signature: str
    generator: str
    seed: int
    text: str
    lines: list
    folder: Path
    count: int = 1

    def told(self):
        """The reproduction: the command, then what the trial did."""
        steps = "\n".join(f"    {line[:400]}" for line in [*self.lines[:1], *self.lines[1:][-11:]])
        again = f"python -m bench.hostile --replay {self.generator} {self.seed}"
        return f"{self.signature}\n  {again}\n  files: {self.folder}\n{steps}\n  {self.text.strip()[-1500:]}\n"


@dataclass
class Campaign:
    """The counts of a campaign.

    Attributes:
        done: trials by generator.
        findings: by signature.
        deaths: trials that another library ended, which are no findings.
        peak: the most bytes that one took.
    """

    done: Counter = field(default_factory=Counter)
    findings: dict = field(default_factory=dict)
    deaths: int = 0
    peak: int = 0
    slowest: float = 0.0
    seconds: dict = field(default_factory=lambda: defaultdict(float))

    def take(self, child, outcome, report=None):
        """Enter the outcome of a trial."""
        self.done[child.name] += 1
        self.deaths += bool(outcome.get("oracle"))
        self.peak = max(self.peak, outcome.get("peak", 0))
        self.slowest = max(self.slowest, outcome["seconds"])
        self.seconds[child.name] += outcome["seconds"]
        if outcome["promise"] is None:
            child.forget()
            return
        signature = outcome["signature"]
        if signature in self.findings:
            self.findings[signature].count += 1
            child.forget()
            return
        folder = _kept(child, outcome)
        finding = Finding(
            outcome["promise"], signature, child.name, child.seed, outcome["text"], outcome["lines"], folder
        )
        self.findings[signature] = finding
        (folder / "finding.txt").write_text(finding.told(), errors="replace")
        if report is not None:
            report(finding.told())


def _kept(child, outcome):
    """The folder of an example, moved to where findings are."""
    digest = hashlib.sha256(outcome["signature"].encode(errors="replace")).hexdigest()[:8]
    folder = FOLDER / f"{outcome['promise']}-{child.name}-{digest}"
    shutil.rmtree(folder, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.move(child.folder, folder)
    return folder


def drawn(count, seed, names=GENERATORS):
    """(generator, seed) of `count` trials, in shares of the generators' weights."""
    rng = np.random.default_rng(seed)
    weights = np.array([generator(name).WEIGHT for name in names], float)
    for number in range(count):
        yield names[int(rng.choice(len(names), p=weights / weights.sum()))], seed * _SEEDS + number


def campaign(count, seed, names=GENERATORS, processes=1, seconds=None, report=None, progress=None):
    """Run a campaign; it ends early after `seconds`."""
    result, until = Campaign(), None if seconds is None else time.monotonic() + seconds

    def trials():
        for item in drawn(count, seed, names):
            if until is not None and time.monotonic() > until:
                return
            yield item

    for child, outcome in serve(trials(), processes):
        result.take(child, outcome, report)
        if progress is not None:
            progress(result)
    return result
