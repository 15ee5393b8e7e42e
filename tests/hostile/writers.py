"""Writers that are killed, or whose disk is full: what stood at the path, or what was written, is whole afterwards."""

import os
import resource
import signal
import time
import warnings
import zipfile

import onnx

import onnxlab
from onnxlab.errors import OnnxlabError
from tests.hostile.bases import corpus_models
from tests.hostile.trial import Broken

WEIGHT = 6


def preload():
    corpus_models()


def trial(case):
    base = case.pick(corpus_models())
    path = case.file(base.data)
    writer = case.pick(list(WRITERS))
    if case.call(f"{writer} of {base.name}, unhindered", written, writer, path, fresh(case, path, "whole")) is None:
        return  # this model has no such form
    target = fresh(case, path, "target")
    model = onnxlab.load(path if writer not in IN_PLACE else target)
    edit(model)
    way = case.pick(("kill", "full", "full", "denied"))
    {"kill": killed, "full": full, "denied": denied}[way](case, writer, model, target)
    if model.nodes[0].name != "edited":
        raise Broken("lost", f"an edit is lost when {writer} fails")


def written(writer, path, target):
    WRITERS[writer](onnxlab.load(path), target)
    return target


def fresh(case, path, name):
    """A copy of the model in a folder of its own."""
    folder = case.folder / name
    folder.mkdir()
    target = folder / "m.onnx"
    target.write_bytes(path.read_bytes())
    return target


def edit(model):
    model.nodes[0].name = "edited"
    model.nodes[0].doc_string = "x" * 3000


def npz(model, target):
    """The command line's run, which writes arrays."""
    from onnxlab.cli import main

    if main(["run", str(model.path), "--save", str(target.with_name("out.npz"))]) == 0:
        return
    raise onnxlab.OnnxlabError("refused by the command line")


def drawing(model, target):
    from onnxlab.cli import main

    if main(["svg", str(model.path), "-o", str(target.with_name("out.svg"))]):
        raise onnxlab.OnnxlabError("refused by the command line")


# name: function of a model and the path of a file to write beside or over
WRITERS = {
    "save": lambda model, target: model.save(target, overwrite=True),
    "save with data": lambda model, target: model.save(target, overwrite=True, external_data=True),
    "save in shards": lambda model, target: model.save(target, overwrite=True, external_data=True, shard_bytes=5000),
    "save as text": lambda model, target: model.save(target.with_name("out.textproto"), overwrite=True),
    "save as JSON": lambda model, target: model.save(target.with_name("out.json"), overwrite=True),
    "save as ONNX text": lambda model, target: model.save(target.with_name("out.onnxtxt"), overwrite=True),
    "to_html": lambda model, target: model.to_html(target.with_name("out.html")),
    "to_svg": lambda model, target: model.to_svg(target.with_name("out.svg")),
    "to_png": lambda model, target: model.to_png(target.with_name("out.png")),
    "onnxlab run": npz,
    "onnxlab svg": drawing,
}
IN_PLACE = ("save", "save with data", "save in shards")
_OTHERS = ("out.textproto", "out.json", "out.onnxtxt", "out.html", "out.svg", "out.png", "out.npz")


def killed(case, writer, model, target):
    """SIGKILL at a random moment."""
    for name in _OTHERS:  # the report of losses
        (target.parent / name).write_bytes(b"old")
    before = contents(target.parent)
    started = time.perf_counter()
    WRITERS[writer](model, fresh(case, target, "timed"))
    moment = case.rng.uniform(0, 1.2 * (time.perf_counter() - started))
    case.step(f"{writer}, SIGKILL after {moment * 1e3:.1f} ms")
    child = os.fork()
    if not child:
        try:
            WRITERS[writer](model, target)
        finally:
            os._exit(0)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    judged(case, writer, "kill", before, target)


def full(case, writer, model, target):
    """A disk that takes only some bytes of each file; an edit on it stays."""
    if case.chance(0.5):
        for name in _OTHERS:
            (target.parent / name).write_bytes(b"old")
    before = contents(target.parent)
    room = case.pick((0, 1, 100, 4096, case.upto(100_000)))
    case.step(f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, -1)); {writer}")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.nodes[0].doc_string = "y" * 3000  # on the full disk too
        WRITERS[writer](model, target)
        refused = False
    except OnnxlabError:
        refused = True
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    judged(case, writer, "full", before, target, refused)


def denied(case, writer, model, target):
    """A call of the system that fails once, at a random place."""
    name, number = case.pick(("write", "fsync", "replace", "open", "rename", "link")), case.pick((28, 5, 13, 122))
    after, real, seen = case.upto(3), getattr(os, name), []

    def failing(*arguments, **keywords):
        seen.append(1)
        if len(seen) == after + 1:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **keywords)

    before = contents(target.parent)
    case.step(f"os.{name} raises errno {number} in call {after}; {writer}")
    setattr(os, name, failing)
    try:
        WRITERS[writer](model, target)
        refused = False
    except OnnxlabError:
        refused = True
    finally:
        setattr(os, name, real)
    judged(case, writer, f"a failing os.{name}", before, target, refused)


def contents(folder):
    """{name: bytes} of the files, temporary ones left out, which later saves remove."""
    return {
        item.name: item.read_bytes() for item in folder.iterdir() if item.is_file() and not item.name.startswith(".")
    }


def judged(case, writer, way, before, target, refused=False):
    """Each file is what it was, or whole; after a refusal all are what they were."""
    after = contents(target.parent)
    for name in before:
        if name not in after:
            raise Broken("lost", f"{writer}: {suffix(name)} is gone after {way}")
    for name, data in after.items():
        if data == before.get(name):
            continue
        if refused:
            raise Broken("lost", f"{writer}: refused, and {suffix(name)} was changed by {way}", f"{len(data)} bytes")
        if not whole(target.parent, name, data):
            raise Broken("lost", f"{writer}: {suffix(name)} is half written after {way}", f"{len(data)} bytes")


def suffix(name):
    return f"*.{name.rsplit('.', 1)[-1]}"


def whole(folder, name, data):
    """Whether a file is complete: parsed by its owners' tools, or by how it ends."""
    try:
        match name.rsplit(".", 1)[-1]:
            case "onnx":
                onnx.load(folder / name)
            case "html":
                return data.rstrip().endswith(b"</html>")
            case "svg":
                return data.rstrip().endswith(b"</svg>")
            case "png":
                return data.endswith(b"IEND\xaeB`\x82")
            case "npz":
                with zipfile.ZipFile(folder / name) as archive:
                    return archive.testzip() is None
            case "textproto" | "json" | "onnxtxt":
                onnxlab.load(folder / name)
    except Exception:
        return False
    return True
