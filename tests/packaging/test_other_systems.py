"""Without what only Linux has (forks, locks of files, modes of sockets, users by number), all is as here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JOB = Path(__file__).with_name("browser_job.py")
OTHER = str(JOB.with_name("other_system.py"))
ROOT = JOB.parents[2]


def run(folder: Path, *command: str) -> Any:
    environment = {**os.environ, "ONNXLAB_STATE_HOME": str(folder), "ONNXLAB_COMPILE": "0"}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=250, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_tour_and_the_widget_do_as_here(system: str, tmp_path: Path) -> None:
    elsewhere = run(tmp_path, OTHER, system, str(JOB), "native")
    assert elsewhere == run(tmp_path, str(JOB), "native")


@pytest.mark.parametrize(
    ("system", "expected"), [("win32", [False, "win32", "nt"]), ("darwin", [True, "darwin", "posix"])]
)
def test_onnxlab_alone_sees_the_other_system(system: str, expected: list[Any], tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    code = "import os, sys; told = [hasattr(os, 'fork'), sys.platform, os.name]"
    probe.write_text(
        f"import json\ncode = {code!r}\n"
        "as_onnxlab, as_others = {'__name__': 'onnxlab.probe'}, {'__name__': 'probe'}\n"
        "exec(code, as_onnxlab)\nexec(code, as_others)\nprint(json.dumps([as_onnxlab['told'], as_others['told']]))\n"
    )
    elsewhere, native = run(tmp_path, OTHER, system, str(probe))
    assert elsewhere == expected
    assert native == [True, sys.platform, os.name]
