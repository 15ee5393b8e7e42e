"""One trial: what a generator gets to work with, and how it says that a promise was broken.

A generator is a module of this folder with `WEIGHT` (its share of a campaign), `trial(case)` and perhaps `preload()`.
Whatever a trial does comes from `case.rng`, so the generator's name and a seed are all that is needed to have it again.
An OnnxlabError in `case.call` is a refusal; every exception that gets out of a trial is a finding, and so are a process
that dies, takes too long or too much memory.
"""

import mmap
import traceback
from pathlib import Path

import numpy as np
import onnx

from onnxlab.errors import OnnxlabError
from onnxlab.limits import Limits

PROMISES = {
    "crash": "processes that died",
    "hang": "trials that took too long",
    "memory": "trials above 1 GB over the baseline and the file's size",
    "silent": "models accepted without a diagnostic that onnx.checker and onnxruntime refuse",
    "raw": "exceptions that are no OnnxlabError, or where none belongs",
    "number": "numbers that differ from the reference's",
    "lost": "lost files, edits or inputs",
    "reply": "requests without exactly one reply, or with an internal error",
    "harness": "trials that failed by a fault of their own",
}
PACKAGE = "/onnxlab/"
_LONGEST = 4000


class Broken(Exception):
    """A promise that was not kept.

    Args:
        promise: a key of PROMISES.
        what: what was found, where it is the same for every case of one fault: part of the signature.
        more: what differs from case to case.
    """

    def __init__(self, promise, problem, more=""):
        super().__init__(f"{problem} {more}".strip())
        self.promise, self.what, self.more = promise, problem, more


class Case:
    """The tools of a trial.

    Attributes:
        seed, rng: of everything that is drawn.
        folder: a folder of its own, kept with a finding.
        lines: what was done, as Python that does it again.
        size: bytes of the files that were made, which a trial may take besides 1 GB.
        ran: inputs and outputs of a run that was done, None before.
        oracle: whether another library is being asked, whose faults are not ours.
    """

    def __init__(self, seed, folder, mark=None):
        self.seed, self.folder, self.mark = seed, Path(folder), mark or mmap.mmap(-1, 4096)
        self.rng = np.random.default_rng(seed)
        self.lines, self.size, self.oracle = [], 0, False
        self.measure = self.ran = None

    # -- drawing ------------------------------------------------------------------------------------------------------

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, share):
        return bool(self.rng.random() < share)

    def upto(self, most):
        """An integer from 0 to `most`."""
        return int(self.rng.integers(most + 1))

    # -- noting -------------------------------------------------------------------------------------------------------

    def step(self, line):
        """Note what comes next, where it survives this process."""
        self.lines.append(line)
        text = line.encode(errors="replace")[: len(self.mark) - 1]
        self.mark[: len(text) + 1] = text + b"\0"

    def file(self, data, name="m.onnx"):
        """The path of a new file in the folder."""
        path = self.folder / name
        path.write_bytes(data)
        self.size += len(data)
        return path

    def call(self, line, function, *arguments, **keywords):
        """`function(…)`; None where it refuses, as an OnnxlabError."""
        self.step(line)
        try:
            return function(*arguments, **keywords)
        except OnnxlabError as error:
            str(error)
            self.lines[-1] += f"  # {type(error).__name__}"
            return None

    def asking(self, who):
        """From now on it is another library that runs, and what it takes is not counted."""
        if self.measure is not None:
            self.measure()
        self.oracle = True
        self.step(f"# oracle: {who}")


def limits(seconds=5.0):
    """The budget of every run of a trial."""
    return Limits(bytes=256 << 20, iterations=2000, deadline=seconds)


def parsed(data):
    """The ModelProto of some bytes, None where they are none."""
    try:
        return onnx.ModelProto.FromString(data)
    except Exception:
        return None


def finding(error):
    """{promise, signature, text} of an exception that got out of a trial."""
    text = "".join(traceback.format_exception(error))[-_LONGEST:]
    if isinstance(error, Broken):
        return {"promise": error.promise, "signature": f"{error.promise}: {error.what}", "text": f"{error}\n{text}"}
    where = innermost(error)
    if where is None:
        return {"promise": "harness", "signature": f"harness: {type(error).__name__}: {str(error)[:80]}", "text": text}
    return {"promise": "raw", "signature": f"raw: {type(error).__name__} in {where}", "text": text}


def innermost(error):
    """The last frame of the package in a traceback, "graph/index/order.py:sorted"; None where there is none."""
    place = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if PACKAGE in name and "/tests/" not in name and "/bench/" not in name:
            place = f"{name.rsplit(PACKAGE, 1)[1]}:{frame.f_code.co_name}"
    return place
