"""Identify files that are no ONNX models: one sentence with the kind of file and what to do.

protobuf says "Error parsing message" for all of them.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

GIB: Final = 1 << 30

# (offset, bytes at the offset, description of the file)
_SIGNATURES: Final = (
    (0, b"version https://git-lfs.github.com/spec/", "a git-lfs pointer, not the model: fetch it with `git lfs pull`"),
    (0, b"PK\x03\x04", "a zip archive (a PyTorch .pt or .pth, a Keras .keras or a NumPy .npz), not an ONNX model"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras .h5), not an ONNX model: convert it with tf2onnx"),
    (0, b"\x1f\x8b", "compressed with gzip: unpack it first"),
    (0, b"\xfd7zXZ\x00", "compressed with xz: unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first"),
    (0, b"GGUF", "a GGUF file of llama.cpp, not an ONNX model"),
    (0, b"\x93NUMPY", "a NumPy array, not an ONNX model"),
    (0, b"\x80\x02", "a Python pickle (a PyTorch checkpoint?), not an ONNX model: export it with torch.onnx"),
    (0, b"\x89PNG", "a PNG picture, not an ONNX model"),
    (4, b"ORTM", "a model in ONNX Runtime's .ort format: keep the .onnx it was made from"),
    (4, b"TFL3", "a TensorFlow Lite model: convert it with tf2onnx"),
    (8, b'{"', "a safetensors file: weights without a graph, not an ONNX model"),
)

# fields of ModelProto: (name, wire type); 0 is a number, 2 has a length
_FIELDS: Final = {
    1: ("ir_version", 0),
    2: ("producer_name", 2),
    3: ("producer_version", 2),
    4: ("domain", 2),
    5: ("model_version", 0),
    6: ("doc_string", 2),
    7: ("graph", 2),
    8: ("opset_import", 2),
    14: ("metadata_props", 2),
    20: ("training_info", 2),
    25: ("functions", 2),
    26: ("configuration", 2),
}
_FIXED: Final = {1: 8, 5: 4}  # wire type: bytes
_CONTROL: Final = re.compile(rb"[\0-\x08\x0b\x0e-\x1f]")  # no byte of a text


@dataclass(frozen=True, slots=True)
class Field:
    """One field at the top of a protobuf message: its number, wire type, and bytes as declared and as present."""

    number: int
    wire: int
    declared: int
    present: int
    state: Literal["whole", "cut", "invalid"] = "whole"

    @property
    def name(self) -> str:
        """The field's name in onnx.proto, or its number."""
        return _FIELDS[self.number][0] if self.number in _FIELDS else f"field {self.number}"

    @property
    def fits(self) -> bool:
        """Whether ModelProto has this field with this wire type."""
        return self.number in _FIELDS and _FIELDS[self.number][1] == self.wire


def describe(data: bytes) -> str:
    """Say what `data`, which is no valid ModelProto with a graph, is: "it is …", "it is cut off: …"."""
    if not data:
        return "it is empty: copy or download it again"
    for offset, magic, description in _SIGNATURES:
        if data[offset : offset + len(magic)] == magic:
            return f"it is {description}"
    text = _as_text(data)
    if text is not None:
        return text
    fields = list(walk(data))
    return _as_message(fields) or "it is not an ONNX model: its bytes are no protobuf message of that kind"


def is_text(data: bytes) -> bool:
    """Whether a file looks like text."""
    return _as_text(data) is not None


def _as_text(data: bytes) -> str | None:
    """The sentence for a text file, None if it is binary."""
    head = data[:4096]
    if _CONTROL.search(head):
        return None
    try:
        # the last character may be cut in two
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=len(data) <= len(head))
    except UnicodeDecodeError:
        return None
    start = text.lstrip("\ufeff \t\r\n")
    if start[:20].lower().startswith(("<!doctype html", "<html")):
        return "it is a web page, not a model: the download gave its page instead of the file"
    first = start.splitlines()[0][:60] if start else ""
    return f"it is a text file, not an ONNX model; it begins with {first!r}"


def _as_message(fields: list[Field]) -> str | None:
    """The sentence for what begins like a ModelProto, None if it does not."""
    last = fields[-1]
    if not all(field.fits for field in fields if field.state != "invalid"):
        return None
    if last.state == "cut" and last.fits:
        if last.declared >= 2 * GIB:
            return (
                f"its {last.name} declares {last.declared:,} bytes ({last.present:,} are there): protobuf cannot hold "
                "2 GiB or more; save the model with its weights as external data"
            )
        missing = f": its {last.name} needs {last.declared:,} bytes and only {last.present:,} are there"
        where = missing if last.declared else f" at the beginning of its {last.name}"
        return f"it is cut off{where}; copy or download it again"
    if last.state == "whole":
        names = [field.name for field in fields]
        if "graph" not in names:
            return f"it has no graph, only {', '.join(dict.fromkeys(names))}: it is cut off or no ONNX model"
        if sum(field.declared for field in fields) == 0:
            return "it is not an ONNX model, only an empty graph"
        return "it is damaged inside, or its subgraphs are nested deeper than protobuf's 100 levels"
    if len(fields) > 1:
        return f"it is damaged after its {fields[-2].name}"
    return None


def walk(data: bytes) -> Iterator[Field]:
    """The fields at the top of a protobuf message, as far as they can be told apart; the last may be cut or invalid."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if key < 0 or number == 0 or wire not in (0, 1, 2, 5):
            yield Field(max(number, 0), wire, 0, 0, "invalid")
            return
        if wire == 0:
            value, end = _varint(data, position)
            if value < 0:
                yield Field(number, wire, end - position + 1, end - position, "cut")
                return
            yield Field(number, wire, end - position, end - position)
            position = end
            continue
        if wire == 2:
            declared, position = _varint(data, position)
        else:
            declared = _FIXED[wire]
        present = len(data) - position
        if declared < 0 or present < declared:
            yield Field(number, wire, max(declared, 0), present, "cut")
            return
        yield Field(number, wire, declared, declared)
        position += declared


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """(value, position behind it) of a base-128 number; the value is -1 if it is cut off or longer than 64 bits."""
    value = 0
    for count, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, position + count + 1
    return -1, len(data)
