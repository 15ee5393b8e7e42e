"""The fifteen models of tests/models, kept in little space: structure, and a seed in place of random weights.

They were exported from torch 2.13 and skl2onnx or written by hand, with random weights, tiny widths and full
depth. `<name>.onnx` is kept whole. `<name>.onnx.xz` is a ModelProto, compressed, in which `pack` replaced the
bytes of each tensor of random weights by a `Recipe`; `rebuild` draws them again, the same on every machine.
Integer tensors, scales, biases, tables and whatever compresses well are kept as they were.

    python -m tests.support.packed FOLDER       # pack FOLDER/<name>/model.onnx of each model here anew
"""

import hashlib
import lzma
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

STORE = Path(__file__).resolve().parents[1] / "models"
NAMES = tuple(sorted(path.name.split(".")[0] for path in STORE.glob("*.onnx*")))

MAGIC = b"weights drawn from "
SMALLEST = 1024  # bytes; smaller tensors are kept
# torch's initial weights shrink the signal of a deep net without skip connections until nothing of the input
# is left in the output; these factors keep it.
GAIN = {"mobilenet_fp16": 2.4}
DTYPES: dict[int, str] = {onnx.TensorProto.FLOAT: "<f4", onnx.TensorProto.FLOAT16: "<f2", onnx.TensorProto.INT8: "i1"}


@dataclass(frozen=True)
class Recipe:
    """The source of random weights: kind "u" is uniform, "n" normal, "i" uniform over integers.

    Attributes:
        seed: of NumPy's RandomState, whose stream is frozen for good.
        mean, spread: of a normal its standard deviation, of the others half the width.
    """

    kind: str
    seed: int
    mean: float
    spread: float

    FORMAT = "<cIdd"

    def encode(self) -> bytes:
        return MAGIC + struct.pack(self.FORMAT, self.kind.encode(), self.seed, self.mean, self.spread)

    @classmethod
    def decode(cls, raw: bytes) -> "Recipe":
        kind, seed, mean, spread = struct.unpack(cls.FORMAT, raw.removeprefix(MAGIC))
        return cls(kind.decode(), seed, mean, spread)

    @classmethod
    def of(cls, raw: bytes, dtype: str) -> "Recipe | None":
        """The recipe in place of `raw`, or None where that saves nothing or the numbers mean something."""
        if len(raw) < SMALLEST or len(lzma.compress(raw)) < 0.8 * len(raw):
            return None
        values = np.frombuffer(raw, dtype).astype(np.float64)
        mean, deviation = values.mean(), values.std()
        flatness = ((values - mean) ** 4).mean() / deviation**4  # 1.8 where uniform, 3 where normal
        middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
        seed = zlib.crc32(raw)  # so that equal tensors stay equal
        if dtype == "i1":
            return cls("i", seed, round(middle), round(half))
        if flatness < 2.2:
            return cls("u", seed, float(f"{middle:.1g}"), float(f"{half:.4g}"))
        centered = abs(mean) < 5 * deviation / values.size**0.5
        return cls("n", seed, 0.0 if centered else float(f"{mean:.3g}"), float(f"{deviation:.3g}"))

    def draw(self, count: int, dtype: str) -> bytes:
        """`count` little-endian numbers, by exact operations only: logarithms differ between machines."""
        random = np.random.RandomState(self.seed)
        if self.kind == "i":
            low, high = int(self.mean - self.spread), int(self.mean + self.spread)
            return random.randint(low, high + 1, count).astype(dtype).tobytes()
        if self.kind == "u":
            unit = 2 * random.random_sample(count) - 1
        else:  # twelve uniform numbers add up to one that is normal as far as 6 deviations
            unit = np.sum([random.random_sample(count) for _ in range(12)], axis=0) - 6
        return (self.mean + self.spread * unit).astype(dtype).tobytes()


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every TensorProto of the main graph, the subgraphs and the functions, in file order."""
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    while pending:
        graph = pending.pop(0)
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                pending += [attribute.g] if attribute.HasField("g") else attribute.graphs


def pack(source: Path) -> bytes:
    """The stored form of the model file `source` and of its external data."""
    model = onnx.load(source, load_external_data=False)
    gain = GAIN.get(source.parent.name, 1)
    for tensor in tensors(model):
        raw = read_external(tensor, source.parent) if tensor.external_data else tensor.raw_data
        recipe = Recipe.of(raw, DTYPES[tensor.data_type]) if tensor.data_type in DTYPES else None
        if recipe:
            tensor.raw_data = replace(recipe, spread=recipe.spread * gain).encode()
        elif tensor.external_data:
            tensor.raw_data = raw
    return lzma.compress(model.SerializeToString(deterministic=True), preset=9 | lzma.PRESET_EXTREME)


def unpack(stored: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The bytes of the model, and {location: bytes} of its external data."""
    model = onnx.ModelProto()
    model.ParseFromString(lzma.decompress(stored))
    external: dict[str, bytearray] = {}
    for tensor in tensors(model):
        if tensor.raw_data.startswith(MAGIC):
            count = int(np.prod(tensor.dims))
            tensor.raw_data = Recipe.decode(tensor.raw_data).draw(count, DTYPES[tensor.data_type])
        if tensor.external_data:
            write_external(tensor, external)
    return model.SerializeToString(deterministic=True), {name: bytes(data) for name, data in external.items()}


def read_external(tensor: onnx.TensorProto, folder: Path) -> bytes:
    entry = {pair.key: pair.value for pair in tensor.external_data}
    data = (folder / entry["location"]).read_bytes()
    return data[int(entry["offset"]) : int(entry["offset"]) + int(entry["length"])]


def write_external(tensor: onnx.TensorProto, files: dict[str, bytearray]) -> None:
    """Move the tensor's bytes to where its `external_data` says that they are."""
    entry = {pair.key: pair.value for pair in tensor.external_data}
    data = files.setdefault(entry["location"], bytearray())
    start, end = int(entry["offset"]), int(entry["offset"]) + int(entry["length"])
    data.extend(bytes(max(0, end - len(data))))
    data[start:end] = tensor.raw_data
    tensor.ClearField("raw_data")


def rebuild(name: str, folder: Path) -> Path:
    """Make `folder`/<name>/model.onnx unless it exists, and return its path."""
    (source,) = STORE.glob(f"{name}.onnx*")
    if source.suffix == ".onnx":
        return source
    stored, code = source.read_bytes(), Path(__file__).read_bytes()
    digest = hashlib.sha256(stored + code).hexdigest()
    target = folder / name
    made_from, model = target / "made-from", target / "model.onnx"
    if not (made_from.is_file() and made_from.read_text() == digest):
        target.mkdir(parents=True, exist_ok=True)
        data, external = unpack(stored)
        for location, content in external.items():
            write_whole(target / location, content)
        write_whole(model, data)
        write_whole(made_from, digest.encode())
    return model


def write_whole(path: Path, content: bytes) -> None:
    """Write all or nothing: several test workers may rebuild one model at the same time."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, path)


if __name__ == "__main__":
    for model_name in NAMES:
        (kept,) = STORE.glob(f"{model_name}.onnx*")
        if kept.suffix == ".xz":
            kept.write_bytes(pack(Path(sys.argv[1]) / model_name / "model.onnx"))
