"""Sample files of formats, which are kept in archives beside the tests that use them."""

import io
import lzma
import tarfile
from functools import cache
from pathlib import Path

FORMATS = Path(__file__).parents[1] / "formats"


@cache
def samples(archive: str) -> dict[str, bytes]:
    """{name: bytes} of the files in an archive below tests/formats, such as "ort/pairs"; folders of names left out."""
    data = lzma.decompress((FORMATS / f"{archive}.tar.xz").read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = {Path(entry.name).name: tar.extractfile(entry) for entry in tar if entry.isfile()}
        return {name: file.read() for name, file in files.items() if file is not None}


@cache
def ort_pairs() -> dict[str, tuple[bytes, bytes]]:
    """{name: (a model of onnxruntime's own tests, what onnxruntime 1.31.1 makes of it in ORT format)}."""
    files = {**samples("ort/pairs"), **samples("ort/pairs_scan_conv"), **samples("ort/pair_loop")}
    names = sorted(name.removesuffix(".ort") for name in files if name.endswith(".ort"))
    return {name: (files[f"{name}.onnx"], files[f"{name}.ort"]) for name in names}
