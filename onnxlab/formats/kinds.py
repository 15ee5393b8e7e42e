"""Kinds of files, by their names and by how they begin: what is written under a name, and what it may replace."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onnxlab.errors import SaveError
from onnxlab.formats.base.format import Format

HEAD = 1 << 16
"""Bytes at the beginning of a file by which its kind is recognized."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that is made of models, apart from models.

    Attributes:
        name: the name of the kind in messages.
        suffixes: suffixes of its files.
        fits: a function that tells whether a file that begins with these bytes is of the kind.
    """

    name: str
    suffixes: tuple[str, ...]
    fits: Callable[[bytes], bool]


def _is_markup(tag: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" and tag in head.lower()


SVG = FileKind("an SVG picture", (".svg",), _is_markup(b"<svg"))
PNG = FileKind("a PNG picture", (".png",), lambda head: head.startswith(b"\x89PNG\r\n"))
PAGE = FileKind("an HTML page", (".html", ".htm"), _is_markup(b"<html"))
RECEIPT = FileKind("a receipt", (".json",), lambda head: b"onnxlab/receipt/" in head)
SARIF = FileKind("a SARIF log", (".sarif", ".json"), lambda head: b"sarif-2" in head)
REPORT = FileKind("a report", (".md",), lambda head: head.startswith(b"# onnxlab report"))
ARRAYS = FileKind("arrays", (".npz",), lambda head: head.startswith((b"PK\x03\x04", b"PK\x05\x06")))

_MADE_OTHERWISE = {
    ".svg": "model.to_svg(path) draws it",
    ".png": "model.to_png(path) draws it",
    ".html": "model.to_html(path) writes a page to explore",
    ".htm": "model.to_html(path) writes a page to explore",
    ".py": "model.history.to_python() writes the edits as a script",
    ".txt": "models as text are .textproto, .json or .onnxtxt",
    ".pdf": "model.to_svg(path) draws it",
    ".safetensors": "model.files.save_weights(path) writes the weights",
    ".npz": "model.files.save_weights(path) writes the weights",
}
_OTHERS = frozenset((
    ".gguf", ".ggml", ".pt", ".pth", ".pt2", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy",
    ".mat", ".h5", ".hdf5", ".keras", ".tflite", ".mlmodel", ".mlpackage", ".mar", ".engine", ".plan", ".trt", ".xml",
    ".yaml", ".yml", ".toml", ".csv", ".tsv", ".md", ".rst", ".ipynb", ".dot", ".gv", ".ps", ".eps", ".jpg", ".jpeg",
    ".gif", ".webp", ".bmp", ".zip", ".gz", ".tgz", ".xz", ".bz2", ".zst", ".7z", ".tar", ".js", ".css",
))  # fmt: skip
"""Suffixes of formats that no model is written in."""


def refuse_for_a_model(path: Path, form: Format) -> None:
    """Raise SaveError where a file's suffix belongs to another format than the one that is written."""
    suffix = path.suffix.lower()
    if suffix in form.suffixes:
        return
    if suffix in _MADE_OTHERWISE or suffix in _OTHERS:
        hint = _MADE_OTHERWISE.get(suffix, "give a name that ends in .onnx, or in .textproto, .json, .onnxtxt for text")
        raise SaveError(f"cannot save to {path}: {suffix} is the suffix of another format than ONNX; {hint}")
