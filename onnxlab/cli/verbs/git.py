"""`onnxlab git`: git shows models as lines, compares them by structure, and merges none by guessing.

`install` writes two settings and a line of attributes. Git then calls `text` to show a model, and `merge` where both
sides changed its file. `merge` takes one side where the other equals the base, or where both are equal. Otherwise it
leaves ours whole, says what each side changed, and lets git report a conflict: conflict markers would leave no model at
all.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE, UsageError
from onnxlab.errors import LoadError, SaveError
from onnxlab.printable import printable_lines

SUFFIXES = ("onnx", "ort")
_SHOWN = 20


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    git = verbs.add("git", _git, "let git show, compare and merge models: `onnxlab git install`", models=())
    words = "install or uninstall in the repository; text and merge are what git calls"
    git.add_argument("action", choices=("install", "uninstall", "text", "merge"), help=words)
    git.add_argument(
        "files", nargs="*", metavar="FILE", help="for text: a model; for merge: base, ours, theirs, and a name"
    )
    git.add_argument("--global", action="store_true", dest="everywhere", help="for every repository of this user")


def _git(options: argparse.Namespace) -> int:
    counts = {"text": (1, 1), "merge": (3, 4)}.get(options.action, (0, 0))
    if not counts[0] <= len(options.files) <= counts[1]:
        raise UsageError(f"git {options.action} takes {counts[0] or 'no'} files, given {len(options.files)}")
    return {"install": _install, "uninstall": _uninstall, "text": _text, "merge": _merge}[options.action](options)


# -- settings --------------------------------------------------------------------------------------------------------


def settings() -> dict[str, str]:
    """The settings, by key; two of them do the work, the others give names and speed."""
    program = "onnxlab" if shutil.which("onnxlab") else f'"{Path(sys.executable).as_posix()}" -m onnxlab'
    return {
        "diff.onnx.textconv": f"{program} git text",
        "diff.onnx.cachetextconv": "true",
        "merge.onnx.name": "models: refused where both sides changed one",
        "merge.onnx.driver": f"{program} git merge %O %A %B %P",
        "difftool.onnxlab.cmd": f'{program} diff "$LOCAL" "$REMOTE"',
    }


def _lines() -> list[str]:
    return [f"*.{suffix} diff=onnx merge=onnx" for suffix in SUFFIXES]


def _install(options: argparse.Namespace) -> int:
    scope = "--global" if options.everywhere else "--local"
    path = _attributes(options)
    for key, value in settings().items():
        _call("config", scope, key, value)
    before = _read(path)
    missing = [line for line in _lines() if line not in before.splitlines()]
    if missing:
        _write(path, ("\n".join([*before.splitlines(), *missing]) + "\n").encode())
    rows = {"attributes": str(path), "settings": settings()}
    words = [f"{path}: {'; '.join(_lines())}", *(f"git config {key} = {value}" for key, value in settings().items())]
    answer(options, lambda: rows, lambda: printable_lines([*words, "`git difftool -t onnxlab` compares by structure"]))
    return DONE


def _uninstall(options: argparse.Namespace) -> int:
    scope = "--global" if options.everywhere else "--local"
    path = _attributes(options)
    for section in ("diff.onnx", "merge.onnx", "difftool.onnxlab"):
        _call("config", scope, "--remove-section", section, check=False)
    before = _read(path)
    rest = [line for line in before.splitlines() if line not in _lines()]
    if rest != before.splitlines():
        _write(path, "".join(f"{line}\n" for line in rest).encode())
    answer(options, lambda: {"attributes": str(path), "settings": {}}, lambda: printable_lines([f"{path}: cleared"]))
    return DONE


def _attributes(options: argparse.Namespace) -> Path:
    """The file of attributes: of the repository, or of the user."""
    if not options.everywhere:
        return Path(_call("rev-parse", "--show-toplevel")) / ".gitattributes"
    named = _call("config", "--global", "--type=path", "core.attributesFile", check=False)
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(named) if named else Path(home) / "git" / "attributes"


def _call(*words: str, check: bool = True) -> str:
    """The output of git. Raises SaveError where there is no git, or it refuses."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SaveError(f"cannot start git: {error.strerror or error}") from error
    if check and done.returncode:
        raise SaveError(f"git {words[0]}: {done.stderr.strip() or 'it failed'}")
    return done.stdout.strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _write(path: Path, content: bytes) -> None:
    from onnxlab.formats.atomic import Replacement, real_target

    path.parent.mkdir(parents=True, exist_ok=True)
    with Replacement() as files:
        files.write(real_target(path), content)


# -- what git calls --------------------------------------------------------------------------------------------------


def _text(options: argparse.Namespace) -> int:
    """Print a model as lines; any other content, such as a git-lfs pointer, by what it is: git would stop otherwise."""
    from onnxlab.analysis.diff.outline import outline
    from onnxlab.model import load

    try:
        model = load(options.files[0])
        lines = outline(model.graph, model.fact)
    except LoadError as error:
        lines = f"no model: {str(error).partition(': ')[2]}"
    answer(options, lambda: {"lines": lines.split("\n")}, lambda: lines)
    return DONE


def _merge(options: argparse.Namespace) -> int:
    """Leave ours, or theirs where ours equals the base; exit code 1 is a conflict to git."""
    base, ours, theirs = options.files[:3]
    name = options.files[3] if len(options.files) > 3 else ours
    try:
        merged, sides = _judged(base, ours, theirs)
    except LoadError as error:
        merged, sides = "", {"this": error}
    if merged == "theirs":
        _write(Path(ours), Path(theirs).read_bytes())
    if merged:
        words = {"both": "both sides say the same", "ours": "theirs changed nothing", "theirs": "ours changed nothing"}
        answer(options, lambda: {"merged": merged, "name": name}, lambda: printable_lines([f"{name}: {words[merged]}"]))
        return DONE
    lines = [f"{name}: both sides changed this model, and it is left as ours; nothing is merged by guessing"]
    for side, changes in sides.items():
        described = str(changes).split("\n")
        lines += [f"{side}:", *(f"  {line}" for line in described[:_SHOWN])]
        if len(described) > _SHOWN:
            lines.append(f"  … and {len(described) - _SHOWN} more")
    lines.append(f"git checkout --theirs {name} takes the other; onnxlab.diff(base, theirs) is a patch for model.patch")
    answer(options, lambda: {"merged": "", "name": name, "lines": lines}, lambda: printable_lines(lines))
    return DIFFERENT


def _judged(base: str, ours: str, theirs: str) -> tuple[str, dict[str, object]]:
    """Whose model is the merge, "" where both sides changed it, and what each side changed."""
    from onnxlab.model import diff

    if not len(diff(ours, theirs)):
        return "both", {}
    sides = {"ours": diff(base, ours), "theirs": diff(base, theirs)}
    unchanged = [side for side, changes in sides.items() if not len(changes)]
    if unchanged:
        return ("theirs" if unchanged[0] == "ours" else "ours"), {}
    return "", dict(sides)
