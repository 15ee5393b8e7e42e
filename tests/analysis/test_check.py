"""`check` against onnx.checker: the same verdict on every model, all problems instead of the first, each pinned."""

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab import schemas
from onnxlab.analysis import check as checks
from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.analysis.mutations import bases, calls, loops, mutate, sparse
from tests.formats.journals import random_edits
from tests.graph.support.models import branches, chain
from tests.infer.rules.test_backend_cases import cases
from tests.support.corpus import NAMES, Corpus

LONG = bool(os.environ.get("ONNXLAB_LONG"))


def refusal(model: onnx.ModelProto | str) -> str:
    """The refusal of onnx.checker, "" where it accepts the model."""
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return ""


def ours(model: Any) -> list[str]:
    """The errors that onnx.checker would have too."""
    return [str(problem) for problem in checks.errors(onnxlab.check(model, types=False))]


# -- the verdict ----------------------------------------------------------------------------------------------------


def test_the_same_verdict_on_the_models_in_the_onnx_package() -> None:
    paths = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("model.onnx"))
    wrong = {str(path): ours(path) for path in paths if bool(refusal(str(path))) != bool(ours(path))}
    assert wrong == {}
    assert len(paths) > 100


@pytest.mark.skipif(not LONG, reason="making the cases takes 20 s; `python -m bench model_files` counts them too")
def test_the_same_verdict_on_the_node_cases_of_onnx() -> None:
    wrong = {case.name: ours(case.model) for case in cases() if bool(refusal(case.model)) != bool(ours(case.model))}
    assert wrong == {}
    assert len(cases()) > 1800


@pytest.mark.parametrize("name", NAMES)
def test_the_same_verdict_on_the_corpus(name: str, corpus: Corpus) -> None:
    problems = ours(corpus[name])
    assert bool(refusal(str(corpus[name]))) == bool(problems), problems


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40 if LONG else 1))
def test_the_same_verdict_on_broken_models(seed: int) -> None:
    rng, refused = random.Random(seed), 0
    count = 1000 if LONG else 800
    for _ in range(count):
        model = onnx.ModelProto.FromString(rng.choice(_BASES))
        done = [mutate(model, rng) for _ in range(rng.choice((1, 1, 1, 2)))]
        try:
            problems = ours(model.SerializeToString())
        except LoadError:
            continue  # the bytes are no model any more
        verdict = refusal(model)
        assert bool(verdict) == bool(problems), f"{done}: {verdict!r} against {problems}"
        refused += bool(verdict)
    assert count / 3 < refused < count


_BASES = [model.SerializeToString() for model in bases()]


def test_the_models_that_are_broken_were_valid() -> None:
    for model in bases():
        assert refusal(model) == ""
        assert onnxlab.check(model) == []


# -- pins -----------------------------------------------------------------------------------------------------------


def edit_of(change: Callable[[onnx.ModelProto], Any], base: Callable[[], onnx.ModelProto] = chain) -> onnx.ModelProto:
    model = base()
    change(model)
    return model


