"""Conversion of torch's files by torch itself, in a process of its own: loading them runs code that is in them.

This process never imports torch. The interpreter that runs it is the one that ONNXLAB_TORCH_PYTHON names, or this one.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.formats.base.format import Content
from onnxlab.printable import printable

VARIABLE: Final = "ONNXLAB_TORCH_PYTHON"
"""The variable of the environment with the path of an interpreter that has torch."""

_CHILD: Final = Path(__file__).with_name("torch_child.py")
_TYPE: Final = re.compile(r"\s*(\w+)\s*\[([\w\s,]*)\]\s*")
_INSTALL: Final = "pip install 'onnxlab[torch]'"


def converted(content: Content, kind: str, inputs: Sequence[Any]) -> bytes:
    """The bytes of an ONNX file that torch makes of one of its own.

    Args:
        content: the content of the file.
        kind: "pt2" for an archive of torch.export, "script" for TorchScript.
        inputs: for TorchScript, the type of each argument, such as "float32[N,3,224,224]", or an array.

    Raises:
        LoadError: torch is missing, or cannot convert the file; the message says why.
    """
    with tempfile.TemporaryDirectory(prefix="onnxlab-") as name:
        folder = Path(name)
        source = content.path
        if source is None:
            source = folder / f"source{'.pt2' if kind == 'pt2' else '.pt'}"
            source.write_bytes(content.data)
        entries = [_entry(folder, place, value) for place, value in enumerate(inputs)]
        request = {"kind": kind, "source": str(source), "inputs": entries}
        (folder / "request.json").write_text(json.dumps(request), "utf-8")
        output = _run(folder)
        _check(_answer(folder), output)
        try:
            return (folder / "model.onnx").read_bytes()
        except OSError:
            raise LoadError(f"torch wrote no model of it{output}") from None


def missing_torch() -> str:
    """The reason why torch cannot be used, "" where an interpreter seems to have it; imports nothing."""
    if os.environ.get(VARIABLE) or importlib.util.find_spec("torch") is not None:
        return ""
    return f"torch converts it, and is not installed: {_INSTALL}, or name an interpreter that has it in {VARIABLE}."


def _entry(folder: Path, place: int, value: Any) -> Mapping[str, Any]:
    """An input in the child's request."""
    if isinstance(value, str):
        match = _TYPE.fullmatch(value)
        if match is None:
            raise LoadError(f"the input {value!r:.80} is no type such as 'float32[N,3,224,224]'")
        try:
            dtype = dtypes.name(dtypes.parse(match[1]))
        except (ValueError, TypeError, KeyError) as error:
            raise LoadError(f"the input {value!r:.80} has no type that is known: {error}") from None
        words = [word.strip() for word in match[2].split(",") if word.strip()]
        return {"dtype": dtype, "dims": [int(word) if word.isdigit() else word for word in words]}
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise LoadError(f"the input {place} is a {type(value).__name__}; give an array, or a type such as 'float32[3]'")
    np.save(folder / f"{place}.npy", array, allow_pickle=False)
    return {"file": f"{place}.npy", "dims": list(array.shape)}


def _run(folder: Path) -> str:
    """Run the child; returns the last line of its error output, for messages. An interrupt ends the child too."""
    python = os.environ.get(VARIABLE) or sys.executable
    # -P: modules beside the script must not shadow packages
    command = [python, "-P", str(_CHILD), str(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise LoadError(f"{python} cannot be started to convert it: {error.strerror or error}") from None
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    ended = f" (exit code {done.returncode})" if done.returncode else ""
    return f"{ended}: {printable(lines[-1])[:300]}" if lines and done.returncode else ended


def _answer(folder: Path) -> Mapping[str, Any]:
    """The child's answer, empty where it gave none."""
    try:
        answer = json.loads((folder / "answer.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _check(answer: Mapping[str, Any], output: str) -> None:
    """Raise LoadError where the child refused, or ended without an answer."""
    if "missing" in answer:
        raise LoadError(
            f"torch converts it, and {printable(str(answer['missing']))[:40]} is not installed: {_INSTALL}, or name "
            f"an interpreter that has it in {VARIABLE}"
        )
    if "error" in answer:
        raise LoadError(f"torch does not convert it: {printable(str(answer['error']))[:600]}")
    if "torch" not in answer:
        raise LoadError(f"torch ended without an answer{output}")
