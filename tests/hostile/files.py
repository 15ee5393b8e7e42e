"""A hundred hostile models and files; those that are hostile as files are made here."""

import os
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.hostile import oversized, structures
from tests.hostile.exercise import exercise
from tests.hostile.oversized import model
from tests.infer.support.hostile_models import MODELS

WEIGHT = 8


def preload():
    makers()


def trial(case):
    name = case.pick(list(makers()))
    case.lines.append(f"# {name}")
    source = makers()[name](case)
    if isinstance(source, onnx.ModelProto):
        source = case.file(source.SerializePartialToString())
    if source is not None:
        exercise(case, source, {"x": np.ones((2, 3), np.float32)}, compare=False)


def makers():
    """{name: function of the case: a ModelProto or the path of a file}."""
    by_name = {f"{name} (infer)": lambda case, make=make: make() for name, make in MODELS.items()}
    by_name |= {
        f"sizes of {op_type}": lambda case, op=op_type: oversized.sizes(case, op) for op_type in oversized.BY_SIZE
    }
    by_name |= {
        f"attributes of {op_type}": lambda case, op=op_type: oversized.attributes(case, op)
        for op_type in oversized.BY_ATTRIBUTE
    }
    plain = (*oversized.PLAIN, *structures.PLAIN, external, text_files, other_files, special_files)
    return by_name | {function.__name__: function for function in plain}


def external(case):
    """Data in a file that is elsewhere, special, too short or too long."""
    folder = case.folder
    (folder / "w.bin").write_bytes(bytes(24))
    where = case.pick(
        (
            "w.bin",
            "../w.bin",
            "/etc/passwd",
            "/dev/zero",
            "none",
            "link",
            "fifo",
            ".",
            "",
            "a\x00b",
            "w.bin/",
            "n" * 300,
        )
    )
    if where == "link":
        os.symlink(case.pick(("/etc/passwd", "link", "w.bin")), folder / "link")
    if where == "fifo":
        os.mkfifo(folder / "fifo")
    tensor = TensorProto(name="w", data_type=1, dims=[case.pick((6, 2**38, 2**62, 0))], data_location=1)
    for key, value in (
        ("location", where),
        ("offset", case.pick(("0", "-1", "8", str(2**63), "x", ""))),
        ("length", case.pick(("24", "-5", str(2**62), "0", "٣"))),
    ):
        if key == "location" or case.chance(0.5):
            tensor.external_data.add(key=key, value=value)
    if case.chance(0.2):
        with open(folder / "w.bin", "ab") as file:
            file.truncate(1 << 40)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], constants=[tensor])


def text_files(case):
    """Text of a model, cut or changed, under the names that texts have."""
    from google.protobuf import json_format, text_format
    from onnx import printer

    proto = model([helper.make_node("Relu", ["x"], ["y"])])
    suffix, text = case.pick(
        (
            (".textproto", text_format.MessageToString(proto)),
            (".json", json_format.MessageToJson(proto)),
            (".onnxtxt", printer.to_text(proto)),
        )
    )
    data = bytearray(text.encode())
    way = case.upto(3)
    if way == 0:
        data = data[: case.upto(len(data))]
    elif way == 1:
        data[case.upto(len(data) - 1)] = case.upto(255)
    elif way == 2:
        place = case.upto(len(data) - 1)
        data[place:place] = case.pick(
            (b"[" * 5000, b"{" * 5000, b"graph {" * 500, b"(" * 3000, b"9" * 5000, b"\\u0000", b'"')
        )
    return case.file(bytes(data), f"m{suffix}")


def other_files(case):
    """Files of other kinds under a model's name."""
    way = case.pick(("zip", "npy", "gzip", "text", "zeros", "ones", "noise", "nothing"))
    path = case.folder / "m.onnx"
    if way == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("m.onnx", bytes(10**7))
        return path
    data = {
        "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'shape': (10**12,)}",
        "gzip": b"\x1f\x8b\x08" + bytes(30),
        "text": b"# a text\n" * 20,
        "zeros": bytes(1000),
        "ones": b"\xff" * 1000,
        "noise": case.rng.bytes(1000),
        "nothing": b"",
    }[way]
    return case.file(data, case.pick(("m.onnx", "m.ort", "m.pt", "m", "m.textproto", "m.json")))


def special_files(case):
    """Paths that are no regular files."""
    path = case.folder / "m.onnx"
    way = case.pick(("folder", "fifo", "loop", "dangling", "device"))
    if way == "folder":
        path.mkdir()
    elif way == "fifo":
        os.mkfifo(path)
    else:
        os.symlink(
            {"loop": "m.onnx", "dangling": "none.onnx", "device": case.pick(("/dev/zero", "/dev/null"))}[way], path
        )
    import onnxlab

    case.call(f"onnxlab.load('m.onnx')  # a {way}", onnxlab.load, path)
