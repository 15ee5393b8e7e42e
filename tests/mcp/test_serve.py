"""Models that a process serves: access, response times, and the end of serving."""

import json
import os
import stat
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

import onnxlab
from onnxlab.errors import OnnxlabError
from onnxlab.mcp import places
from onnxlab.mcp.answers import RefusedCall
from onnxlab.mcp.client import Served
from onnxlab.model.opening import EXAMPLE

CONV = "/stem/conv/Conv"


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of the test's own, with a path that is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="run") as place:
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        yield Path(place) / "onnxlab"


def rename(name: str) -> dict[str, Any]:
    return {"edit": "rename_node", "on": "node", "subject": [CONV], "parameters": {"name": name}}


def test_only_this_user_reaches_the_socket(runtime: Path) -> None:
    mask = os.umask(0)
    try:
        serving = onnxlab.serve(onnxlab.load())
    finally:
        os.umask(mask)
    with serving:
        modes = {path.suffix: stat.S_IMODE(path.lstat().st_mode) for path in runtime.iterdir()}
        assert modes == {".sock": 0o600, ".json": 0o600}
        assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
        ((_, record),) = places.records()
        with pytest.raises(Exception, match="digest"):
            Client(record.address, authkey=b"guessed")
        assert json.loads(Served(frozenset({"look"})).call("models", {}))["rows"][0]["model"] == "digits"
    assert list(runtime.iterdir()) == [], "nothing is left behind"


def test_serving_ends_quickly_whatever_its_thread_is_at(runtime: Path) -> None:
    model, client = onnxlab.load(), Served(frozenset({"look"}))
    for number in range(60):
        with onnxlab.serve(model):
            if number % 2:
                client.call("models", {})
    assert list(runtime.iterdir()) == []
    until = time.monotonic() + 20
    while time.monotonic() < until and any(thread.name == "onnxlab serve" for thread in threading.enumerate()):
        time.sleep(0.01)
    assert not any(thread.name == "onnxlab serve" for thread in threading.enumerate()), "no thread is left behind"


