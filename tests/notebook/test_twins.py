"""protocol.py and protocol.ts say the same: names of methods, of their parameters, of events and of their fields."""

import re
from pathlib import Path

import onnxlab
from onnxlab.notebook.edits.edit_commands import GESTURES
from onnxlab.notebook.protocol import messages
from tests.notebook.conftest import Page

SOURCES = Path(__file__).parents[2] / "widgets" / "src"
TWIN = (SOURCES / "kernel" / "protocol.ts").read_text(encoding="utf-8")


def braces(text: str, start: int) -> str:
    """What stands between the brace at `start` and the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1 : at]
    raise AssertionError("a brace is not closed")


def fields(interface: str) -> dict[str, bool]:
    """{field: whether it may be left out} of an interface of the twin."""
    found = re.search(rf"export interface {interface}\b[^{{]*", TWIN)
    assert found, f"protocol.ts has no {interface}"
    body = re.sub(r"/\*.*?\*/", "", braces(TWIN, found.end()), flags=re.DOTALL)
    return {name: bool(optional) for name, optional in re.findall(r"^  (\w+)(\?)?:", body, re.MULTILINE)}


def methods() -> dict[str, dict[str, bool]]:
    """{method: {parameter: whether it may be left out}} of the twin."""
    body = braces(TWIN, TWIN.index("export interface Methods {") + len("export interface Methods "))
    found: dict[str, dict[str, bool]] = {}
    for name, parameters in re.findall(r"^  (\w+): \[(\{[^}]*\}|Record<string, never>),", body, re.MULTILINE):
        pairs = re.findall(r"(\w+)(\?)?:", re.sub(r"<[^>]*>", "", parameters))
        found[name] = {key: bool(optional) for key, optional in pairs}
    return found


def test_methods_and_parameters_agree() -> None:
    ours = {name: {key: not spec.required for key, spec in each.items()} for name, each in messages.METHODS.items()}
    theirs = methods()
    assert theirs.keys() == ours.keys()
    for name, parameters in ours.items():
        assert theirs[name].keys() == parameters.keys(), name
    assert f"export const PROTOCOL = {messages.PROTOCOL};" in TWIN


def test_events_and_answers_have_the_fields_that_the_twin_declares(
    page: Page, model: onnxlab.Model, tmp_path: Path
) -> None:
    conv, value = model.nodes["/stem/conv"].id, model.value("r").id
    model.save(tmp_path / "m.onnx")
    answers = {
        "Hello": page.ask("hello"),
        "Snapshot": page.ask("snapshot"),
        "NodeInfo": page.ask("inspect", node=conv),
        "Documentation": page.ask("doc", node=conv),
        "ValueInfo": page.ask("value", value=value),
        "Targets": page.ask("targets", value=value, nodes=[conv]),
        "OperatorInfo": page.ask("operators")["operators"][0],
        "Edited": page.ask("rename_node", node=conv, name="first"),
        "About": page.ask("about"),
        "Elements": page.ask("elements", value=model.value("w").id),
        "Steps": page.ask("history"),
        "Unsaved": page.ask("unsaved"),
        "RunResult": page.ask("run", nodes=None),
    }
    answers |= {f"{event['event'].capitalize()}Event": event for event in page.events}
    model.files.on_save[0]()
    answers["HistoryEvent"] = page.events[-1]
    answers["History"] = page.events[-1]["history"]
    answers["Statistics"] = answers["RunResult"]["values"][0]
    for interface, answer in answers.items():
        declared = fields(interface)
        assert set(answer) <= set(declared), interface
        assert {name for name, optional in declared.items() if not optional} <= set(answer), interface
    names = set(re.findall(r'event: "(\w+)"', TWIN))
    assert {event["event"] for event in page.events} <= names


def test_every_gesture_is_on_the_page() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.ts*"))
    assert [name for name in GESTURES if f'"{name}"' not in sources] == []
