"""Requests of a page that is not ours: each gets exactly one reply, and none is an internal error."""

import base64
import json
import threading

import onnxlab
from onnxlab.graph.edits import EDITS
from onnxlab.notebook.protocol.methods import METHODS
from onnxlab.notebook.session.session import Session
from tests.hostile.bases import bases
from tests.hostile.mutants import INTEGERS, TEXTS
from tests.hostile.trial import Broken, innermost

WEIGHT = 8
_PATIENCE = 30  # seconds for a reply
FILES = ("save", "recover", "discard")
"""Methods that deal with files; after a save the model is another than the one that was loaded."""
WORDS = (
    "float32",
    "int",
    "ints",
    "string",
    "tensor",
    "graph",
    "main",
    "heat",
    "image",
    "time",
    "bytes",
    "flops",
    "Add",
    "Conv",
    "ai.onnx.ml::Scaler",
    "random",
    "zeros",
    "ones",
    "axis",
    "x",
    "y",
    "mean",
    "array",
)


def preload():
    bases()


def trial(case):
    base = case.pick(bases())
    path = case.file(base.data)
    model = case.call(f"model = onnxlab.load('m.onnx')  # {base.name}", onnxlab.load, path)
    if model is None:
        return
    replies, arrived = {}, threading.Condition()

    def take(content, buffers):
        json.dumps(content, allow_nan=False)
        with arrived:
            if "event" not in content:
                replies.setdefault(content["id"], []).append(content)
                arrived.notify_all()

    session = Session(model, take)
    refusal, errors = session._refusal, []
    session._refusal = lambda number, error: (errors.append(error), refusal(number, error))[1]
    case.lines.append("session = Session(model, print)")
    before = model.to_bytes()
    for number in range(1, 2 + case.upto(15)):
        message = request(case, model, number)
        case.step(f"session.receive({short(message)})")
        session.receive(message)
        is_valid = isinstance(message, dict) and message.get("id") == number and message["id"] is not True
        judged(replies, arrived, number if is_valid else None, message, errors)
    session.close()
    if any("'save'" in line for line in case.lines):
        case.call("onnxlab.load('m.onnx')", onnxlab.load, path)
        return
    case.call("model.undo(to=0)", model.undo, 0)
    if model.history.state == 0 and model.to_bytes() != before:
        raise Broken("lost", "bytes differ after all edits by hand were undone")


def judged(replies, arrived, number, message, errors):
    """Wait for the reply; raise Broken where it is not the only one, or says that we are at fault."""
    if number is None:
        replies.clear()
        return
    method = message.get("method")
    with arrived:
        if not arrived.wait_for(lambda: number in replies, timeout=_PATIENCE):
            raise Broken("reply", f"no reply to {method if isinstance(method, str) else 'a message'}", short(message))
        if method == "run":
            arrived.wait(0.01)
        answers = replies[number]
    if len(answers) > 1:
        raise Broken("reply", f"{len(answers)} replies to {method}", short(message))
    if answers[0].get("error", {}).get("code") == "internal":
        edit = f" {message['params'].get('edit')}" if method == "edit" else ""
        problem = f"{type(errors[-1]).__name__} in {innermost(errors[-1])}"
        raise Broken("reply", f"internal error of {method}{edit}: {problem}", short(message)) from errors[-1]


def request(case, model, number):
    """A request that is well formed nine times in ten."""
    if case.chance(0.08):
        return case.pick(
            (
                None,
                [],
                "text",
                5,
                {},
                {"id": number},
                {"id": -1, "method": "hello", "params": {}},
                {"id": number, "method": deep(case), "params": {}},
                {"id": number, "method": "hello", "params": deep(case)},
                {"id": True, "method": "hello", "params": {}},
                deep(case),
            )
        )
    method = case.pick(
        [name for name in METHODS if name not in FILES or case.chance(0.2)] + ["edit"] * 25 + ["run", "tensor"] * 3
    )
    declared = METHODS[method].parameters.items()
    params = {name: value(case, model, name) for name, spec in declared if spec.required or case.chance(0.5)}
    if method == "edit" and case.chance(0.95):
        spec = EDITS[case.pick(list(EDITS))]
        params |= {"edit": spec.name, "on": case.pick(spec.subjects)}
        params["subject"] = subject(case, model, params["on"])
        params["parameters"] = {name: parameter(case, model, spec_of.kind) for name, spec_of in spec.parameters.items()}
    if method == "upload" and case.chance(0.9):
        params |= {"offset": case.pick((0, 0, 5)), "data": base64.b64encode(uploaded(case)).decode()}
        params["name"] = case.pick(("a.npy", "m.onnx", "z.npz", "../x", "a.png"))
    if "version" in params:
        params["version"] = model.version + 1 if case.chance(0.8) else case.pick(INTEGERS)
    if case.chance(0.1) and params:
        params[case.pick(list(params))] = case.pick((None, deep(case), [[]], {}, *INTEGERS, *TEXTS))
    return {"id": number, "method": method, "params": params}


def uploaded(case):
    """Bytes of a file that a page sends."""
    import io
    import zipfile

    import numpy as np

    way = case.upto(4)
    stream = io.BytesIO()
    if way == 0:
        np.save(stream, np.ones(case.upto(5), case.pick(("f4", "i8", "U3"))))
    elif way == 1:
        return (
            b"\x93NUMPY\x01\x00v\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117)
            + b"\n"
        )
    elif way == 2:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", bytes(10**6))
    elif way == 3:
        return case.pick(bases()).data
    else:
        return case.rng.bytes(50)
    return stream.getvalue()


