"""A client that calls whatever it likes: 10,000 random calls change nothing that it may not."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import onnxlab
from onnxlab.mcp.answers import MOST, PICTURE, RefusedCall
from onnxlab.mcp.call import Right
from onnxlab.mcp.tools import TOOLS, answer
from onnxlab.model.opening import EXAMPLE

CALLS = 10_000
PATHS = (
    "/etc/passwd",
    "../../x",
    "C:\\x",
    "~/.ssh/id_rsa",
    "file:///etc/passwd",
    "\x00",
    "",
    "x" * 5000,
    "digits.onnx",
)
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 70, 1e308, float("nan"), "", "*", "[" * 400, {}, [], [[]], {"a": {"b": []}},
    "__import__('os').system('touch pwned')", "'); import os; os.remove('digits.onnx'); ('", *PATHS,
)  # fmt: skip


def payload(random_numbers: random.Random, depth: int = 0) -> Any:
    """Something that may be an argument, and mostly is none."""
    kind = random_numbers.random()
    if kind < 0.5 or depth > 3:
        return random_numbers.choice(ODD)
    if kind < 0.7:
        return random_numbers.choice(
            ["/stem/conv/Conv", "stem/conv_out", 32, "set_attribute", "node", "model", "value"]
        )
    if kind < 0.85:
        return [payload(random_numbers, depth + 1) for _ in range(random_numbers.randrange(4))]
    return {str(payload(random_numbers, depth + 2)): payload(random_numbers, depth + 1) for _ in range(3)}


def arguments(random_numbers: random.Random, tool: str) -> Any:
    """Arguments whose names mostly fit."""
    if random_numbers.random() < 0.05:
        return payload(random_numbers)
    names = [*(TOOLS[tool].taken() if tool in TOOLS else ()), "path", "code"]
    return {name: payload(random_numbers) for name in names if random_numbers.random() < 0.5}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("allowed", [("look",), ("look", "edit")])
def test_random_calls_change_nothing_that_they_may_not(
    allowed: tuple[Right, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "digits.onnx"
    path.write_bytes(EXAMPLE.read_bytes())
    model, rights, answered = onnxlab.load(EXAMPLE.read_bytes()), frozenset(allowed), 0
    looked, before = onnxlab.load(path), path.read_bytes()
    contents, random_numbers = model.proto.SerializeToString(), random.Random(23)
    longest = 0
    cheap = [name for name in TOOLS if name not in ("run", "picture")]
    for number in range(CALLS):
        tool = random_numbers.choice(cheap if number % 200 else ["run", "picture", "eval", "__class__"])
        try:
            text = answer({"digits": model, "file": looked}, rights, tool, arguments(random_numbers, tool))
        except RefusedCall as refusal:
            longest = max(longest, len(str(refusal)))
            continue
        answered += 1
        assert len(text) <= PICTURE
        json.loads(text, parse_constant=pytest.fail)
    assert longest <= MOST
    assert answered > CALLS / 50, "some calls are answered: others test nothing"
    assert path.read_bytes() == before
    assert {name for name in files_of(tmp_path) if not name.startswith(".")} == {"digits.onnx"}
    if "edit" in rights:
        while model.history.labels:
            model.undo()
    assert model.proto.SerializeToString() == contents, "what was allowed can be undone, what was not was not done"
    if "edit" not in rights:
        assert files_of(tmp_path).keys() == {"digits.onnx"}, "not even a journal"


def test_edits_that_fit_are_undone_byte_for_byte() -> None:
    model = onnxlab.load()
    contents, random_numbers = model.proto.SerializeToString(), random.Random(5)
    nodes = [node.name for node in model.nodes]
    edits = ("rename_node", "remove_nodes", "duplicate_nodes", "set_attribute", "clear_attribute", "set_operator")
    steps = 0
    for number in range(300):
        parameters: dict[str, Any] = {
            "rename_node": {"name": f"n{number}"}, "set_attribute": {"name": "axis", "value": 1},
            "clear_attribute": {"name": "strides"}, "set_operator": {"op_type": "Relu"},
        }.get(edit := random_numbers.choice(edits), {})  # fmt: skip
        call = {"edit": edit, "on": "node", "subject": [random_numbers.choice(nodes)], "parameters": parameters}
        try:
            answer({"m": model}, frozenset({"look", "edit"}), "change", call)
        except RefusedCall:
            continue
        steps += 1
    assert steps > 20
    assert len(model.history) == steps, "each is one step"
    while model.history.labels:
        model.undo()
    assert model.proto.SerializeToString() == contents
