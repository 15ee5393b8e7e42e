"""Forks while other threads import: the child has whole modules."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from onnxlab import forking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")

SLOW = "import time\nstarted = True\ntime.sleep(0.3)\nwhole = True\n"
PROGRAM = """
import os, sys, threading, time
import onnxlab.forking
sys.path.insert(0, sys.argv[1])
other = threading.Thread(target=__import__, args=("slow_module",))
other.start()
while "slow_module" not in sys.modules or not hasattr(sys.modules["slow_module"], "started"):
    time.sleep(0.001)
child = os.fork()
if not child:
    import slow_module
    os._exit(0 if getattr(slow_module, "whole", False) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("patience", [1.0, 0.0])
def test_a_child_has_whole_what_another_thread_imported_at_the_fork(tmp_path: Path, patience: float) -> None:
    (tmp_path / "slow_module.py").write_text(SLOW)
    program = PROGRAM.replace("sys.path.insert", f"onnxlab.forking._PATIENCE = {patience}\nsys.path.insert", 1)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=60, check=False)
    assert done.returncode == 0


def test_a_fork_inside_of_an_import_does_not_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os\nif not (child := os.fork()): os._exit(0)\nos.waitpid(child, 0)\n"
    (tmp_path / "forking_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forking, "_PATIENCE", 100.0)
    start = time.monotonic()
    __import__("forking_module")
    assert time.monotonic() - start < 50


def test_a_fork_waits_no_longer_than_is_patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless_module.py").write_text("import threading\ngo_on = threading.Event()\ngo_on.wait(30)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forking, "_PATIENCE", 0.2)
    other = threading.Thread(target=__import__, args=("endless_module",))
    other.start()
    while not hasattr(sys.modules.get("endless_module"), "go_on"):
        time.sleep(0.001)
    start = time.monotonic()
    if not (child := os.fork()):
        os._exit(0)
    took = time.monotonic() - start
    sys.modules["endless_module"].go_on.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert 0.2 <= took < 20


def test_a_fork_waits_for_the_holder_of_a_foreign_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, held, foreign = forking.fork_safe(threading.Lock(), await_holder=True), threading.Event(), threading.Lock()

    def hold() -> None:
        with lock, foreign:
            held.set()
            time.sleep(0.3)

    monkeypatch.setattr(forking, "_PATIENCE", 100.0)
    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    if not (child := os.fork()):
        os._exit(int(not lock.acquire(timeout=10) or foreign.locked()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    other.join()
    assert lock.acquire(timeout=10), "the parent has it back"


def test_a_fork_does_not_wait_for_ever_for_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = forking.fork_safe(threading.Lock(), await_holder=True)
    monkeypatch.setattr(forking, "_PATIENCE", 0.1)
    with lock:
        if not (child := os.fork()):
            os._exit(int(lock.locked()))
        assert lock.locked()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
