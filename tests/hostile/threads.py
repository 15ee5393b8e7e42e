"""Runs and edits in threads, forks in the middle of them, and Ctrl-C at any moment: the model stays whole."""

import os
import signal
import threading
import time
import traceback

import onnxlab
from onnxlab.errors import OnnxlabError
from tests.hostile.bases import corpus_models
from tests.hostile.divergence import close
from tests.hostile.trial import Broken, finding, limits

WEIGHT = 5


def preload():
    corpus_models()


def trial(case):
    take_turns()
    base = case.pick(corpus_models())
    path = case.file(base.data)
    model = onnxlab.load(path)
    way = case.pick((together, together, forked, interrupted, interrupted, interrupted))
    case.step(f"{way.__name__}: {base.name}")
    way(case, model, base.feeds)
    untouched(model, base, path)


def take_turns():
    """Leave real-time scheduling: on one processor a thread that lets the interpreter go and takes it back starves all.

    The one that waits is woken, is not run before the other's slice ends, and so never asks for the interpreter.
    """
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def untouched(model, base, path):
    """After undoing all edits the bytes and results are those of before."""
    model.undo(to=0)
    if model.to_bytes() != path.read_bytes():
        raise Broken("lost", "bytes differ after all edits were undone")
    expected = onnxlab.load(path).run(base.feeds, limits=limits(20))
    outputs = model.run(base.feeds, limits=limits(20))
    if any(close(outputs[name], array, name) for name, array in expected.items()):
        raise Broken("number", "another result after edits by threads or interrupts were undone")
    if [str(item) for item in model.check()] != [str(item) for item in onnxlab.load(path).check()]:
        raise Broken("lost", "other diagnostics after all edits were undone")


def rename(model, number, count):
    model.nodes[number % len(model.nodes)].name = f"edit {count}"


def attribute(model, number, count):
    model.nodes[number % len(model.nodes)].attributes["own"] = count


def undo(model, number, count):
    model.undo()


def docs(model, number, count):
    model.nodes[number % len(model.nodes)].doc_string = "y" * count


EDITS = (rename, attribute, undo, docs)


def together(case, model, feeds):
    """Threads that run by NumPy and by Numba, edit and look, each for itself."""
    failures, numbers = [], [case.upto(100) for _ in range(40)]
    ways = [case.pick(("run", "numba", "edit", "check", "svg", "save")) for _ in range(4)]
    expected = model.run(feeds, limits=limits(20))

    def work(way):
        try:
            for count, number in enumerate(numbers[: 3 if way == "svg" else 8]):
                if way == "edit":
                    rename(model, number, count) if number % 2 else docs(model, number, count)
                elif way == "check":
                    model.check()
                elif way == "svg":
                    model.to_svg()
                elif way == "save":
                    model.to_bytes()
                else:
                    providers = ["numba", "numpy"] if way == "numba" else None
                    outputs = model.run(feeds, providers=providers, limits=limits(20))
                    if any(close(outputs[name], array, name) for name, array in expected.items()):
                        raise Broken("number", f"another result in a thread: {way}")
        except OnnxlabError:
            pass
        except BaseException as error:
            failures.append(error)

    case.lines.append(f"# {ways}")
    workers = [threading.Thread(target=work, args=(way,)) for way in ways]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


def forked(case, model, feeds):
    """A fork while threads run and edit: the child loads, runs and edits, and leaves the parent's journal alone."""
    stop = threading.Event()

    def work():
        count = 0
        while not stop.is_set():
            count += 1
            try:
                model.run(feeds, limits=limits(20)) if case.seed % 2 else rename(model, count, count)
            except OnnxlabError:
                return

    worker = threading.Thread(target=work)
    worker.start()
    time.sleep(case.rng.uniform(0, 0.03))
    child = os.fork()
    if not child:
        code = 3
        try:
            other = onnxlab.load()
            other.nodes[0].name = "in the child"
            other.run(other.sample_inputs())
            if not case.seed % 2 or case.seed % 4 == 1:
                onnxlab.load(model.path).run(feeds)
            code = 0
        except BaseException as error:
            (case.folder / "child").write_text(f"{finding(error)['signature']}\n{traceback.format_exc()}")
        finally:
            os._exit(code)
    stop.set()
    worker.join()
    until = time.monotonic() + 15
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(child, signal.SIGABRT)
            os.waitpid(child, 0)
            raise Broken("hang", "a forked child waits for ever")
        time.sleep(0.01)
    if ended[1]:
        report = case.folder / "child"
        text = report.read_text() if report.exists() else f"status {ended[1]}"
        raise Broken("crash", f"a forked child: {text.splitlines()[0]}", text)


def interrupted(case, model, feeds):
    """Ctrl-C at random moments of edits, runs, saves and loads."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    moments = sorted(case.rng.uniform(0, 0.05, 3))
    actions = [case.pick((*EDITS, "run", "numba", "save", "load", "svg", "check")) for _ in range(12)]
    number, path = case.upto(50), model.path
    target = case.folder / "saved.onnx"
    model.save(target)
    model = onnxlab.load(path)
    whole = {path.read_bytes()}
    case.lines.append(f"# {[getattr(action, '__name__', action) for action in actions]}")
    main, stop = threading.main_thread().ident, threading.Event()

    def strike():
        for before, moment in zip([0, *moments], moments, strict=False):
            if stop.wait(moment - before):
                return
            signal.pthread_kill(main, signal.SIGINT)

    striker = threading.Thread(target=strike)
    struck = 0
    try:
        striker.start()
        for count, action in enumerate(actions):
            struck += _interruptible(model, feeds, action, number, count, target, whole)
    except KeyboardInterrupt:  # between two actions
        struck += 1
    finally:
        for _ in range(len(moments) + 1):  # the fault may occur here, too
            try:
                stop.set()
                striker.join()
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                break
            except KeyboardInterrupt:
                continue
    onnxlab.load(target)  # whole, old or new
    before = path.read_bytes()
    model.undo(to=0)
    if model.to_bytes() != before:
        raise Broken("lost", "bytes differ after an interrupt and undo")


def _interruptible(model, feeds, action, number, count, target, whole):
    """1 if it was interrupted."""
    try:
        if callable(action):
            action(model, number, count)
        elif action in ("run", "numba"):
            model.run(feeds, providers=["numba", "numpy"] if action == "numba" else None, limits=limits(20))
        elif action == "save":
            onnxlab.save(model.proto, target)
        elif action == "load":
            onnxlab.load(model.path)
        elif action == "svg":
            model.to_svg()
        else:
            model.check()
    except (KeyboardInterrupt, OnnxlabError) as error:
        return int(isinstance(error, KeyboardInterrupt))
    return 0
