"""The commands that make would run in a fresh checkout are what a shell takes, for every goal that its help names."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOALS = re.findall(r"^#   make ([a-z-]+) ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def made(folder: Path, *words: str) -> str:
    """The output of make in a folder with the files that its rules depend on."""
    for name in ("Makefile", "pyproject.toml", "hatch_build.py"):
        shutil.copy(ROOT / name, folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("goal", GOALS)
def test_the_commands_of_a_goal_are_whole(goal: str, tmp_path: Path) -> None:
    """Seen: a comma in a message ended the argument of a call, and `make lab` in a fresh clone failed at the quote."""
    commands = made(tmp_path, "-n", goal)
    assert commands.strip()
    done = subprocess.run(["bash", "-n"], input=commands, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_help_lines_up_all_goals(tmp_path: Path) -> None:
    lines = made(tmp_path).splitlines()
    assert [line.split()[1] for line in lines] == GOALS
    assert {len(re.match(r"make [a-z-]+ +", line)[0]) for line in lines} == {len("make test-fast  ")}  # type: ignore[index]
    assert {"lab", "test", "test-fast", "docs", "clean"} <= set(GOALS)
