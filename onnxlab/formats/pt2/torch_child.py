"""Convert a file of torch to ONNX: a script for an interpreter that has torch, which imports nothing of onnxlab.

    python torch_child.py FOLDER

The folder holds `request.json` and arrays; the script writes `model.onnx` and `answer.json` there. Loading a file of
torch runs code that is in it, so the script runs in a process of its own.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

OPSET = 20


class RefusedFile(Exception):
    """A file that cannot be converted as requested; the message says why."""


def main(folder: Path) -> None:
    """Answer the request in a folder."""
    request = json.loads((folder / "request.json").read_text("utf-8"))
    try:
        answer = {"torch": converted(folder, request)}
    except RefusedFile as error:
        answer = {"error": str(error)}
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        answer = {"missing": missing} if missing in ("torch", "onnxscript", "onnx") else {"error": _line(error)}
    except Exception as error:  # torch has errors of hundreds of kinds
        traceback.print_exc()
        answer = {"error": _line(error)}
    (folder / "answer.json").write_text(json.dumps(answer), "utf-8")


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:500]


def converted(folder: Path, request: dict[str, Any]) -> str:
    """Write model.onnx, and return torch's version."""
    import torch

    if request["kind"] == "pt2":
        program = torch.export.load(request["source"])
        exported = torch.onnx.export(program, dynamo=True, verbose=False)
        (folder / "model.onnx").write_bytes(exported.model_proto.SerializeToString())
    else:
        script(torch, folder, request)
    return str(torch.__version__)


def script(torch: Any, folder: Path, request: dict[str, Any]) -> None:
    """Convert TorchScript, which holds no shapes of inputs: the request has them."""
    module = torch.jit.load(request["source"], map_location="cpu").eval()
    formal = list(module.forward.schema.arguments)[1:]  # the first is the module
    least = sum(not argument.has_default_value() for argument in formal)
    entries = request["inputs"]
    if not least <= len(entries) <= len(formal):
        signature = ", ".join(f"{argument.name}: {argument.type}" for argument in formal)
        raise RefusedFile(
            f"it takes {len(formal)} inputs ({signature}), and a TorchScript file does not say their shapes: got "
            f"{len(entries)}, as in inputs=['float32[1,3,224,224]']"
        )
    named = [argument.name for argument in formal[: len(entries)]]
    arguments = tuple(
        example(torch, folder, entry, str(argument.type)) for entry, argument in zip(entries, formal, strict=False)
    )
    axes = {
        name: {place: dim for place, dim in enumerate(entry.get("dims", ())) if isinstance(dim, str)}
        for name, entry in zip(named, entries, strict=True)
    }
    torch.onnx.export(
        module,
        arguments,
        str(folder / "model.onnx"),
        dynamo=False,
        opset_version=OPSET,
        input_names=named,
        dynamic_axes={name: dims for name, dims in axes.items() if dims},
    )


def example(torch: Any, folder: Path, entry: dict[str, Any], kind: str) -> Any:
    """An argument to trace with: the array of the request, or a random one of the requested type."""
    if "file" in entry:
        import numpy as np

        argument = torch.from_numpy(np.load(folder / entry["file"], allow_pickle=False))
    else:
        dims = [2 + place if isinstance(dim, str) else dim for place, dim in enumerate(entry["dims"])]
        dtype = getattr(torch, entry["dtype"], None)
        if dtype is None:
            raise RefusedFile(f"torch has no type {entry['dtype']}")
        torch.manual_seed(0)
        argument = torch.randn(dims).to(dtype) if dtype.is_floating_point else torch.ones(dims, dtype=dtype)
    plain = {"int": int, "float": float, "bool": bool}.get(kind)
    return argument if plain is None else plain(argument)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
