"""Journals of processes that were killed: whole, cut, flipped, with odd content that is framed right, or no files."""

import json
import os
import resource
import signal
import time

import onnxlab
from onnxlab.formats.journals import change_codec
from onnxlab.formats.journals import journal as journal_file
from tests.hostile.bases import corpus_models
from tests.hostile.mutants import INTEGERS, TEXTS, of_bytes
from tests.hostile.trial import Broken

WEIGHT = 8


def preload():
    corpus_models()


def trial(case):
    base = case.pick(corpus_models()[:5])
    path = case.file(base.data)
    count = 1 + case.upto(5)
    way = case.pick(("whole", "full", "cut", "bytes", "odd", "odd", "records", "others", "header"))
    names = left_behind(case, path, count, way == "full")
    folder = journal_file.state_folder()
    (journal,) = [entry for entry in folder.iterdir() if entry.suffix == journal_file.SUFFIX]
    case.lines.append(f"# {base.name}: {count} edits and SIGKILL, then the journal is changed: {way}")
    ways = {"cut": cut, "bytes": flipped, "odd": odd, "records": records, "others": others, "header": header}
    if way in ways:
        ways[way](case, journal)
    model = case.call("model = onnxlab.load('m.onnx')", onnxlab.load, path)
    if model is None:
        raise Broken("lost", "a file does not load beside a journal", way)
    recovered = 0
    if model.files.recoverable:
        str(model.files.recoverable[-1])
        recovered = case.call("model.files.recover()", model.files.recover) or 0
        model.check()
    judged(model, names, recovered, way)
    case.call("model.files.discard()", model.files.discard)
    if case.chance(0.3):
        case.call("model.nodes[0].name = 'again'", setattr, model.nodes[0], "name", "again")
        case.call("model.save()", model.save)


def judged(model, names, recovered, way):
    """Whole journals give all edits back, others a beginning of them or, changed on purpose, something else."""
    now = [node.name for node in list(model.nodes)[: len(names)]]
    if way in ("whole", "full", "others") and (recovered != len(names) or now != names):
        raise Broken("lost", f"acknowledged edits are not recovered: {way}", f"{recovered} of {len(names)}: {now}")
    if way == "cut" and now[:recovered] != names[:recovered]:
        raise Broken("lost", "a cut journal gives other edits", f"{now} for {names}")


def left_behind(case, path, count, full):
    """Let a process edit the names of the first nodes and kill it; returns the names.

    Args:
        full: the disk takes nothing meanwhile, but for the last edit, with which the others are written too.
    """
    total = len(onnxlab.load(path).nodes)
    names = [f"edit {number} é" for number in range(min(count, total))]
    child = os.fork()
    if not child:
        model = onnxlab.load(path)
        for number, name in enumerate(names):
            if full:
                disk_takes(0 if number < len(names) - 1 else 1 << 40)
            model.nodes[number].name = name
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    return names


def disk_takes(nbytes):
    """Let no file of this process grow beyond some bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def cut(case, journal):
    data = journal.read_bytes()
    journal.write_bytes(data[: case.upto(len(data))])


def flipped(case, journal):
    journal.write_bytes(of_bytes(case, journal.read_bytes()))


def odd(case, journal):
    """Contents that are JSON or none, in whole frames."""
    whole = journal_file.records(journal.read_bytes())
    place = case.upto(len(whole) - 1)
    if place and case.chance(0.7):
        head, notes = change_codec.unpack(whole[place])
        head, notes = mangled(case, head), mangled(case, notes)
        try:
            whole[place] = change_codec.pack(head, notes)
        except Exception:  # what cannot be packed any more is written as bytes
            whole[place] = json.dumps(str(head)).encode()
    else:
        whole[place] = case.pick(
            (
                b"",
                b"null",
                b"[]",
                b"garbage",
                b"{}",
                b'{"kind": "edit"}',
                b"\xff" * 30,
                b"[" * 2000,
                of_bytes(case, whole[place]),
            )
        )
    framed(journal, whole)


def framed(journal, whole):
    magic = journal.read_bytes()[: len(journal_file._MAGIC)]
    journal.write_bytes(magic + b"".join(map(journal_file.framed, whole)))


def mangled(case, value):
    """One part of a JSON value replaced."""
    if isinstance(value, dict) and value and case.chance(0.85):
        key = case.pick(list(value))
        if case.chance(0.15):
            return {name: item for name, item in value.items() if name != key}
        return value | {key: mangled(case, value[key])}
    if isinstance(value, list | tuple) and value and case.chance(0.85):
        place = case.upto(len(value) - 1)
        items = [mangled(case, item) if number == place else item for number, item in enumerate(value)]
        return type(value)(items)
    return case.pick(
        (
            None,
            True,
            [],
            {},
            "undo",
            "redo",
            "edit",
            "saved",
            "ended",
            1.5,
            float("nan"),
            [[]],
            *INTEGERS,
            *TEXTS,
            b"\xff",
        )
    )


def records(case, journal):
    """Records left out, doubled or in another order."""
    whole = journal_file.records(journal.read_bytes())
    way = case.upto(3)
    if way == 0:
        whole.pop(case.upto(len(whole) - 1))
    elif way == 1:
        whole.append(case.pick(whole))
    elif way == 2:
        case.rng.shuffle(whole)
    else:
        whole += [
            change_codec.pack({"kind": case.pick(("undo", "redo", "ended", "saved", "odd", None)), "time": 0.0}, [])
            for _ in range(1 + case.upto(5))
        ]
    framed(journal, whole)


def others(case, journal):
    """Other things beside it, old and new, with names like its own."""
    for number in range(1 + case.upto(8)):
        start = case.pick((journal.name.split("-")[0] + "-", "x", "", "é"))
        entry = journal.parent / f"{start}{number}-aa{case.pick((journal_file.SUFFIX, '', '.tmp'))}"
        way = case.pick(("folder", "file", "link", "fifo", "empty", "unreadable"))
        if way == "folder":
            entry.mkdir()
        elif way == "fifo":
            os.mkfifo(entry)
        elif way == "link":
            os.symlink(case.pick(("/dev/zero", entry.name, "none", "/")), entry)
            continue
        else:
            entry.write_bytes(b"" if way == "empty" else case.rng.bytes(100))
            entry.chmod(0 if way == "unreadable" else 0o600)
        if case.chance(0.5):
            os.utime(entry, (1e9, 1e9))


def header(case, journal):
    """Another header: of another file, of a later format, of the future."""
    whole = journal_file.records(journal.read_bytes())
    head = json.loads(whole[0])
    head[case.pick(list(head))] = case.pick((None, 0, -1, 99, "x", [], {}, time.time() + 1e9))
    whole[0] = json.dumps(head).encode()
    framed(journal, whole)