def test_a_folder_of_another_user_is_not_used(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(OnnxlabError, match="not a folder of this user"):
        onnxlab.serve(onnxlab.load())


def test_rights_are_those_of_both_sides() -> None:
    model = onnxlab.load()
    with onnxlab.serve(model):
        with pytest.raises(RefusedCall, match="with --edit"):
            Served(frozenset({"look"})).call("change", rename("first"))
        Served(frozenset({"look", "edit"})).call("change", rename("first"))
        assert model.nodes[0].name == "first"
    with onnxlab.serve(model, edit=False), pytest.raises(RefusedCall, match="with --edit"):
        Served(frozenset({"look", "edit"})).call("change", {**rename("second"), "subject": ["first"]})


def test_an_edit_reaches_open_views_at_once() -> None:
    model = onnxlab.load()
    view = onnxlab.show(model)
    sent: list[Any] = []
    view.send = lambda content, buffers=None: sent.append(content)
    with onnxlab.serve(model):
        Served(frozenset({"look", "edit"})).call("change", rename("first"))
    commits = [content for content in sent if content.get("event") == "commit"]
    assert commits[0]["python"] == f"model.nodes['{CONV}'].name = 'first'"
    view.close()


def test_several_models_are_told_apart() -> None:
    first, second = onnxlab.load(), onnxlab.load()
    with onnxlab.serve(first), onnxlab.serve(second) as other:
        assert other.name == "digits-2"
        client = Served(frozenset({"look"}))
        with pytest.raises(RefusedCall, match="several models are served"):
            client.call("summary", {})
        assert json.loads(client.call("summary", {"model": "digits-2"}))["edits"] == 0
        second.nodes[0].name = "renamed"
        assert json.loads(client.call("diff", {"other": "digits", "model": "digits-2"}))["total"] > 0
        with pytest.raises(OnnxlabError, match="another model is served as 'digits'"):
            onnxlab.serve(second, "digits")
    with pytest.raises(RefusedCall, match="no model is served"):
        Served(frozenset({"look"})).call("summary", {})


def test_it_answers_while_a_cell_runs() -> None:
    model, over = onnxlab.load(), threading.Event()
    client = Served(frozenset({"look", "edit"}))

    def cell() -> None:
        while not over.is_set():
            sum(range(1000))

    with onnxlab.serve(model):
        client.call("node", {"node": CONV})
        times = {}
        for state in ("idle", "busy"):
            thread = threading.Thread(target=cell)
            if state == "busy":
                thread.start()
            calls = [("node", {"node": CONV}), ("value", {"value": "stem/conv_out"}), ("change", rename(CONV + state))]
            calls += [("undo", {})]
            times[state] = []
            for tool, arguments in calls * 3:
                started = time.perf_counter()
                client.call(tool, arguments)
                times[state].append((time.perf_counter() - started) * 1000)
            if state == "busy":
                over.set()
                thread.join()
    for state, milliseconds in times.items():
        print(f"\n{state}: median {statistics.median(milliseconds):.1f} ms, most {max(milliseconds):.1f} ms a call")
    assert len(times["busy"]) == 12, "every call was answered before the cell ended"


def test_the_first_call_of_a_tool_takes_no_longer_than_the_others() -> None:
    code = (
        "import json, sys, onnxlab, threading\n"
        "from onnxlab.mcp.server import _server\n"
        "serving = onnxlab.serve(onnxlab.load())\n"
        "for thread in threading.enumerate():\n"
        "    if thread.name.endswith('first use'): thread.join()\n"
        "before = {name for name in sys.modules if name.startswith(('onnxlab', 'numba'))}\n"
        "for tool in ('run', 'picture', 'diff', 'check'):\n"
        "    reply = _server.reply(json.dumps({'tool': tool, 'arguments': {}}).encode(), frozenset({'look'}))\n"
        "    assert 'answer' in json.loads(reply), reply\n"
        "later = {name for name in sys.modules if name.startswith(('onnxlab', 'numba'))} - before\n"
        "print(len(later), sorted(later))\n"
    )
    environment = {**os.environ, "ONNXLAB_COMPILE": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout.split()[0]) <= 12, done.stdout  # operators that the small model does not have


@pytest.mark.slow
def test_a_real_assistant_over_standard_input(tmp_path: Path) -> None:
    """The client of the package mcp: listed tools, a read, an edit without and with permission."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    path = tmp_path / "digits.onnx"
    path.write_bytes(EXAMPLE.read_bytes())

    async def talk(options: list[str]) -> tuple[set[str], str, Any]:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "onnxlab", "mcp", str(path), *options], env=dict(os.environ)
        )
        async with stdio_client(command) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            look: Any = await session.call_tool("summary", {})
            edit = await session.call_tool("change", rename("first"))
            if "save" in tools:
                await session.call_tool("save", {})
            return tools, look.content[0].text, edit

    tools, look, edit = anyio.run(talk, [])
    assert {"summary", "find", "run"} <= tools
    assert not {"change", "save"} & tools
    assert json.loads(look)["operators"]["Conv"] == 6
    assert edit.is_error
    assert "with --edit" in edit.content[0].text
    assert path.read_bytes() == EXAMPLE.read_bytes()
    tools, _, edit = anyio.run(talk, ["--edit", "--save"])
    assert {"change", "save"} <= tools
    assert not edit.is_error
    assert onnxlab.load(path).nodes[0].name == "first"


@pytest.mark.slow
def test_a_process_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    model, client = onnxlab.load(), Served(frozenset({"look"}))
    with onnxlab.serve(model):
        client.call("summary", {})
        monkeypatch.setattr("onnxlab.mcp.client.PATIENCE", 2.0)
        with model.graph.lock, pytest.raises(RefusedCall, match="did not answer within"):
            client.call("summary", {})
        monkeypatch.undo()


def test_what_a_dead_process_left_is_cleared_away(runtime: Path) -> None:
    code = "import onnxlab, os; onnxlab.serve(onnxlab.load()); os._exit(0)"
    repository = str(Path(onnxlab.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": repository})
    assert [path.suffix for path in runtime.glob("*.json")] == [".json"]
    with pytest.raises(RefusedCall, match="no model is served"):
        Served(frozenset({"look"})).call("summary", {})
    assert list(runtime.glob("*.json")) == []
