"""binder/ has the files that repo2docker needs, and repo2docker reads them."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"


def lines(name: str) -> list[str]:
    """Lines of a file in binder/ without comments."""
    text = (BINDER / name).read_text().splitlines()
    return [line.strip() for line in text if line.strip() and not line.startswith("#")]


def test_python_is_new_enough() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert lines("runtime.txt") == ["python-3.12"]  # its default is 3.10
    assert project["requires-python"] == ">=3.11"


def test_requirements_are_locked_versions_with_hashes_of_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked: dict[str, tuple[Version, int]] = {}
    for entry in "\n".join(lines("requirements.txt")).replace("\\\n", " ").splitlines():
        name, version, hashes = re.fullmatch(
            r"([a-z0-9-]+)==(\S+) ((?: *--hash=sha256:[0-9a-f]{64})+) *", entry
        ).groups()
        locked[name] = Version(version), hashes.count("sha256")
    assert all(hashes for _, hashes in locked.values())
    extras = project["optional-dependencies"]
    for requirement in map(Requirement, [*project["dependencies"], *extras["fast"], *extras["ort"]]):
        assert requirement.name in locked, f"{requirement}: make the lock anew, as its head says"
        assert locked[requirement.name][0] in requirement.specifier, requirement


def test_dot_is_installed() -> None:
    assert lines("apt.txt") == ["graphviz"]


def test_post_build_stops_at_errors_and_installs_the_package() -> None:
    commands = lines("postBuild")
    assert os.access(BINDER / "postBuild", os.X_OK)
    assert commands[0] == "set -euo pipefail"
    assert commands[1:3] == ["python -m pip install --no-cache-dir --no-deps .", "python -m pip check"]
    assert any(command.endswith("&& onnxlab warm)") for command in commands)
    subprocess.run(["bash", "-n", BINDER / "postBuild"], check=True)


def test_post_build_fails_where_a_step_fails(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "python").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([BINDER / "postBuild"], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 7


def test_dockerfile_of_repo2docker() -> None:
    command = [Path(sys.executable).with_name("jupyter-repo2docker"), "--no-build", "--debug", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Building conda environment for python=3.12" in done.stderr
    dockerfile = [line.strip() for line in done.stdout.splitlines()]
    assert "apt-get install --yes --no-install-recommends graphviz && \\" in dockerfile
    assert 'RUN ${KERNEL_PYTHON_PREFIX}/bin/pip install --no-cache-dir -r "binder/requirements.txt"' in dockerfile
    assert "RUN ./binder/postBuild" in dockerfile
    steps = [dockerfile.index(line) for line in ("COPY --chown=0:0 src/ ${REPO_DIR}/", "RUN ./binder/postBuild")]
    assert steps == sorted(steps)