def subject(case, model, kind):
    ids = list(model.graph.values if kind == "value" else model.graph.nodes)
    if kind in ("model", "graph"):
        return []
    count = 1 if kind != "nodes" else 1 + case.upto(2)
    return [case.pick(ids) if ids and case.chance(0.95) else case.pick((0, 10**6)) for _ in range(count)]


def value(case, model, name):
    """A value for a parameter of a method, by what its name says."""
    if name in (
        "node",
        "run",
        "position",
        "offset",
        "axis",
        "seed",
        "rows",
        "columns",
        "top",
        "left",
        "height",
        "width",
        "pixels",
    ):
        return node_id(case, model) if name == "node" else case.pick((0, 0, 1, 2, 5, 100, 2**31, 2**53 - 1))
    if name == "value":
        return value_id(case, model) if case.chance(0.9) else case.pick((1.5, "x", [1, 2]))
    if name == "nodes":
        return [node_id(case, model) for _ in range(case.upto(3))]
    if name in ("ok", "bypass", "on"):
        return case.chance(0.5)
    if name == "at":
        return [case.upto(3) for _ in range(case.upto(4))]
    if name == "sizes":
        return {case.pick(("N", "batch", "n", "x")): case.pick((*INTEGERS, 1.5, "a"))}
    if name == "inputs":
        names = [item.name for item in model.inputs] or ["x"]
        ways = (
            {"kind": "random"},
            {"make": "zeros"},
            {"fill": 1},
            {"file": "a.npy"},
            {"upload": "a"},
            None,
            [],
            "random",
            5,
            {"values": "1 2 3"},
        )
        return {case.pick(names): case.pick(ways)}
    if name in ("parameters", "params"):
        return {case.pick(WORDS): case.pick(INTEGERS)}
    if name == "subject":
        return subject(case, model, case.pick(("value", "node", "model")))
    if name == "by":
        return case.pick(("time", "bytes", "flops", "mean", "nan", "", "parameters", "zeros", "costs"))
    if name == "edit":
        return case.pick([*EDITS, "none"])
    return case.pick((*WORDS, *TEXTS))


def parameter(case, model, kind):
    """A value for a parameter of an edit, by its kind."""
    short_ = case.pick((*WORDS, *TEXTS))
    numbers = [case.pick((0, 1, 2, 3, -1, 1.5, 2**40, 2**70, 7)) for _ in range(case.upto(3))]
    dims = [case.pick((1, 2, 3, "N", "n+1", None, 2**62, -1, "", "?")) for _ in range(case.upto(4))]
    elements = [[case.upto(5), case.pick((1, 2.5, "nan", "5", 2**70))] for _ in range(1 + case.upto(2))]
    numbers_given = case.pick((1, 2.5, "text", numbers, [], "1 2", 2**70, "nan", [[1]]))
    array = {
        "dtype": case.pick(("float32", "int8", "string", "bfloat16", short_)),
        "shape": dims,
        "numbers": numbers_given,
    }
    idents = [case.pick((value_id(case, model), node_id(case, model), 0)) for _ in range(case.upto(3))]
    arrays = (array, array, {"elements": elements}, {"file": case.pick(("a.npy", "m.onnx", 0, "f"))}, {}, 1)
    plain = (None, 1, -1, 2.5, "text", numbers, [], ["a", "b"], 2**70, 2**63)
    return {
        "text": lambda: short_,
        "name": lambda: short_,
        "text?": lambda: case.pick((None, short_)),
        "names": lambda: [case.pick((*WORDS, *TEXTS)) for _ in range(case.upto(3))],
        "long": lambda: short_ * 10,
        "bool": lambda: case.chance(0.5),
        "int": lambda: case.pick((0, 0, 1, 2, 3, 10, 100, 2**31 - 1)),
        "version": lambda: case.pick((0, 1, 13, 18, 21, 100, 2**31 - 1)),
        "value": lambda: value_id(case, model),
        "value?": lambda: case.pick((0, value_id(case, model), node_id(case, model))),
        "values": lambda: idents,
        "nodes": lambda: idents,
        "scope": lambda: case.pick((0, 0, *model.graph.scopes, 10**6)),
        "function": lambda: short_,
        "dtype": lambda: case.pick(("float32", "int64", "string", "", short_)),
        "dim": lambda: case.pick((1, 0, "N", "a b", None, 2**62, -1, "")),
        "shape": lambda: case.pick((None, dims, dims)),
        "array": lambda: case.pick(arrays),
        "attribute": lambda: case.pick(
            (*plain, *arrays, {"type": case.pick(("int", "floats", "x")), "value": numbers_given})
        ),
        "model_file": lambda: case.pick(("a.npy", "m.onnx", 0, "f")),
    }[kind]()


def node_id(case, model):
    nodes = list(model.graph.nodes)
    return case.pick(nodes) if nodes and case.chance(0.95) else case.pick((0, 10**6, 2**53 - 1))


def value_id(case, model):
    values = list(model.graph.values)
    return case.pick(values) if values and case.chance(0.95) else case.pick((0, 10**6, 2**53 - 1))


def deep(case):
    """A list in a list, many levels deep."""
    nested = []
    for _ in range(case.pick((5, 100, 1200))):
        nested = [nested] if case.chance(0.7) else {"a": nested}
    return nested


def short(message):
    try:
        return repr(message)[:600]
    except RecursionError:
        return "a message of a thousand levels"
