"""Statements of torch on its files: a script for an interpreter that has torch, which imports nothing of onnxlab.

    python tests/support/torch_truth.py SAMPLES TARGET

SAMPLES has module.pt2, traced.pt, scripted.pt and loop.pt. Into TARGET go archives of torch.export of more modules,
`programs.json` with the calls and edges of every ExportedProgram, and `outputs.npz` with what the files compute:
`<name>/in0`, `<name>/out0` and so on.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

Tensors = tuple[Any, ...]


class Several(torch.nn.Module):
    """Operators with several results, some of them unread."""

    def forward(self, x: Any) -> Any:
        values, places = torch.topk(x, 2, dim=1)
        first, _, third = torch.split(x, [1, 2, 3], dim=1)
        return values + first, places, third.sum(1)


class Attention(torch.nn.Module):
    """Linear layers, views, a constant and a weight that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(8, 24)
        self.norm = torch.nn.LayerNorm(8)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x: Any) -> Any:
        query, key, value = self.project(self.norm(x)).chunk(3, -1)
        mixed = torch.softmax(query @ key.transpose(1, 2) * self.scale, -1) @ value
        return self.norm(x + mixed) + torch.ones(8)


class Branch(torch.nn.Module):
    """A branch, whose bodies are graphs of their own."""

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


def exported(samples: Path, target: Path) -> Iterator[tuple[str, Any, Tensors]]:
    """(name, program, inputs); archives are in the target."""
    torch.manual_seed(0)
    shutil.copy(samples / "module.pt2", target / "module.pt2")
    yield "module", torch.export.load(target / "module.pt2"), (torch.randn(2, 3, 8, 8),)
    rows = torch.export.Dim("rows", min=2)
    for name, module, argument, dynamic in (
        ("several", Several(), torch.randn(4, 6), {0: rows}),
        ("attention", Attention().eval(), torch.randn(2, 5, 8), {1: rows}),
        ("branch", Branch(), torch.randn(3), None),
    ):
        program = torch.export.export(module, (argument,), dynamic_shapes=None if dynamic is None else (dynamic,))
        torch.export.save(program, target / f"{name}.pt2")
        yield name, program, (argument,)


def calls(program: Any) -> list[dict[str, Any]]:
    """The calls of a program with the values that they read; taking one of several results is no call of its own."""
    getitems = {
        node.name for node in program.graph.nodes if node.op == "call_function" and "getitem" in str(node.target)
    }
    return [
        {
            "target": str(node.target),
            "reads": sorted(source.name for source in node.all_input_nodes if source.op != "get_attr"),
            "makes": sorted(user.name for user in node.users if user.name in getitems) or [node.name],
        }
        for node in program.graph.nodes
        if node.op == "call_function" and node.name not in getitems
    ]


def main(samples: Path, target: Path) -> None:
    """Write everything."""
    held: dict[str, Any] = {}
    programs = {}

    def keep(name: str, arguments: Tensors, answer: Any) -> None:
        results = answer if isinstance(answer, (tuple, list)) else (answer,)
        held.update({f"{name}/in{place}": np.asarray(array) for place, array in enumerate(arguments)})
        held.update({f"{name}/out{place}": result.detach().numpy() for place, result in enumerate(results)})

    for name, program, arguments in exported(samples, target):
        programs[name] = calls(program)
        keep(name, arguments, program.module()(*arguments))
    image = torch.randn(2, 3, 8, 8)
    for name, arguments in (("traced", (image,)), ("scripted", (image,)), ("loop", (torch.randn(3), 4))):
        module = torch.jit.load(samples / f"{name}.pt", map_location="cpu").eval()
        keep(name, arguments, module(*arguments))
    (target / "programs.json").write_text(json.dumps(programs, indent=1), "utf-8")
    np.savez(target / "outputs.npz", **held)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
