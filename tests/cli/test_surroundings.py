"""git, the environment, reports of defects, completion, and systems that have less than Linux."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab import cli
from onnxlab.cli.base import environment
from onnxlab.cli.verbs import doctor
from tests.cli.conftest import add_model
from tests.cli.table import HOSTILE_NAME
from tests.support.docs_pages import ROOT, verbs

Capture = pytest.CaptureFixture[str]


# -- git -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a model in it, and `onnxlab git install` done."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", os.environ["PATH"].replace(str(Path(sys.executable).parent), ""))
    monkeypatch.chdir(folder)
    git("init", "-q", "-b", "main")
    git("config", "user.email", "test@example.org")
    git("config", "user.name", "test")
    assert cli.main(["git", "install"]) == 0
    save(add_model())
    commit("model")
    return folder


def git(*words: str, code: int = 0) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def commit(message: str) -> None:
    git("add", ".")
    git("commit", "-qm", message)


def save(proto: onnx.ModelProto) -> None:
    onnx.save(proto, "m.onnx")


@pytest.mark.slow
def test_git_shows_what_changed_in_a_model(repository: Path) -> None:
    proto = add_model()
    proto.graph.node[0].name = "plus"
    save(proto)
    shown = git("diff")
    assert "Binary files" not in shown
    assert [line for line in shown.splitlines() if line.startswith("-") and "add" in line]
    assert [line for line in shown.splitlines() if line.startswith("+") and "plus" in line]
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    save(proto)
    assert "-> float32[broadcast(batch, n),3]" in git("diff")  # the shapes that follow
    assert "1 change" in git("difftool", "-y", "-t", "onnxlab") or "plus" in git("difftool", "-y", "-t", "onnxlab")


@pytest.mark.slow
def test_git_shows_what_is_no_model(repository: Path) -> None:
    Path("m.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "+no model: it is a git-lfs pointer" in git("diff")


@pytest.mark.slow
def test_a_merge_of_two_changes_is_refused_and_leaves_ours(repository: Path) -> None:
    git("checkout", "-qb", "other")
    proto = add_model()
    proto.graph.node[0].op_type = "Mul"
    save(proto)
    commit("mul")
    git("checkout", "-q", "main")
    proto = add_model()
    proto.graph.node[0].op_type = "Sub"
    save(proto)
    commit("sub")
    printed = git("merge", "other", code=1)
    assert "both sides changed this model" in printed
    assert "Sub" in printed
    assert "Mul" in printed
    assert onnx.load("m.onnx").graph.node[0].op_type == "Sub"
    assert "UU m.onnx" in git("status", "--short")


@pytest.mark.slow
def test_a_merge_of_the_same_change_is_done(repository: Path) -> None:
    git("checkout", "-qb", "other")
    proto = add_model()
    proto.graph.node[0].op_type = "Mul"
    save(proto)
    commit("mul")
    git("checkout", "-q", "main")
    Path("m.onnx").write_bytes(proto.SerializeToString() + OTHER_BYTES)
    commit("mul too")
    git("merge", "-q", "other")
    assert onnx.load("m.onnx").graph.node[0].op_type == "Mul"


OTHER_BYTES = b"\xfa\xff\x03\x00"
"""A field that no model has: the same model in other bytes."""


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["main", "other"])
def test_a_side_that_only_writes_other_bytes_gives_way(repository: Path, changed: str) -> None:
    git("checkout", "-qb", "other")
    for branch in ("other", "main"):
        git("checkout", "-q", branch)
        proto = add_model()
        if branch == changed:
            proto.graph.node[0].op_type = "Mul"
        Path("m.onnx").write_bytes(proto.SerializeToString() + (b"" if branch == changed else OTHER_BYTES))
        commit(branch)
    git("merge", "-q", "other")
    assert onnx.load("m.onnx").graph.node[0].op_type == "Mul"
    assert git("status", "--short") == ""


def test_install_keeps_what_is_there_and_uninstall_takes_it_back(repository: Path, capsys: Capture) -> None:
    attributes = repository / ".gitattributes"
    attributes.write_text("*.txt text\n*.onnx diff=onnx merge=onnx\n")
    for _ in range(2):
        assert cli.main(["git", "install", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (answer["schema"], Path(answer["attributes"])) == ("onnxlab/git/1", attributes)
    lines = attributes.read_text().splitlines()
    assert sorted(lines) == ["*.onnx diff=onnx merge=onnx", "*.ort diff=onnx merge=onnx", "*.txt text"]
    assert cli.main(["git", "uninstall"]) == 0
    assert attributes.read_text() == "*.txt text\n"
    assert git("config", "diff.onnx.textconv", code=1) == ""
    assert cli.main(["git", "install", "--global"]) == 0
    assert (Path(os.environ["HOME"]) / ".config" / "git" / "attributes").exists()
    assert "onnxlab" in git("config", "--global", "diff.onnx.textconv")


def test_git_says_why_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert cli.main(["git", "install"]) == 5
    assert "not a git repository" in capsys.readouterr().err
    assert cli.main(["git", "merge", "a"]) == 2
    monkeypatch.setenv("PATH", "")
    assert cli.main(["git", "install"]) == 5
    assert "cannot start git" in capsys.readouterr().err


# -- doctor and report -----------------------------------------------------------------------------------------------


def test_doctor_finds_all_well_here(capsys: Capture) -> None:
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "ok     example: opens, is edited, undone and run" in printed
    assert cli.main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "onnxlab/doctor/1"
    assert {"Python", "onnx", "numba", "example"} <= {finding["name"] for finding in answer["findings"]}


def test_doctor_says_what_is_absent_or_does_not_work(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(environment, "_version", lambda name: "" if name in ("numba", "onnx") else "1")
    monkeypatch.setattr("onnxlab.notebook.widgets.bundle.STATIC", Path("/nowhere"))
    assert cli.main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert "absent numba: needed for compiled kernels (pip install 'onnxlab[fast]')" in printed
    assert "ERROR  onnx: not installed (pip install onnx)" in printed
    assert "ERROR  widget's bundle: OnnxlabError: /nowhere/widget.js is missing" in printed


def test_report_holds_no_names_and_no_weights(tmp_path: Path, capsys: Capture) -> None:
    proto = add_model(4)
    proto.graph.node[0].name = "secret_node"
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "secret_input"
    path = tmp_path / "secret_file.onnx"
    onnx.save(proto, path)
    assert cli.main(["report", str(path)]) == 0
    text = capsys.readouterr().out
    assert "secret" not in text
    assert "run: RunError" in text
    assert "1 error: shape-mismatch" in text
    assert cli.main(["report", str(path), "--names"]) == 0
    assert "secret_node" in capsys.readouterr().out


def test_no_text_of_the_model_ends_a_block_of_a_report(tmp_path: Path, capsys: Capture) -> None:
    proto = add_model()
    proto.producer_name = f"```\n# evil\n````` {HOSTILE_NAME}"
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    assert cli.main(["report", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "# evil" not in lines
    assert "`" * 6 in lines


def test_report_says_where_a_fault_is(model: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("onnxlab.render.svg.draw", lambda *_, **_named: 1 / 0)
    assert cli.main(["report", model]) == 0
    printed = capsys.readouterr().out
    assert "draw: ZeroDivisionError" in printed
    assert "render/svg.py:" in printed
    assert set(doctor.ATTEMPTS) == {"draw", "write", "run", "simplify"}


# -- completion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb(shell: str, capsys: Capture) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(verb in script for verb in verbs())
    assert "--timeout" in script or "-l timeout" in script or "timeout" in script


def test_bash_completes_verbs_and_options(tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out)
    (tmp_path / "m.onnx").touch()

    def completed(*words: str) -> set[str]:
        script = (
            f"source {tmp_path / 'completion'}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
            "_shtab_onnxlab; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
        return set(done.stdout.split())

    assert completed("onnxlab", "sim") == {"simplify"}
    assert "--sarif" in completed("onnxlab", "check", "--s")
    assert "m.onnx" in completed("onnxlab", "info", "m")


# -- systems that have less than Linux -------------------------------------------------------------------------------

LESS = """
import os, signal, sys
for module, names in ((os, {names!r}), (signal, ["pthread_kill", "SIGKILL", "SIGALRM", "setitimer"])):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
from onnxlab import cli
model, folder = sys.argv[1:]
target = os.path.join(folder, "out")
assert cli.main(["info", model, "--timeout", "100"]) == 0
assert cli.main(["run", model, "--save", target + ".npz"]) == 0
assert cli.main(["svg", model, "-o", target + ".svg"]) == 0
assert cli.main(["svg", model, "-o", target + ".svg"]) == 0
assert cli.main(["simplify", model, "-o", target + ".onnx"]) == 0
assert cli.main(["simplify", model, "-o", target + ".onnx"]) == 0
assert cli.main(["doctor"]) == 0
import onnxlab
opened = onnxlab.load(target + ".onnx")
opened.nodes[0].name = "renamed"
opened.save()
assert onnxlab.load(target + ".onnx").nodes[0].name == "renamed"
print("done")
"""
MISSING = (
    "fork", "forkpty", "register_at_fork", "geteuid", "getuid", "getgid", "link", "fchown", "chown", "fchmod",
    "sysconf", "sched_getaffinity", "getloadavg", "posix_spawn", "statvfs", "fstatvfs", "posix_fallocate",
    "getpriority", "mkfifo",
)  # fmt: skip
"""What Windows lacks of `os`, or macOS."""


@pytest.mark.slow
def test_without_fork_owners_and_links(model: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LESS.format(names=MISSING), model, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr
    assert onnxlab.load(tmp_path / "out.onnx").nodes[0].name == "renamed"
