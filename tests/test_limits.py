import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onnxlab import limits
from onnxlab.errors import LimitError, RunStopped
from onnxlab.limits import Limits, format_bytes


def test_a_default_budget_is_four_fifths_of_the_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available_memory", lambda: 1000)
    assert Limits().begin().bytes == 800


def test_reserve_counts_what_is_held_and_says_how_much_was_asked() -> None:
    budget = Limits(bytes=10_000_000).begin()
    budget.reserve(6_000_000, "the output of Range")
    with pytest.raises(LimitError, match=r"Expand needs 5\.0 MB on top of the 6\.0 MB .* limit is 10\.0 MB"):
        budget.reserve(5_000_000, "Expand")
    budget.release(6_000_000)
    budget.reserve(5_000_000, "Expand")
    assert budget.held == 5_000_000


def test_each_run_has_its_own_count_and_shares_the_stop_flag() -> None:
    limits = Limits(bytes=100, iterations=2)
    first, second = limits.begin(), limits.begin()
    first.reserve(100)
    second.reserve(100)
    for _ in range(2):
        first.iterate()
    with pytest.raises(LimitError, match="more than 2 iterations"):
        first.iterate()
    second.iterate()
    limits.stop.set()
    with pytest.raises(RunStopped):
        second.check()


def test_the_deadline_counts_from_begin() -> None:
    limits = Limits(deadline=0.02)
    time.sleep(0.03)
    budget = limits.begin()
    budget.check()
    time.sleep(0.03)
    with pytest.raises(LimitError, match=r"limit of 0\.02 s"):
        budget.check()


def test_a_limit_error_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        Limits(bytes=1).begin().reserve(10**12)


def test_cgroup_2_limit_less_usage_plus_droppable_cache(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    assert limits._cgroup_memory(tmp_path) == [450]
    (tmp_path / "memory.max").write_text("max\n")
    assert limits._cgroup_memory(tmp_path) == []


def test_available_memory_is_plausible() -> None:
    assert 2**24 < limits.available_memory() < 2**50


def test_format_bytes() -> None:
    sizes = [512, 3_400_000, 8 * 10**12, 10**18]
    assert [format_bytes(size) for size in sizes] == ["512 B", "3.4 MB", "8.0 TB", "1,000.0 PB"]


def test_stop_can_be_set_from_another_thread() -> None:
    budget = Limits(deadline=1).begin()
    threading.Timer(0.02, budget.stop.set).start()
    with pytest.raises(RunStopped):
        _check_for_ever(budget)


def _check_for_ever(budget: Any) -> None:
    while True:
        budget.check()


def test_a_call_that_is_done_is_not_told_to_end() -> None:
    """The reporting observer blocks the others, so that none has continued meanwhile."""
    running, calls = Limits().begin(), []

    def slow() -> None:
        left = threading.Thread(target=leave)
        left.start()
        left.join(0.05)
        calls.append(left.is_alive())

    def leave() -> None:
        context.__exit__(None, None, None)

    context = running.listening(slow)
    context.__enter__()
    running.end()
    assert calls == [True], "it could not leave while it was told"
    for _ in range(100):
        if not running._listeners:
            break
        time.sleep(0.01)
    running.end()
    assert len(calls) == 1