def loop_model() -> onnx.ModelProto:
    return helper.make_model(loops(), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def relu(model: onnx.ModelProto) -> onnx.NodeProto:
    return model.graph.node[1]


def add_attribute(node: onnx.NodeProto, **fields: Any) -> None:
    node.attribute.add(**fields)


def _inner(model: onnx.ModelProto) -> onnx.GraphProto:
    """The innermost branch of `branches`."""
    outer = next(a for a in model.graph.node[1].attribute if a.name == "then_branch").g
    return next(a for a in outer.node[0].attribute if a.name == "then_branch").g


def _unsorted() -> onnx.SparseTensorProto:
    tensor = sparse("unsorted")
    tensor.indices.int64_data[:] = [4, 1]
    return tensor


# (code, name of the node it is pinned to or "", what breaks the chain model or another)
BROKEN: list[tuple[str, str, onnx.ModelProto]] = [
    ("ir-version", "", edit_of(lambda m: m.ClearField("ir_version"))),
    ("ir-version", "", edit_of(lambda m: setattr(m, "ir_version", 99))),
    ("missing-opset", "", edit_of(lambda m: m.ClearField("opset_import"))),
    ("opset", "", edit_of(lambda m: setattr(m, "ir_version", 2))),
    ("opset", "", edit_of(lambda m: setattr(m.opset_import[0], "version", 1 << 40))),
    ("metadata", "", edit_of(lambda m: m.metadata_props.extend(2 * [onnx.StringStringEntryProto(key="a")]))),
    ("graph-name", "", edit_of(lambda m: m.graph.ClearField("name"))),
    ("value-type", "", edit_of(lambda m: m.graph.output[0].ClearField("type"))),
    ("value-type", "", edit_of(lambda m: m.graph.output[0].type.tensor_type.ClearField("shape"))),
    ("value-name", "", edit_of(lambda m: m.graph.input.add(type=m.graph.input[0].type))),
    ("graph-input", "", edit_of(lambda m: m.graph.input.append(m.graph.input[0]))),
    ("graph-output", "", edit_of(lambda m: m.graph.output.add(name="missing", type=m.graph.output[0].type))),
    ("initializer-name", "", edit_of(lambda m: m.graph.initializer.append(m.graph.initializer[0]))),
    ("initializer-input", "", edit_of(lambda m: setattr(m, "ir_version", 3))),
    ("tensor-data", "", edit_of(lambda m: m.graph.initializer[0].int32_data.append(1))),
    ("tensor-data", "", edit_of(lambda m: m.graph.initializer[0].ClearField("float_data"))),
    ("tensor-data", "", edit_of(lambda m: setattr(m.graph.initializer[0], "data_type", TensorProto.INT64))),
    ("tensor-size", "", edit_of(lambda m: m.graph.initializer[0].float_data.pop())),
    ("tensor-shape", "", edit_of(lambda m: m.graph.initializer[0].dims.append(-1))),
    ("tensor-shape", "", edit_of(lambda m: m.graph.initializer[0].dims.extend([1 << 40, 1 << 40]))),
    ("tensor-type", "", edit_of(lambda m: m.graph.initializer[0].ClearField("data_type"))),
    ("tensor-type", "", edit_of(lambda m: setattr(m.graph.initializer[0], "data_type", 99))),
    ("single-assignment", "a", edit_of(lambda m: m.graph.node[2].output.__setitem__(0, "x"))),
    ("single-assignment", "a", edit_of(lambda m: m.graph.node[2].output.__setitem__(0, "c_out"))),
    ("undefined-value", "r", edit_of(lambda m: relu(m).input.__setitem__(0, "missing"))),
    ("cycle", "r", edit_of(lambda m: relu(m).input.__setitem__(0, "y"))),
    ("cycle", "r", edit_of(lambda m: relu(m).input.__setitem__(0, "r_out"))),
    ("order", "r", edit_of(lambda m: m.graph.node.insert(0, m.graph.node.pop(1)))),
    ("operator", "r", edit_of(lambda m: relu(m).ClearField("op_type"))),
    ("no-values", "r", edit_of(lambda m: (relu(m).ClearField("input"), relu(m).ClearField("output")))),
    ("missing-opset", "r", edit_of(lambda m: setattr(relu(m), "domain", "nowhere"))),
    ("unknown-operator", "r", edit_of(lambda m: setattr(relu(m), "op_type", "Rleu"))),
    ("unknown-operator", "r", edit_of(lambda m: setattr(relu(m), "op_type", "RMSNormalization"))),
    ("deprecated", "r", edit_of(lambda m: setattr(relu(m), "op_type", "Upsample"))),
    ("arity", "r", edit_of(lambda m: relu(m).input.append("x"))),
    ("arity", "r", edit_of(lambda m: relu(m).input.__setitem__(0, ""))),
    ("attribute-name", "r", edit_of(lambda m: add_attribute(relu(m), i=1, type=2))),
    ("attribute-unknown", "r", edit_of(lambda m: add_attribute(relu(m), name="slope", f=1.0, type=1))),
    ("attribute-repeated", "c", edit_of(lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]))),
    ("attribute-type", "c", edit_of(lambda m: add_attribute(m.graph.node[0], name="group", f=1.0, type=1))),
    ("attribute-value", "c", edit_of(lambda m: m.graph.node[0].attribute[0].floats.append(1.0))),
    ("attribute-missing", "r", edit_of(lambda m: setattr(relu(m), "op_type", "Cast"))),
    ("hidden-name", "neg", edit_of(lambda m: _inner(m).node[0].output.__setitem__(0, "x"), branches)),
    ("graph-output", "inner", edit_of(lambda m: setattr(_inner(m).output[0], "name", "h"), branches)),
    ("function-repeated", "", edit_of(lambda m: m.functions.append(m.functions[0]), calls)),
    ("function-cycle", "", edit_of(lambda m: setattr(m.functions[0].node[0], "op_type", "Outer") or setattr(
        m.functions[0].node[0], "domain", "local"), calls)),
    ("function-opset", "", edit_of(lambda m: setattr(m.functions[0].opset_import[0], "version", 5), calls)),
    ("function-domain", "", edit_of(lambda m: m.functions[0].ClearField("domain"), calls)),
    ("function-output", "", edit_of(lambda m: m.functions[0].output.append("w"), calls)),
    ("sparse-tensor", "", edit_of(lambda m: m.graph.sparse_initializer.append(_unsorted()))),
    ("undefined-value", "add_outer", edit_of(lambda m: m.graph.node[0].output.__setitem__(0, "other"), loop_model)),
]  # fmt: skip


