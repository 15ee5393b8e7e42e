"""The fork server: trials in children of a process that has everything imported, with limits of memory and time."""

import contextlib
import faulthandler
import gc
import importlib
import json
import math
import mmap
import os
import re
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from tests.hostile.trial import Case, finding

SECONDS = 20
"""Of processor time; of time on the wall four times that, since others may have the processors."""
ALLOWED = 10**9
"""Bytes over the baseline and the size of the trial's files."""
ADDRESS_SPACE = 6 << 30
"""Bytes of addresses that a child may map besides those of the server: what is endless dies of it."""
GENERATORS = ("files", "mutants", "feeds", "guards", "numbers", "journals", "messages", "writers", "threads", "derived")
TOGETHER = ("files", "mutants", "feeds", "numbers", "guards", "derived")
"""Generators that leave nothing behind but what a session leaves: several trials share a process."""
BATCH = 5
_CLOCK = struct.Struct("qd")
_FRAME = re.compile(r'File ".*/onnxlab/((?:\w+/)*\w+\.py)", line \d+ in (\S+)')


def generator(name):
    """The module of a generator."""
    return importlib.import_module(f"tests.hostile.{name}")


def preload(names=GENERATORS):
    """Import what trials need, read the models, load the compiled kernels: once, before anything is forked."""
    import onnxruntime

    from onnxlab.execution.numba.provider import NumbaProvider

    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    NumbaProvider(background=False).prepare()
    importlib.import_module("onnxlab.execution.numba.plan.engine").load()
    for name in (
        "onnxlab.notebook.session.session",
        "onnxlab.notebook.widgets.html_page",
        "onnxlab.notebook.widgets.widget",
        "onnxlab.render.svg",
        "onnxlab.render.text",
        "onnxlab.cli",
        "tests.graph.support.random_edits",
        "tests.support.oracle",
    ):
        importlib.import_module(name)
    for name in names:
        with contextlib.suppress(AttributeError):
            generator(name).preload()
    warm()
    gc.collect()
    gc.freeze()


def warm():
    """Load, draw and run a model, so that a trial finds what is made once."""
    import onnxlab

    model = onnxlab.load()
    model.check()
    model.to_svg()
    model.sample_inputs()
    model.partition(["numba", "numpy"])


class Trial:
    """One trial of a child: what it is, and where its files are."""

    def __init__(self, name, seed):
        self.name, self.seed = name, seed
        self.folder = Path(tempfile.mkdtemp(prefix="onnxlab-hostile-"))

    def forget(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Child:
    """Some trials in a process of their own, one after the other.

    Attributes:
        trials: what it does.
        clock: number of the trial that it is at, and when that began.
    """

    def __init__(self, trials):
        self.trials = [Trial(*item) for item in trials]
        self.mark = mmap.mmap(-1, 4096)
        self.clock = mmap.mmap(-1, _CLOCK.size)
        self.clock[:] = _CLOCK.pack(0, time.monotonic())
        self.killed = False
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            _child(self)
        self.handle = os.pidfd_open(self.pid)

    def overdue(self):
        return time.monotonic() - _CLOCK.unpack(self.clock[:])[1] > 4 * SECONDS

    def kill(self):
        """End it, after it has noted where it is."""
        self.killed = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGXCPU)
            time.sleep(0.3)
            os.killpg(self.pid, signal.SIGKILL)

    def outcomes(self):
        """(trial, {promise, signature, text, lines}) of those that were done, promise None where all was well.

        The child has ended; those that it did not come to are left in `trials`.
        """
        _, status = os.waitpid(self.pid, 0)
        os.close(self.handle)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # the processes that the child started
        began = _CLOCK.unpack(self.clock[:])[1]
        before = []
        while self.trials:
            trial = self.trials.pop(0)
            result, ended = trial.folder / "result.json", False
            if result.exists():
                outcome = json.loads(result.read_text())
            else:
                number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)
                outcome, ended = self._death(trial, number) | {"seconds": time.monotonic() - began}, True
            if outcome["promise"] is not None and before:
                outcome["lines"] = [f"# after {' '.join(before)} in one process", *outcome["lines"]]
            before.append(f"{trial.name} {trial.seed}")
            yield trial, outcome
            if ended:
                return

    def _death(self, trial, number):
        step = bytes(self.mark).split(b"\0")[0].decode(errors="replace")
        trace = trial.folder / "trace"
        text = trace.read_text(errors="replace") if trace.exists() else ""
        if step.startswith("# oracle"):
            return {"promise": None, "oracle": True, "lines": []}
        frames = _FRAME.findall(text)
        where = next((pair for pair in frames if pair[0] != "execution/base/worker.py"), next(iter(frames), None))
        place = ":".join(where) if where else step[:60]
        hung = self.killed or number in (signal.SIGKILL, signal.SIGXCPU)
        promise = "hang" if hung else "crash"
        cause = "" if hung else signal.Signals(number).name if number > 0 else f"exit code {-number}"
        return {"promise": promise, "signature": f"{promise}: {cause} in {place}", "text": f"at {step}\n{text[-3000:]}",
                "lines": [step]}  # fmt: skip


