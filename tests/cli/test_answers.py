"""The command line: answers, exit codes, errors in one line, and a --help that imports nothing heavy."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxlab import cli
from onnxlab.cli.base import deadline
from tests.cli.conftest import Pipe
from tests.support.corpus import Corpus
from tests.support.samples import FORMATS


def test_info_says_what_is_in_a_model(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", model]) == 0
    assert "input x: float32[n,3]" in capsys.readouterr().out
    assert cli.main(["info", "--json", model]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["operators"] == {"Add": 1}
    assert report["inputs"][0] == {"name": "x", "type": "float32[n,3]"}


def test_warm_says_where_kernels_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warm"]) == 0
    printed = capsys.readouterr()
    assert any(Path(printed.out.strip()).glob("gemm-*.o"))
    assert "compiling gemm" in printed.err


def test_profile_times_nodes_inside_of_compiled_parts(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", "--json", "--runs", "1", "--providers", "numba", str(corpus["rapidocr_cls"])]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert {node["provider"] for node in nodes} == {"numba"}
    assert max(node["together"] for node in nodes) > 1
    assert nodes[0]["op"] == "Conv"


def test_check_finds_nothing_in_a_sound_model(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", model]) == 0
    assert capsys.readouterr().out == "0 errors\n"


def test_check_names_the_node_at_fault(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", broken]) == 1
    assert capsys.readouterr().out.startswith("add: error: ")
    assert cli.main(["check", "--json", broken]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert (findings["errors"], findings["problems"][0]["node"]) == (1, "add")


def test_run_takes_arrays_by_name(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 3), 2, np.float32))
    np.savez(tmp_path / "rest.npz", y=np.full((2, 3), np.inf, np.float32))
    feeds = [f"x={tmp_path / 'x.npy'}", str(tmp_path / "rest.npz")]
    assert cli.main(["run", model, *feeds, "--json", "--save", str(tmp_path / "out.npz")]) == 0
    output = json.loads(capsys.readouterr().out)["outputs"]["z"]
    assert (output["shape"], output["inf"], output["maximum"]) == ([2, 3], 6, "inf")
    assert np.isinf(np.load(tmp_path / "out.npz")["z"]).all()


def test_run_makes_inputs_up(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", model, "--seed", "1"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("z: float32[")
    cli.main(["run", model, "--seed", "1"])
    assert capsys.readouterr().out == first
    cli.main(["run", model, "--seed", "2"])
    assert capsys.readouterr().out != first


def test_run_makes_up_inputs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "g (float[2] x) => (float[2] y) { y = Add (x, nope) }"
    onnx.save(onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>' + body), tmp_path / "m.onnx")
    assert cli.main(["run", str(tmp_path / "m.onnx")]) == 4
    assert "reads 'nope', which no node" in capsys.readouterr().err


def test_svg_goes_to_a_file_or_to_standard_output(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["svg", model]) == 0
    drawn = capsys.readouterr().out
    assert cli.main(["svg", model, "-o", str(tmp_path / "out.svg")]) == 0
    assert (tmp_path / "out.svg").read_text(encoding="utf-8") + "\n" == drawn


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["info", "missing.onnx"], 3, "there is no such file"),
        (["run", "{model}", "x=missing.npy"], 3, "cannot read the inputs"),
        (["run", "{model}", "--outputs", "w"], 2, "is called 'w'; the graph's outputs are 'z'"),
        (["svg", "{model}", "-o", "/nowhere/out.svg"], 5, "the folder /nowhere does not exist"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    model: str, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([argument.format(model=model) for argument in arguments]) == code
    message = capsys.readouterr().err
    assert message.startswith("onnxlab: ")
    assert words in message
    assert message.count("\n") == 1


def test_a_run_that_fails_names_the_node(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", broken]) == 4
    assert "add" in capsys.readouterr().err


WRONG = {
    "fly m.onnx": "there is no command 'fly'. `onnxlab --help` lists what there is",
    "simplfy m.onnx": "there is no command 'simplfy'. Did you mean 'simplify'? `onnxlab --help` lists",
    "edit m.onnx --opste 18": "there is no option '--opste'. Did you mean '--opset'? ",
    "--frobnicate": "there is no option '--frobnicate'. `onnxlab --help` lists what there is",
    "info m.onnx extra --nonsense": "there is no option '--nonsense'. Too many words: extra. `onnxlab info",
    "info m.onnx --color nver": "--color is one of auto, always, never; given 'nver'. Did you mean 'never'?",
    "git instal": "action is one of install, uninstall, text, merge; given 'instal'. Did you mean 'install'",
    "edit m.onnx --opset x": "--opset: 'x' is no whole number; `onnxlab edit --help` lists",
    "diff m.onnx m.onnx --tolerance x": "--tolerance: 'x' is no number; ",
    "info": "model: not given; `onnxlab info --help` lists what there is",
    "run y=3": "'y=3' is no file: the model comes first, as in onnxlab run MODEL y=3",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_command_line_exits_with_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"onnxlab: {WRONG[words]}")


def test_files_of_inputs_may_have_equals_signs_in_their_paths(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "date=2024"
    folder.mkdir()
    array = np.ones((2, 3), np.float32)
    np.save(folder / "x=1.npy", array)
    np.savez(folder / "all.npz", x=array, y=array)
    file = folder / "x=1.npy"
    assert cli.main(["run", model, f"x={file}", f"y={file}", "--json"]) == 0
    assert cli.main(["run", model, str(folder / "all.npz")]) == 0
    capsys.readouterr()
    assert cli.main(["run", model, str(file)]) == 3
    assert f"say which input it is for, as in name={file}" in capsys.readouterr().err
    assert cli.main(["run", model, f"x={folder}/none.npy"]) == 3
    assert "there is no file" in capsys.readouterr().err


def test_feeds_that_are_no_files_are_named(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", model, "image=3"]) == 3
    assert "there is no file '3'; give arrays in files, as name=array.npy" in capsys.readouterr().err


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have been run."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_show_opens_jupyterlab_on_a_scratch_notebook(model: str, commands: list[list[str]]) -> None:
    assert cli.main(["show", model, "--no-browser", "--port", "9999"]) == 0
    assert {"--no-browser", "--port=9999"} <= set(commands[0])
    notebook = json.loads(Path(commands[0][3]).read_text(encoding="utf-8"))
    assert repr(model) in notebook["cells"][0]["source"]


def test_show_keeps_a_model_of_standard_input_beside_the_notebook(
    model: str, commands: list[list[str]], pipe: Pipe
) -> None:
    pipe(Path(model).read_bytes())
    assert cli.main(["show", "-", "--no-browser"]) == 0
    notebook = Path(commands[0][3])
    assert repr(str(notebook.parent / "model.onnx")) in json.loads(notebook.read_text())["cells"][0]["source"]
    assert (notebook.parent / "model.onnx").read_bytes() == Path(model).read_bytes()
    pipe(b"")
    assert cli.main(["show", "-"]) == 3


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from onnxlab import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'onnx', 'numpy', 'networkx', 'anywidget', 'numba', 'IPython'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"
    assert "Exit codes" in printed


def test_info_and_svg_work_on_every_kind_of_model(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("functions_ts", "script_control", "skl_rf", "string_ops", "silero_vad_if"):
        assert cli.main(["info", str(corpus[name])]) == 0
        assert cli.main(["svg", str(corpus[name])]) == 0
    assert capsys.readouterr().err == ""


def test_convert_says_what_is_lost_and_writes(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = onnx.load(model)
    proto.graph.node[0].doc_string = "kept nowhere"
    onnx.save(proto, model)
    written = tmp_path / "add.onnxtxt"
    assert cli.main(["convert", model, str(written)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("ONNX text does not hold:\n  field graph.node[…].doc_string: lost or changed\n")
    assert printed.err == ""
    assert written.read_text().startswith("<")
    assert cli.main(["convert", model, "--format", "onnxtxt", "--json"]) == 0
    assert [loss["what"] for loss in json.loads(capsys.readouterr().out)["losses"]][:1] == ["field"]
    assert cli.main(["convert", model, str(tmp_path / "add.xyz")]) == 5
    assert "'.xyz' is no format; there are" in capsys.readouterr().err


def test_convert_says_that_operators_stay_foreign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: "ONNX holds all of this model", of torch's operators, which nothing runs."""
    assert cli.main(["convert", str(FORMATS / "pt2" / "module.pt2"), str(tmp_path / "m.onnx")]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == "ONNX does not hold:"
    assert "they stay those of a torch.export archive" in second
    assert second.endswith("--trust of onnxlab convert")
    assert last == f"written to {tmp_path / 'm.onnx'}"


def test_info_says_what_a_format_says_besides(capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: of a checkpoint, "0 nodes, 212 parameters" and no more."""
    path = FORMATS / "pt2" / "module.pt2"
    assert cli.main(["info", str(path)]) == 0
    assert "\na torch.export archive\nNothing is inferred of torch's operators" in capsys.readouterr().out
    assert cli.main(["info", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "pt2"


@pytest.mark.parametrize(
    "words",
    [
        ["simplify", "{model}"], ["rewrite", "{model}", "Add(a, b) => Add(b, a)", "--no-verify"],
        ["edit", "{model}", "--rename", "x=a"], ["insert", "{model}", "{model}", "--prefix", "b/"],
        ["extract", "{model}", "--outputs", "z"], ["convert", "{model}", "--format", "json"],
    ],
)  # fmt: skip
def test_the_last_line_says_whether_a_model_was_written(
    words: list[str], model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: `onnxlab simplify m.onnx` says "12 nodes before, 9 now", and m.onnx is as it was."""
    words = [word.format(model=model) for word in words]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing was written; -o FILE writes it"
    target = tmp_path / "new.onnx"
    words = words if words[0] != "convert" else words[:2]
    assert cli.main([*words, "-o", str(target)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"written to {target}"
    assert target.exists()
    if words[0] == "simplify":
        assert cli.main([*words, "-o", str(tmp_path / "none.onnx"), "--dry-run"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "nothing was written, as --dry-run says"


def test_the_last_argument_may_stand_behind_options(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 3), 7, np.float32))
    assert cli.main(["run", model, "--outputs", "x", "--seed", "1", f"x={tmp_path / 'x.npy'}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["x"]["mean"] == 7
    assert cli.main(["convert", model, "--format", "textproto", str(tmp_path / "add.textproto")]) == 0
    assert (tmp_path / "add.textproto").exists()
    assert cli.main(["convert", model, "--format", "textproto", "a.textproto", "b.textproto"]) == 2


def test_convert_takes_its_file_as_other_commands_do(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["convert", model, "-o", str(tmp_path / "add.onnxtxt")]) == 0
    assert (tmp_path / "add.onnxtxt").read_text().startswith("<")
    assert cli.main(["convert", model, "a.onnxtxt", "-o", "b.onnxtxt"]) == 2
    assert "two files to write, 'a.onnxtxt' and 'b.onnxtxt': give one" in capsys.readouterr().err


def test_a_folder_of_samples_is_asked_for(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["statistics", model, model]) == 3
    assert "is a file: give a folder of samples" in capsys.readouterr().err
    assert cli.main(["statistics", model, f"{model}-none"]) == 3
    assert "does not exist: give a folder of samples" in capsys.readouterr().err


def test_a_budget_below_0_is_refused(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fold", model, "--budget=-5"]) == 2
    assert "budget is -5: expected a number of bytes from 0 on" in capsys.readouterr().err


def test_a_timeout_during_an_import_is_a_timeout() -> None:
    def importing() -> None:
        with deadline.Deadline(0.05):
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                raise ImportError("the import was interrupted") from None

    with pytest.raises(deadline.TimedOut, match="--timeout"):
        importing()


def test_only_what_must_be_there_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "a.onnx"]) == 2
    assert "onnxlab: b: not given;" in capsys.readouterr().err


@pytest.mark.parametrize(("tolerance", "words"), [("-1", "expected a number from 0 on"), ("nan", "is no number")])
def test_a_tolerance_is_a_number_from_0_on(
    tolerance: str, words: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["diff", model, model, "--tolerance", tolerance]) == 2
    assert words in capsys.readouterr().err