@pytest.mark.parametrize(("code", "name", "model"), BROKEN, ids=[f"{n}-{row[0]}" for n, row in enumerate(BROKEN)])
def test_each_fault_is_named_pinned_and_comes_with_what_to_do(code: str, name: str, model: onnx.ModelProto) -> None:
    assert refusal(model)
    graph = ModelGraph(model)
    problems = checks.Checker(graph).problems()
    (problem, *_) = [problem for problem in problems if problem.code == code]
    assert problem.severity == "error"
    assert problem.hint
    assert (graph.nodes[problem.node].name if problem.node else "") == name, str(problem)


def test_nodes_of_one_name_are_named_as_onnxruntime_refuses_them() -> None:
    model = chain()
    for node in model.graph.node[:2]:
        node.name = "twice"
    assert refusal(model) == ""
    (problem,) = onnxlab.check(model)
    assert (problem.code, problem.severity) == ("node-name", "warning")
    assert "2 nodes of the graph are called 'twice'" in problem.message
    model.graph.node[1].name = model.graph.node[0].name = ""
    assert onnxlab.check(model) == []


def test_all_problems_are_listed() -> None:
    model = chain()
    model.graph.node[0].op_type = "Covn"
    model.graph.node[1].input.append("x")
    model.graph.node[2].attribute.add(name="axis", i=1, type=2)
    model.graph.output[0].ClearField("type")
    model.graph.initializer[0].float_data.pop()
    assert {problem.code for problem in onnxlab.check(model, types=False)} == {
        "unknown-operator", "arity", "attribute-unknown", "value-type", "tensor-size",
    }  # fmt: skip


def test_errors_beyond_those_of_onnx_have_a_reason() -> None:
    model = chain()
    model.graph.initializer[0].float_data.append(1.0)
    assert refusal(model) == ""
    (problem,) = onnxlab.check(model, types=False)
    assert problem.code in checks.BEYOND
    assert "has 13 entries of float_data; expected 12 entries, found 13 entries" in str(problem)


def test_operators_that_onnx_does_not_know_are_checked_by_the_schema_that_is_registered_here() -> None:
    for domain in ("custom", "ai.onnx.ml"):
        schemas.register(schemas.Schema(domain, "Mine", 1, attributes={"k": schemas.AttributeSchema("k", "int", True)}))
        try:
            model = chain()
            model.opset_import.add(domain=domain, version=3)
            model.graph.node[1].op_type, model.graph.node[1].domain = "Mine", domain
            problems = onnxlab.check(model, types=False)
            official = domain == "ai.onnx.ml"
            codes = [problem.code for problem in problems if problem.severity == "error"]
            assert codes == ["attribute-missing-unchecked"]
            assert ("unknown-to-onnx" in {problem.code for problem in problems}) is official
            assert bool(refusal(model)) is bool(list(checks.errors(problems))) is official
        finally:
            schemas.unregister(domain, "Mine")


def test_inference_adds_what_only_it_can_see() -> None:
    model = chain()
    model.graph.initializer[0].dims[1:2] = [2]
    del model.graph.initializer[0].float_data[8:]
    assert onnxlab.check(model, types=False) == []
    assert {problem.node for problem in onnxlab.check(model)} != {0}