def _child(child):
    """Run the trials, write what came of them, and leave."""
    code, trial = 1, child.trials[0]
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number, trial in enumerate(child.trials):
            began = time.monotonic()
            child.clock[:] = _CLOCK.pack(number, began)
            trace = open(trial.folder / "trace", "w")  # noqa: SIM115 it has to stay open
            faulthandler.enable(trace)
            faulthandler.register(signal.SIGXCPU, trace, chain=True)
            _limit()
            os.environ["ONNXLAB_STATE_HOME"] = str(trial.folder / "state")
            outcome = run(trial.name, trial.seed, trial.folder, child.mark)
            (trial.folder / "result.json").write_text(json.dumps(outcome | {"seconds": time.monotonic() - began}))
            gc.collect()
        code = 0
    except BaseException:
        with contextlib.suppress(BaseException):
            (trial.folder / "trace").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _limit():
    """The memory of the next trial, besides that which this process has taken so far."""
    used = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + ADDRESS_SPACE, resource.RLIM_INFINITY))


def run(name, seed, folder, mark=None):
    """Do a trial in this process; returns what is found, and what the peak of memory was."""
    case = Case(seed, folder, mark)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    peaks = []
    case.measure = lambda: peaks or peaks.append(_status("VmHWM") - before)
    outcome = {"promise": None}
    try:
        generator(name).trial(case)
    except BaseException as error:
        outcome = {"promise": None, "oracle": True} if _oracles(case, error) else finding(error)
    case.measure()
    outcome["peak"] = peaks[0]
    if outcome["promise"] is None and peaks[0] > ALLOWED + case.size:
        line = case.lines[-1].split("  #")[0][:60] if case.lines else ""
        outcome |= {"promise": "memory", "signature": f"memory: {name}: {line}", "text": f"{peaks[0] / 1e6:.0f} MB"}
    outcome["lines"] = case.lines
    return outcome


def _oracles(case, error):
    """Whether an exception is that of another library: none of ours is raised while one is asked."""
    return case.oracle and finding(error)["promise"] == "harness"


def _status(field):
    """Bytes of a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def serve(trials, processes=1):
    """The outcome of each (generator, seed), in the order in which they end: (trial, outcome)."""
    waiting, alive = batches(iter(trials)), {}
    again = []
    poll = select.poll()
    while True:
        while len(alive) < processes and (batch := again.pop() if again else next(waiting, None)):
            child = Child(batch)
            alive[child.handle] = child
            poll.register(child.handle, select.POLLIN)
        if not alive:
            return
        for handle, _ in poll.poll(200):
            child = alive.pop(handle)
            poll.unregister(handle)
            yield from child.outcomes()
            if child.trials:
                again.append([(trial.name, trial.seed) for trial in child.trials])
                for trial in child.trials:
                    trial.forget()
        for child in alive.values():
            if child.overdue() and not child.killed:
                child.kill()


def batches(trials):
    """Lists of what one child does: alone, or a few of TOGETHER."""
    batch = []
    for item in trials:
        if item[0] not in TOGETHER:
            yield [item]
            continue
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
