"""Ends of commands: each exit code, pipes that close, limits of time and memory, faults, colors."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab import cli, limits
from onnxlab.cli.base import deadline, exits
from onnxlab.errors import OnnxlabError

Capture = pytest.CaptureFixture[str]
MAIN = [sys.executable, "-m", "onnxlab"]


@pytest.fixture
def endless(tmp_path: Path) -> str:
    """A loop of 2**60 iterations."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[1] x) => (float[1] y) {
        n = Constant <value_int = 1152921504606846976> ()
        c = Constant <value = bool {1}> ()
        y = Loop (n, c, x) <body = b (int64 i, bool k, float[1] a) => (bool k2, float[1] a2) {
            k2 = Identity (k)
            a2 = Identity (a)
        }>
    }"""
    path = tmp_path / "endless.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return str(path)


def test_no_words_print_the_help(capsys: Capture) -> None:
    assert cli.main([]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("usage: onnxlab")
    assert all(f"{code} " in printed for code in exits.MEANINGS)


@pytest.mark.parametrize("words", [["info"], ["run", "m.onnx", "--seed", "x"], ["svg", "m.onnx", "--limit", "many"]])
def test_a_wrong_command_line_is_said_in_json_too(words: list[str], capsys: Capture) -> None:
    assert cli.main([*words, "--json"]) == exits.USAGE
    printed = capsys.readouterr()
    assert json.loads(printed.out)["code"] == exits.USAGE
    assert printed.err.count("\n") == 1
    assert f"`onnxlab {words[0]} --help`" in printed.err


def test_every_error_has_a_code_that_is_explained() -> None:
    def subclasses(kind: type) -> set[type]:
        return {kind}.union(*map(subclasses, kind.__subclasses__()))

    for kind in subclasses(OnnxlabError):
        error = type(kind.__name__, (kind,), {"__init__": lambda self: None})()  # constructors differ
        assert exits.code_of(error) in exits.MEANINGS
    assert exits.code_of(KeyError()) == exits.code_of(MemoryError()) == exits.FAILED


@pytest.mark.slow
def test_an_interrupt_ends_with_130(endless: str) -> None:
    process = subprocess.Popen([*MAIN, "run", endless], stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.wait(60) == exits.INTERRUPTED
    assert process.stderr.read() == "onnxlab: interrupted\n"


@pytest.mark.slow
def test_a_pipe_that_closes_is_no_error(model: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*MAIN, "svg", model], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_timeout_ends_a_run(endless: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "GRACE", 600)  # what ends it is the interrupt, however busy the machine is
    assert cli.main(["run", endless, "--timeout", "0.5"]) == exits.FAILED
    assert capsys.readouterr().err == "onnxlab: it took longer than the 0.5 s of --timeout\n"
    assert cli.main(["run", endless, "--timeout", "0.5", "--json"]) == exits.FAILED
    assert json.loads(capsys.readouterr().out)["code"] == exits.FAILED


def test_timeout_interrupts_again_where_the_first_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait() -> None:
        with deadline.Deadline(0.1):
            with pytest.raises(KeyboardInterrupt):
                time.sleep(30)
            time.sleep(30)

    monkeypatch.setattr(deadline, "AGAIN", 0.5)
    monkeypatch.setattr(deadline, "GRACE", 600)
    with pytest.raises(deadline.TimedOut):
        wait()


def test_timeout_ends_what_cannot_be_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom onnxlab.cli.base import deadline\ndeadline.GRACE = 0.3\n"
        "def deaf():\n"
        "    end = time.monotonic() + 60\n"
        "    while time.monotonic() < end:\n"
        "        try: time.sleep(60)\n"
        "        except KeyboardInterrupt: pass\n"
        "with deadline.Deadline(0.3): deaf()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (exits.FAILED, "onnxlab: it took longer than the 0.3 s of --timeout\n")


def test_timeout_without_signals_to_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait() -> None:
        with deadline.Deadline(0.2):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                time.sleep(0.01)

    monkeypatch.delattr(signal, "pthread_kill")
    with pytest.raises(deadline.TimedOut):
        wait()


def test_limit_holds_a_run_to_so_many_bytes(tmp_path: Path, capsys: Capture) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[1000, 1000] x) => (float[1000, 1000] y) { y = Relu (x) }'
    path = tmp_path / "big.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    before = limits.available_memory()
    assert cli.main(["run", str(path), "--limit", "1MB"]) == exits.FAILED
    assert "the limit is 1.0 MB" in capsys.readouterr().err
    assert limits.available_memory() > before / 2
    assert cli.main(["run", str(path), "--limit", "1GiB"]) == 0


def test_debug_shows_where(model: str, capsys: Capture) -> None:
    assert cli.main(["info", "none.onnx", "--debug"]) == exits.UNREADABLE
    message = capsys.readouterr().err
    assert "Traceback" in message
    assert message.endswith("there is no such file\n")


def test_a_fault_is_one_line_that_says_so(model: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by \x1b[2J zero")

    monkeypatch.setattr("onnxlab.render.text.summary", fail)
    assert cli.main(["info", model]) == exits.FAILED
    message = capsys.readouterr().err
    assert message.startswith("onnxlab: a fault of onnxlab: ZeroDivisionError: by \\x1b[2J zero; `--debug`")
    assert message.count("\n") == 1


def test_colors_come_only_where_they_are_shown(
    model: str, broken: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    cli.main(["check", broken])
    assert "\x1b" not in capsys.readouterr().out
    cli.main(["check", broken, "--color", "always"])
    assert ": \x1b[31merror\x1b[0m: " in capsys.readouterr().out
    cli.main(["diff", model, broken, "--color", "always"])
    assert "\x1b[3" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    cli.main(["check", broken])
    assert "\x1b[31m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    cli.main(["check", broken])
    assert "\x1b" not in capsys.readouterr().out


def test_a_binary_file_is_not_written_to_a_terminal(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["convert", model, "-", "--format", "onnx"]) == exits.USAGE
    assert "redirect it" in capsys.readouterr().err


def test_external_data_is_piped_inside_of_the_model(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    example = onnxlab.load()
    example.save(tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").exists()
    assert cli.main(["simplify", str(tmp_path / "m.onnx"), "-o", "-", "-q"]) == 0
    piped = onnx.load_model_from_string(capfdbinary.readouterr().out)
    assert not any(tensor.external_data for tensor in piped.graph.initializer)
    assert sum(len(tensor.raw_data) for tensor in piped.graph.initializer) > 20_000


def test_edit_says_what_it_would_change_and_leaves_no_edits_behind(model: str, capsys: Capture) -> None:
    assert cli.main(["edit", model, "--dim", "x[1]=5", "--rename", "z=sum", "-e", "model.nodes[0].name = 'plus'"]) == 0
    printed = capsys.readouterr().out
    assert "plus" in printed
    assert "do not broadcast: 5 against 3" in printed
    assert onnxlab.load(model).files.recoverable == ()
    assert cli.main(["edit", model, "-e", "1 / 0"]) == exits.USAGE
    assert "statement 1 failed: ZeroDivisionError: division by zero; nothing was changed" in capsys.readouterr().err


def test_edit_runs_what_the_history_wrote(model: str, tmp_path: Path, capsys: Capture) -> None:
    opened = onnxlab.load(model)
    opened.nodes[0].name = "plus"
    (tmp_path / "edits.py").write_text(opened.history.to_python(), encoding="utf-8")
    target = tmp_path / "new.onnx"
    assert cli.main(["edit", model, "-o", str(target), str(tmp_path / "edits.py")]) == 0
    assert onnx.load(target).graph.node[0].name == "plus"
    assert cli.main(["edit", model, str(tmp_path / "none.py")]) == exits.USAGE


def test_sarif_is_what_code_hosts_read(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", broken, "--sarif", "out.sarif"]) == exits.DIFFERENT
    log = json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8"))
    (run,) = log["runs"]
    (result, *_) = run["results"]
    assert (log["version"], result["level"]) == ("2.1.0", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "broken.onnx"
    assert place["logicalLocations"][0]["name"] == "add"
    assert "broadcast" in result["message"]["text"]


def test_progress_shows_in_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from onnxlab.cli.base import progress

    monkeypatch.setattr(progress, "DELAY", 0.05)
    with progress.ticking("reading m.onnx"):
        time.sleep(0.3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.ticking("reading \x1bm.onnx"):
        time.sleep(0.3)
    printed = capsys.readouterr().err
    assert "\rreading \\x1bm.onnx … 0 s" in printed
    assert printed.endswith(f"\r{'':79}\r")