def test_training_graphs_and_idle_functions_are_warned_of() -> None:
    model = chain()
    model.training_info.add().algorithm.node.add(op_type="Nonsense", input=["x"], output=["t"])
    problems = onnxlab.check(model, types=False)
    assert problems
    assert {problem.severity for problem in problems} == {"warning"}
    model = calls()
    model.ir_version = 7
    model.functions[0].node[0].op_type = "Nonsense"
    assert {problem.severity for problem in onnxlab.check(model, types=False)} <= {"warning"}
    assert refusal(model) == ""


def test_it_takes_models_paths_bytes_and_protos(tmp_path: Path) -> None:
    model = chain()
    model.graph.node[1].op_type = "Rleu"
    onnx.save(model, tmp_path / "m.onnx")
    forms = (model, model.SerializeToString(), tmp_path / "m.onnx", str(tmp_path / "m.onnx"), onnxlab.load(model))
    assert len({tuple(map(str, onnxlab.check(form))) for form in forms}) == 1


# -- external data --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """m/ with data files of every kind, 48 bytes each."""
    inside = tmp_path / "m"
    (inside / "deep").mkdir(parents=True)
    for name in ("w.bin", "deep/w.bin", "a..b", "../out.bin"):
        (inside / name).write_bytes(bytes(48))
    (inside / "link").symlink_to("w.bin")
    (inside / "up").symlink_to("..")
    (inside / "loop").symlink_to("loop")
    os.link(inside / "deep" / "w.bin", inside / "hard")
    os.mkfifo(inside / "pipe")
    return inside


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("w.bin", ""), ("./w.bin", ""), ("deep/../w.bin", "external-data-unreadable"), ("hard", "external-data"),
        ("", "external-data"), ("gone", "external-data"), ("deep", "external-data"), ("pipe", "external-data"),
        ("link", "external-data"), ("up/out.bin", "external-data"), ("../out.bin", "external-data"),
        ("/etc/passwd", "external-data"), ("a..b", "external-data"), ("loop", "external-data"),
        ("w.bin/x", "external-data"), ("deep/w.bin", "external-data"), (None, "external-data"),
    ],
)  # fmt: skip
def test_the_same_verdict_on_data_files(location: str | None, code: str, folder: Path) -> None:
    model = chain()
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    if location is not None:
        tensor.external_data.add(key="location", value=location)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    problems = onnxlab.check(folder / "m.onnx", types=False)
    assert [problem.code for problem in problems] == ([code] if code else [])
    assert bool(refusal(str(folder / "m.onnx"))) == bool(list(checks.errors(problems)))


@pytest.mark.parametrize("entries", [{"offset": "1"}, {"offset": "-1"}, {"offset": str(1 << 63)}, {"length": "49"}])
def test_ranges_outside_of_the_data_file(entries: dict[str, str], folder: Path) -> None:
    model = chain()
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    (problem,) = onnxlab.check(folder / "m.onnx", types=False)
    assert problem.code == "external-data-unreadable"


# -- live -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [branches, chain, calls, loop_model])
def test_after_every_edit_it_says_what_a_fresh_check_says(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "last_value", None, raising=False)
    model = onnxlab.load(make())
    for _ in random_edits(model, 25, seed=5):
        fresh = checks.Checker(model.graph).problems()
        assert sorted(map(str, model.check(types=False))) == sorted(map(str, fresh))


def test_it_follows_an_edit_and_its_undo() -> None:
    model = onnxlab.load(chain())
    assert model.check() == []
    model.graph.apply(onnxlab.graph.edit.changes.SetField(("model", 0), "ir_version", 3))
    assert [problem.code for problem in model.check()] == ["initializer-input"]
    model.undo()
    assert model.check() == []


def test_many_nodes_take_linear_time_and_an_edit_little() -> None:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], f"n{i}") for i in range(2000)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", "v2000"))
    model = onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", [x], [y])))
    calls_made = []
    real = checks.check_node  # type: ignore[attr-defined]
    checks.check_node = lambda *args: (calls_made.append(1), real(*args))[1]  # type: ignore[attr-defined]
    try:
        model.check()
        assert len(calls_made) == 2000
        model.nodes["n7"].name = "renamed"
        model.check()
        assert len(calls_made) == 2001
    finally:
        checks.check_node = real  # type: ignore[attr-defined]
