"""The fork server: each trial in a child of a process that has everything imported, with limits of memory and time."""

import contextlib
import faulthandler
import gc
import importlib
import json
import mmap
import os
import re
import resource
import select
import shutil
import signal
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
GENERATORS = ("files", "mutants", "feeds", "guards", "numbers", "journals", "messages", "writers", "threads")
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
    # a fork while another thread imports a module has half of it for ever: numpy.ma is imported when first used
    for name in (
        "numpy.ma",
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


class Child:
    """A trial in a process of its own."""

    def __init__(self, name, seed):
        self.name, self.seed = name, seed
        self.folder = Path(tempfile.mkdtemp(prefix="onnxlab-hostile-"))
        self.mark = mmap.mmap(-1, 4096)
        self.started = time.monotonic()
        self.killed = False
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            _child(self)
        self.handle = os.pidfd_open(self.pid)

    def overdue(self):
        return time.monotonic() - self.started > 4 * SECONDS

    def kill(self):
        """End it, after it has noted where it is."""
        self.killed = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGXCPU)
            time.sleep(0.3)
            os.killpg(self.pid, signal.SIGKILL)

    def outcome(self):
        """{promise, signature, text, lines}, promise None where all was well; removes the folder unless there is more.

        The child has ended.
        """
        _, status = os.waitpid(self.pid, 0)
        os.close(self.handle)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it started
        result = self.folder / "result.json"
        if os.WIFEXITED(status) and result.exists():
            found = json.loads(result.read_text())
        else:
            found = self._death(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status))
        found["seconds"] = time.monotonic() - self.started
        return found

    def _death(self, number):
        step = bytes(self.mark).split(b"\0")[0].decode(errors="replace")
        trace = self.folder / "trace"
        text = trace.read_text(errors="replace") if trace.exists() else ""
        if step.startswith("# oracle"):
            return {"promise": None, "oracle": True, "lines": []}
        found = _FRAME.findall(text)
        where = next((pair for pair in found if pair[0] != "execution/base/worker.py"), next(iter(found), None))
        place = ":".join(where) if where else step[:60]
        hung = self.killed or number in (signal.SIGKILL, signal.SIGXCPU)
        promise = "hang" if hung else "crash"
        what = "" if hung else signal.Signals(number).name if number > 0 else f"exit code {-number}"
        return {"promise": promise, "signature": f"{promise}: {what} in {place}", "text": f"at {step}\n{text[-3000:]}",
                "lines": [step]}  # fmt: skip

    def forget(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def _child(child):
    """Run the trial, write what came of it, and leave."""
    code = 1
    try:
        os.setpgid(0, 0)
        trace = open(child.folder / "trace", "w")  # noqa: SIM115 it has to stay open
        faulthandler.enable(trace)
        faulthandler.register(signal.SIGXCPU, trace)
        _limited()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        os.environ["ONNXLAB_STATE_HOME"] = str(child.folder / "state")
        found = run(child.name, child.seed, child.folder, child.mark)
        (child.folder / "result.json").write_text(json.dumps(found))
        code = 0
    except BaseException:
        with contextlib.suppress(BaseException):
            (child.folder / "trace").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _limited():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = _status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (size + ADDRESS_SPACE,) * 2)


def run(name, seed, folder, mark=None):
    """Do a trial in this process; returns what is found, and what the peak of memory was."""
    case = Case(seed, folder, mark)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    peaks = []
    case.measure = lambda: peaks or peaks.append(_status("VmHWM") - before)
    found = {"promise": None}
    try:
        generator(name).trial(case)
    except BaseException as error:
        found = {"promise": None, "oracle": True} if _oracles(case, error) else finding(error)
    case.measure()
    found["peak"] = peaks[0]
    if found["promise"] is None and peaks[0] > ALLOWED + case.size:
        what = case.lines[-1].split("  #")[0][:60] if case.lines else ""
        found |= {"promise": "memory", "signature": f"memory: {name}: {what}", "text": f"{peaks[0] / 1e6:.0f} MB"}
    found["lines"] = case.lines
    return found


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
    """The outcome of each (generator, seed), in the order in which they end: (child, outcome)."""
    waiting, alive = iter(trials), {}
    poll = select.poll()
    while True:
        while len(alive) < processes and (item := next(waiting, None)) is not None:
            child = Child(*item)
            alive[child.handle] = child
            poll.register(child.handle, select.POLLIN)
        if not alive:
            return
        for handle, _ in poll.poll(200):
            child = alive.pop(handle)
            poll.unregister(handle)
            yield child, child.outcome()
        for child in alive.values():
            if child.overdue() and not child.killed:
                child.kill()
