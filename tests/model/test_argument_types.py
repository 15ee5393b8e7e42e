"""Arguments of a wrong type are refused in words: TypeError for a type, ValueError for a number out of range."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab

WRONG: dict[str, Callable[[Any], object]] = {
    "explain": lambda model: onnxlab.explain_error(None),  # type: ignore[arg-type]
    "extract a number": lambda model: model.extract(3),
    "extract nothing": lambda model: model.extract(None),
    "insert": lambda model: model.insert_node("Relu", model.value("logits")),
    "operator": lambda model: setattr(next(iter(model.nodes)), "op_type", 3),
    "an operator to replace by": lambda model: next(iter(model.nodes)).replace(None),
    "a domain to replace by": lambda model: next(iter(model.nodes)).replace("Relu", 5),
    "limits": lambda model: model.run(limits=5),
    "seed": lambda model: model.sample_inputs(seed="a"),
    "limits of a subgraph": lambda model: model.subgraph("/stem/relu/Relu").run(limits=5),
    "seed of a subgraph": lambda model: model.subgraph("/stem/relu/Relu").run(seed=1.5),
    "threads": lambda model: model.run(threads="two"),
    "deadline": lambda model: onnxlab.Limits(deadline="a"),  # type: ignore[arg-type]
    "save": lambda model: onnxlab.save(3, "m.onnx"),  # type: ignore[arg-type]
    "trust": lambda model: onnxlab.load(trust=3),  # type: ignore[arg-type]
    "types of inputs": lambda model: onnxlab.load(inputs=3),  # type: ignore[arg-type]
    "serve": lambda model: onnxlab.serve(3),  # type: ignore[arg-type]
    "yes": lambda model: onnxlab.Limits(iterations=True),
    "progress": lambda model: model.run(model.sample_inputs(), progress=[1]),
    "format": lambda model: model.save("m.onnx", format=1.0),
    "data file": lambda model: model.save("m.onnx", external_data=3),
    "an array of no dims as values": lambda model: model.extract(np.array(1)),
    "an array of no dims as nodes": lambda model: model.remove(np.array(1)),
    "samples": lambda model: model.simplify(samples=3),
    "a sample": lambda model: model.simplify(samples=["image"]),
    "names to protect": lambda model: model.simplify(protect=5),
    "a name to protect": lambda model: model.simplify(protect=[5]),
    "rules": lambda model: model.rewrite(None),
    "a rule": lambda model: model.rewrite([3]),
    "nodes of a rewrite": lambda model: model.rewrite("Relu(x) => Abs(x)", nodes=2.5),
    "ignored": lambda model: onnxlab.diff(model, model, ignore=None),  # type: ignore[arg-type]
    "an ignored word": lambda model: onnxlab.diff(model, model, ignore=[1]),  # type: ignore[list-item]
    "tolerance": lambda model: onnxlab.diff(model, model, tolerance="a"),  # type: ignore[arg-type]
    "patch": lambda model: model.patch(None),
    "a pattern": lambda model: model.find_pattern(b"Relu(x)"),
    "the text of a rule": lambda model: onnxlab.rule(b"Relu(x) => x"),  # type: ignore[arg-type]
    "conditions": lambda model: onnxlab.rule("Relu(x) => Abs(x)", where=3),  # type: ignore[arg-type]
    "metrics": lambda model: onnxlab.evaluate(model, model, [], metric=3),  # type: ignore[arg-type]
    "a pinned value": lambda model: model.pin(["logits"], 1.0),
    "a shape without dims": lambda model: model.add_input("more", "float32", np.array(1)),
    "inputs of a memory": lambda model: model.memory(inputs=3),
    "inputs of a cost": lambda model: model.cost(inputs=b"x"),
    "a follower": lambda model: model.subscribe(3),
    "a way to share": lambda model: model.memory(share=3),
    "threads of a profile": lambda model: model.profile(threads="two"),
    "limits of a comparison": lambda model: onnxlab.compare(model, model, limits=3),  # type: ignore[arg-type]
    "sizes": lambda model: model.with_dims(8),
    "sizes of a memory": lambda model: model.memory(8),
    "sizes of a cost": lambda model: model.cost("batch"),
    "inputs of a node": lambda model: model.add_node("Relu", 3),
    "outputs of a node": lambda model: model.add_node("Relu", "image", 3),
    "operators to find": lambda model: model.find(3),
    "names to find": lambda model: model.find_values([3]),
    "a shape to find": lambda model: model.find(shape=4),
    "a kind to find": lambda model: model.find_values(kind=["input"]),
    "a path of a scope": lambda model: model.nx_of(b"x"),
    "a place": lambda model: model.node_at("", None),
    "wires": lambda model: model.insert(onnxlab.load(), connect="image"),
    "outputs to add": lambda model: model.insert(onnxlab.load(), add_outputs=None),
    "where to start": lambda model: model.structure.ancestors(None),
    "what is done to each copy": lambda model: model.for_each_copy("/stem/relu/Relu", None),
    "a watch": lambda model: model.watch("logits", 3),
    "counted values": lambda model: onnxlab.statistics(model, [], values=3),  # type: ignore[arg-type]
    "counted channels": lambda model: onnxlab.statistics(model, [], channels=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_types_are_refused_in_words(name: str) -> None:
    with pytest.raises(TypeError, match=": expected "):
        WRONG[name](onnxlab.load())


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Limits.bytes is -10: expected a number from 0 on"):
        onnxlab.Limits(bytes=-10)


@pytest.mark.parametrize("run", ["run", "sample_inputs", "subgraph"])
def test_seeds_are_numbers_from_0_on(run: str) -> None:
    model = onnxlab.load()
    call = {"run": model.run, "sample_inputs": model.sample_inputs, "subgraph": model.subgraph("/stem/relu/Relu").run}
    with pytest.raises(ValueError, match="seed is -1: expected a number from 0 on"):
        call[run](seed=-1)


def test_bytes_may_be_in_words() -> None:
    assert onnxlab.Limits(bytes="2GiB").bytes == 2 << 30  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'much' is no size"):
        onnxlab.Limits(bytes="much")  # type: ignore[arg-type]


def test_a_node_is_no_value() -> None:
    model = onnxlab.load()
    with pytest.raises(onnxlab.OnnxlabError, match="is a node, not a value"):
        model.extract(next(iter(model.nodes)))  # type: ignore[arg-type]


def test_what_is_no_model_is_not_checked() -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="not from int"):
        onnxlab.check(5)


def test_an_exception_is_explained_by_its_text() -> None:
    error = RuntimeError("Unsupported model IR version: 99, max supported IR version: 13")
    assert onnxlab.explain_error(error) == onnxlab.explain_error(str(error))


def test_one_name_need_not_be_in_a_list() -> None:
    model, rule = onnxlab.load(), "Relu(x) => Max(x, 0.0)"
    assert [
        application.place for application in model.rewrite(rule, nodes="/stem/relu/Relu", dry_run=True).applied
    ] == ["/stem/relu/Relu"]
    protected = model.rewrite(rule, protect="/stem/relu/Relu", dry_run=True)
    assert "/stem/relu/Relu" not in [application.place for application in protected.applied]
    assert len(protected.applied) == 4
    assert onnxlab.diff(model, model, ignore="names").ignored == {"names"}  # type: ignore[arg-type]
    verified = model.simplify(samples=model.sample_inputs())
    assert verified.verdict in ("bit equal", "equal within noise")


@pytest.mark.parametrize("tolerance", [-1.0, float("nan")])
def test_a_tolerance_is_a_number_from_0_on(tolerance: float) -> None:
    model = onnxlab.load()
    with pytest.raises(ValueError, match="expected a number from 0 on"):
        onnxlab.diff(model, model, tolerance=tolerance)


def test_levels_are_words() -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="use one of basic, extended, layout"):
        onnxlab.load().optimize(["basic"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, 1, np.array([1]), ["alpha"]])
def test_names_of_attributes_are_strings(name: Any) -> None:
    attributes = onnxlab.load().nodes["/stem/relu/Relu"].attributes
    with pytest.raises(onnxlab.OnnxlabError, match="the name of an attribute is a string"):
        attributes[name] = 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_of_data_files_are_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="its name "):
        onnxlab.load().save(tmp_path / "m.onnx", external_data=name)
    assert not list(tmp_path.iterdir())


def test_shards_have_at_least_one_byte(tmp_path: Path) -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="from 1 on"):
        onnxlab.load().save(tmp_path / "m.onnx", external_data=True, shard_bytes=0)


@pytest.mark.parametrize(("domain", "version"), [("com.microsoft", 2**70), ("com.microsoft", 0), (3, 1), (b"x", 1)])
def test_opsets_are_of_domains_and_versions(domain: Any, version: int) -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(onnxlab.OnnxlabError, match=r"is an integer from 1 to|is a string, as 'com.microsoft'"):
        model.opsets[domain] = version
    assert model.to_bytes() == before


NAMES: dict[str, Callable[[Any, Any], object]] = {
    "input": lambda model, name: model.add_input(name, "float32", [1]),
    "initializer": lambda model, name: model.add_initializer(name, np.zeros(2)),
    "operator": lambda model, name: model.add_node(name, "image"),
    "node": lambda model, name: model.add_node("Relu", "image", name=name),
    "prefix": lambda model, name: model.insert(onnxlab.load(), prefix=name),
    "function": lambda model, name: model.make_function("/stem/relu/Relu", name),
}


@pytest.mark.parametrize("place", NAMES)
@pytest.mark.parametrize("name", [3, b"x", ["x"], "\ud800"])
def test_names_are_strings(place: str, name: Any) -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(onnxlab.OnnxlabError, match=r"a name is a string, got|is half of a surrogate pair"):
        NAMES[place](model, name)
    assert model.to_bytes() == before


def test_what_is_not_there_is_refused_by_name() -> None:
    model = onnxlab.load()
    with pytest.raises(onnxlab.OnnxlabError, match="no value of the main graph is called 'nope'"):
        model.value_at("", "nope")
    with pytest.raises(onnxlab.OnnxlabError, match="the main graph has 24 nodes, so there is none at 24"):
        model.node_at("", 24)
    assert model.node_at("", -1) == model.nodes[-1]
    with pytest.raises(onnxlab.OnnxlabError, match="no textual format"):
        model.to_text(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("label", [None, 3, b"x", ["a"]])
def test_labels_of_edits_are_strings(label: Any) -> None:
    model = onnxlab.load()
    with pytest.raises(onnxlab.OnnxlabError, match="the label of an edit is a string"), model.edit(label):
        model.nodes[0].name = "first"
    assert model.version == 0


def test_ways_to_share_memory_are_known() -> None:
    with pytest.raises(ValueError, match="share is 'all': expected one of none, live, onnxruntime"):
        onnxlab.load().memory(share="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [b"x", {"N": 1}, "N"])
def test_shapes_are_lists_of_dims(shape: Any) -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="a shape is a list of dims"):
        onnxlab.load().add_input("more", "float32", shape)


def test_what_is_nearly_a_model_is_told_what_to_give() -> None:
    model = onnxlab.load()
    hints = {
        "give what its read() returns": io.BytesIO(model.to_bytes()),
        "give onnx.helper.make_model(graph)": model.proto.graph,
        "give its proto": model,
    }
    for hint, source in hints.items():
        with pytest.raises(onnxlab.OnnxlabError, match=re.escape(f"not from {type(source).__name__}; {hint}")):
            onnxlab.load(source)  # type: ignore[arg-type]


def test_a_file_that_is_cut_in_a_length_is_cut_off() -> None:
    data = onnxlab.load().to_bytes()
    with pytest.raises(onnxlab.OnnxlabError, match="it is cut off at the beginning of its opset_import; copy"):
        onnxlab.load(data[:-5])


def test_losses_are_of_a_known_format() -> None:
    with pytest.raises(onnxlab.OnnxlabError, match="'yaml' is no format; there are"):
        onnxlab.load().files.loss_report("yaml")
