"""Attributes with long lists: kept as arrays, equal to lists, every bit as it was through edits, files and journals."""

import copy
import gc
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.protos.attributes import decode, encode, kind_of
from onnxlab.graph.protos.long_lists import LONG, LongList
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.infer import Inference
from onnxlab.infer.facts.policy import Policy
from onnxlab.notebook.panels.inspector import Inspector
from onnxlab.ops.base import prepared_constants
from tests.graph.edit.test_script import replayed

KINDS = {"ints": onnx.AttributeProto.INTS, "floats": onnx.AttributeProto.FLOATS, "strings": onnx.AttributeProto.STRINGS}


def items(kind: str, count: int, seed: int = 0) -> Any:
    """Odd ones among them: negative, NaN with a payload, infinite, no UTF-8, empty."""
    rng = np.random.default_rng(seed)
    if kind == "ints":
        return rng.integers(-(2**63), 2**63 - 1, count) >> rng.integers(0, 63, count)
    if kind == "floats":
        return rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    return rng.choice([b"LEAF", b"BRANCH_LEQ", b"", b"\xff\xfe", "é".encode()], count).tolist()


def attribute(kind: str, values: Any) -> onnx.AttributeProto:
    made = onnx.AttributeProto(name="a", type=KINDS[kind])
    if kind == "floats":
        data = np.asarray(values, "<f4").tobytes()
        made.MergeFromString(b"\x3a" + varint(len(data)) + data)
    else:
        getattr(made, kind).extend(np.asarray(values).tolist() if kind == "ints" else values)
    return made


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def custom(kind: str, values: Any) -> onnx.ModelProto:
    """A model with one node of an operator that nobody knows, with one attribute."""
    node = onnx.NodeProto(op_type="Odd", domain="some", input=["x"], output=["y"], name="odd")
    node.attribute.append(attribute(kind, values))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("some", 1)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports, ir_version=10)


def forest(trees: int = 2100, seed: int = 0, kind: str = "Regressor") -> onnx.ModelProto:
    """Trees with three nodes each: one branch, two leaves."""
    rng = np.random.default_rng(seed)
    votes = "target" if kind == "Regressor" else "class"
    lists = {
        "nodes_treeids": np.repeat(np.arange(trees), 3), "nodes_nodeids": np.tile([0, 1, 2], trees),
        "nodes_featureids": np.where(np.arange(3 * trees) % 3, 0, rng.integers(0, 4, 3 * trees)),
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * trees,
        "nodes_values": rng.normal(size=3 * trees).astype(np.float32),
        "nodes_truenodeids": np.tile([1, 0, 0], trees), "nodes_falsenodeids": np.tile([2, 0, 0], trees),
        f"{votes}_treeids": np.repeat(np.arange(trees), 2), f"{votes}_nodeids": np.tile([1, 2], trees),
        f"{votes}_ids": rng.integers(0, 3, 2 * trees), f"{votes}_weights": rng.normal(size=2 * trees),
    }  # fmt: skip
    plain = {name: np.asarray(values).tolist() for name, values in lists.items()}
    rest = {"n_targets": 3} if kind == "Regressor" else {"classlabels_int64s": [3, 5, 9]}
    outputs = ["y"] if kind == "Regressor" else ["label", "y"]
    node = helper.make_node(f"TreeEnsemble{kind}", ["x"], outputs, "forest", domain="ai.onnx.ml", **plain, **rest)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    for info, elem in zip(reversed(infos), (TensorProto.FLOAT, TensorProto.INT64), strict=False):
        info.type.tensor_type.elem_type = elem
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [x], infos), opset_imports=imports, ir_version=10)


# -- what it is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_like_the_list_that_it_is(kind: str) -> None:
    values = [0.0, *range(1, LONG + 3)] if kind == "floats" else list(range(LONG + 3))
    values = [f"text {value}" for value in values] if kind == "strings" else values
    made = decode(encode("a", values, kind))
    assert isinstance(made, LongList)
    assert list(made) == values == made[:]
    assert made == values
    assert made == tuple(values)
    assert made == np.array(values, object if kind == "strings" else None)
    assert made != values[:-1]
    assert made != [*values[:-1], values[0]]
    assert made != "text"
    assert not made == 3  # noqa: SIM201 - it is __eq__ that is asked
    assert (made[-1], made[3:5], made[0]) == (values[-1], values[3:5], values[0])
    assert type(made[0]) is type(values[0])
    with pytest.raises(IndexError):
        made[len(values)]
    assert values[7] in made
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == values
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(made)[0] = values[1]
    assert np.array(made).dtype == {"ints": np.int64, "floats": np.float32, "strings": object}[kind]


def test_its_text_is_short() -> None:
    assert repr(decode(attribute("ints", np.arange(10_000)))) == "[0, 1, 2, … 10,000 items]"
    assert len(repr(decode(attribute("strings", [b"x" * 10_000] * (LONG + 1))))) < 200


def test_a_short_list_stays_a_list() -> None:
    made = decode(attribute("ints", np.arange(LONG)))
    assert type(made) is list
    assert made == list(range(LONG))


def test_whoever_decodes_it_while_it_is_held_gets_the_same() -> None:
    model = onnxlab.load(forest())
    node = model.nodes["forest"]
    held = node.attributes["nodes_values"]
    assert node.attributes["nodes_values"] is held
    assert model.graph.snapshot().main.nodes[0].attributes["nodes_values"] is held
    assert model.inference is not None
    number = id(held)
    node.attributes["nodes_values"] = held.array + 1
    assert node.attributes["nodes_values"] is not held
    assert node.attributes["nodes_values"] == held.array + 1
    assert id(held) == number


def test_who_holds_what_was_replaced_keeps_it() -> None:
    model = onnxlab.load(forest())
    node = model.nodes["forest"]
    snapshot = model.graph.snapshot()
    before = np.array(node.attributes["nodes_featureids"])
    held = node.attributes["nodes_featureids"]
    node.attributes["nodes_featureids"] = np.zeros_like(before)
    assert held == before
    assert snapshot.main.nodes[0].attributes["nodes_featureids"] == before
    assert node.attributes["nodes_featureids"] == [0] * len(before)
    model.undo()
    assert node.attributes["nodes_featureids"] == before


# -- writing ---------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from([0, 1, 5, LONG, LONG + 1]), st.integers(0, 2**32))
def test_what_is_decoded_and_encoded_has_the_same_bytes(kind: str, count: int, seed: int) -> None:
    proto = attribute(kind, items(kind, count, seed))
    value = decode(proto)
    if kind == "floats" and not isinstance(value, LongList):  # Python's own floats quieten a signalling NaN
        value = np.array(proto.floats, np.float32)
    assert encode("a", value, kind).SerializeToString() == proto.SerializeToString()


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from([0, 1, LONG, LONG + 1]), st.integers(0, 2**32), st.booleans())
def test_files_come_back_byte_for_byte_packed_or_not(kind: str, count: int, seed: int, pack: bool) -> None:
    values = items(kind, count, seed)
    data = proto = custom(kind, values).SerializeToString()
    if pack and kind == "floats" and count:
        data = as_packed(proto, values)
    model = onnxlab.load(data)
    node = model.nodes[0]
    node.name = "other"
    expected = onnx.ModelProto.FromString(data)
    expected.graph.node[0].name = "other"
    assert model.to_bytes() == expected.SerializeToString()
    if count:
        node.attributes["a"] = onnx.AttributeProto(name="a", type=KINDS[kind])  # there, and empty
        assert len(node.attributes["a"]) == 0
        del node.attributes["a"]
        assert "a" not in node.attributes
    while model.history.labels:
        model.undo()
    assert model.to_bytes() == data
    node.doc_string = "kept"
    node.doc_string = ""
    model.redo()
    assert [each.SerializeToString() for each in model.proto.graph.node[0].attribute] == [
        attribute(kind, values).SerializeToString()
    ]


def as_packed(data: bytes, values: Any) -> bytes:
    """The model with its floats in one piece, as some writers have them."""
    unpacked = b"".join(b"\x3d" + each.tobytes() for each in np.asarray(values, "<f4"))
    piece = np.asarray(values, "<f4").tobytes()
    proto = onnx.ModelProto.FromString(data)
    del proto.graph.node[0].attribute[:]
    given_ = attribute("floats", values).SerializeToString().replace(unpacked, b"\x3a" + varint(len(piece)) + piece)
    node = proto.graph.node[0].SerializeToString() + b"\x2a" + varint(len(given_)) + given_
    del proto.graph.node[:]
    rest = b"\x0a" + varint(len(node)) + node + proto.graph.SerializeToString()
    proto.ClearField("graph")
    return proto.SerializeToString() + b"\x3a" + varint(len(rest)) + rest


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("ints", np.array([1, 2**64 - 1], np.uint64)),
        ("ints", [1, 2**63]),
        ("ints", [1, 2.5]),
        ("ints", np.array([1.0])),
        ("floats", [1.0, "2"]),
        ("floats", [1.0, True]),
        ("floats", np.zeros((2, 2), np.float32)),
        ("floats", np.float32(3)),
        ("ints", np.array(3)),
        ("strings", ["a", 1]),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_left(kind: str, values: Any) -> None:
    with pytest.raises(EditError, match=r"takes a list of .*got"):
        encode("a", values, kind)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, np.bool_, ">i8"])
def test_arrays_of_any_kind_of_integers_make_ints(dtype: Any) -> None:
    assert list(encode("a", np.array([0, 1, 1], dtype), "ints").ints) == [0, 1, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f4", np.int32])
def test_arrays_of_any_kind_of_numbers_make_floats(dtype: Any) -> None:
    assert list(encode("a", np.array([0, 1, 3], dtype), "floats").floats) == [0, 1, 3]


def test_the_history_holds_a_list_once_and_its_script_makes_the_same_bytes() -> None:
    model = onnxlab.load(custom("floats", items("floats", LONG + 1)))
    before = model.to_bytes()
    node = model.nodes[0]
    node.attributes["a"] = attribute("floats", items("floats", LONG + 5, 1))
    (step,) = model.history._done
    assert step.deeds[0].change.proto.message() is model.proto.graph.node[0].attribute[0]  # type: ignore[attr-defined]
    assert replayed(model, before) == model.to_bytes()
    node.attributes["a"] = attribute("floats", items("floats", LONG + 2, 2))
    assert step.deeds[0].change.proto is model.history._done[1].changes[0].proto  # type: ignore[attr-defined]
    assert replayed(model, before) == model.to_bytes()


EDITS = (
    "same length", "longer", "shorter", "one item", "short", "empty", "gone", "documented", "other type",
    "undo", "redo",
)  # fmt: skip


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.lists(st.sampled_from(EDITS), min_size=1, max_size=6), st.integers(0, 2**32))
@pytest.mark.slow
def test_any_edits_give_what_they_say_and_undo_to_the_same_bytes(kind: str, wanted: list[str], seed: int) -> None:
    """Of a list that is overwritten where it stands, and of what takes its place."""
    data = custom(kind, items(kind, LONG + 9, seed)).SerializeToString()
    model = onnxlab.load(data)
    node, states, held = model.nodes[0], [data], []
    for number, edit in enumerate(wanted):
        if edit == "undo" and model.history.labels:
            model.undo()
            assert model.to_bytes() == states[len(model.history.labels)]
        elif edit == "redo" and model.history.redo_labels:
            model.redo()
            assert model.to_bytes() == states[len(model.history.labels)]
        elif edit in ("undo", "redo"):
            continue
        else:
            proto = edited(kind, edit, model.proto.graph.node[0].attribute, seed + number)
            view = model.graph.snapshot().main.nodes[0].attributes
            if "a" in view:
                held.append((view, view["a"], view.proto("a").SerializeToString(), [*view["a"]]))
            if proto is None:
                node.attributes.pop("a", None)
            else:
                node.attributes["a"] = proto
            expected = [] if proto is None else [proto.SerializeToString()]
            assert [each.SerializeToString() for each in model.proto.graph.node[0].attribute] == expected
            del states[len(model.history.labels) :]
            states.append(model.to_bytes())
        for view, value, before, listed in held:
            assert view.proto("a").SerializeToString() == before
            assert view["a"] is value
            np.testing.assert_equal([*value], listed)
    assert replayed(model, data) == model.to_bytes()
    for _ in range(len(model.history.labels)):
        model.undo()
        assert model.to_bytes() == states[len(model.history.labels)]
    for _ in range(len(model.history.redo_labels)):
        model.redo()
        assert model.to_bytes() == states[len(model.history.labels)]


def edited(kind: str, edit: str, now: Any, seed: int) -> onnx.AttributeProto | None:
    """What an edit makes of the attribute as it is."""
    count = {"longer": LONG + 500, "shorter": LONG + 1, "short": 3, "empty": 0}.get(edit, LONG + 9)
    made = attribute(kind, items(kind, count, seed))
    if edit == "gone" and len(now):
        return None
    if edit == "one item" and len(now) and getattr(now[0], kind):
        made = onnx.AttributeProto.FromString(now[0].SerializeToString())
        getattr(made, kind)[0] = items(kind, 1, seed)[0]
    if edit == "documented":
        made.doc_string = "of this list"
    return attribute("ints", np.arange(LONG + 3)) if edit == "other type" else made


def test_edits_and_undo_take_no_memory_of_the_model() -> None:
    """protobuf keeps what a message once took until the whole model goes: lists are overwritten where they stand."""
    model = onnxlab.load(custom("ints", np.arange(LONG + 9)))
    node, stands = model.nodes[0], model.proto.graph.node[0].attribute[0]
    for number in range(4):
        node.attributes["a"] = attribute("ints", np.arange(LONG + 9) + number)
    while model.history.labels:
        model.undo()
    assert model.proto.graph.node[0].attribute[0] is stands
    kept = model.history._undone[0].changes[0].proto  # type: ignore[attr-defined]
    assert kept.attribute is None
    assert kept._stored.dtype == np.uint16
    assert len({id(each) for step in model.history._undone for each in held(step)}) == 4, "each list once"


def held(step: Any) -> list[Any]:
    """The lists that a step of the history holds apart from the model."""
    protos = [change.proto for change in (*step.changes, *(deed.change for deed in step.deeds))]
    return [proto for proto in protos if proto.attribute is None]


def test_a_journal_brings_it_back_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "m.onnx"
    onnx.save(custom("floats", items("floats", LONG + 1)), path)
    model = onnxlab.load(path)
    for seed in (1, 2):
        model.nodes[0].attributes["a"] = attribute("floats", items("floats", LONG + seed, seed))
    expected = model.to_bytes()
    model._journal._holder.end(keep=True)
    with pytest.warns(match="never saved"):
        again = onnxlab.load(path)
    assert again.files.recover() == 2
    assert again.to_bytes() == expected


# -- inference and runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_shapes_and_runs_are_onnxruntimes(kind: str) -> None:
    proto = forest(kind=kind)
    model = onnxlab.load(proto)
    assert str(model.fact("y")) == "float32[n,3]"
    assert not model.diagnostics
    x = np.random.default_rng(5).normal(size=(7, 4)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for array, theirs in zip(model.run({"x": x}).values(), session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(array, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_onnx_says_the_same_of_what_is_cut_off(kind: str) -> None:
    graph = onnxlab.load(forest(kind=kind)).graph
    found = Inference(graph, policy=Policy(cross_check=True))
    (operator,) = found._walker.catalogue.by_node.values()
    assert not found.diagnostics
    assert sum(len(each.ints) for each in operator.proto.attribute) < 20  # type: ignore[union-attr]


def test_a_wrong_type_of_a_long_list_is_told_in_short() -> None:
    proto = forest()
    wrong = next(each for each in proto.graph.node[0].attribute if each.name == "nodes_values")
    wrong.CopyFrom(onnx.AttributeProto(name="nodes_values", type=KINDS["ints"], ints=range(LONG + 1)))
    (problem,) = onnxlab.load(proto).diagnostics
    assert problem.code == "attribute-type"
    assert len(problem.message) < 200


def test_an_edit_keeps_the_other_lists_and_drops_the_forest_made_of_the_old_one() -> None:
    model = onnxlab.load(forest())
    node, x = model.nodes["forest"], np.ones((2, 4), np.float32)
    before = model.run({"x": x})["y"]
    held = node.attributes["nodes_modes"]
    kept = len(prepared_constants._remembered)
    for scale in (2, 3, 4):
        node.attributes["target_weights"] = np.asarray(node.attributes["target_weights"]) * scale
        after = model.run({"x": x})["y"]
    np.testing.assert_allclose(after, before * 24, rtol=1e-4)
    assert node.attributes["nodes_modes"] is held
    gc.collect()
    assert len(prepared_constants._remembered) <= kept + 1


def test_a_type_that_is_left_out_is_still_read() -> None:
    proto = attribute("ints", np.arange(LONG + 1))
    proto.ClearField("type")
    assert kind_of(proto) == "ints"
    assert decode(proto) == list(range(LONG + 1))


# -- views -----------------------------------------------------------------------------------------------------------


def test_no_view_sends_or_prints_more_than_a_preview() -> None:
    model = onnxlab.load(forest())
    (node,) = model.graph.nodes.values()
    inspector = Inspector(model.graph, model.inference.fact, Hierarchy(model.graph))
    rows = {row["name"]: row for row in inspector.node(node.id, [])["attributes"]}
    row = rows["nodes_modes"]
    assert row["value"][:2] == ["BRANCH_LEQ", "LEAF"]
    assert row["value"][-1] == "… 6,300 items"
    assert not row["editable"]
    assert len(json.dumps(rows)) < 20_000
    assert len(repr(model.nodes["forest"].attributes)) < 2_000
    assert len(str(model.explain("y"))) < 2_000


def test_a_snapshot_of_another_thread_never_sees_half_an_edit() -> None:
    model = onnxlab.load(custom("ints", np.zeros(LONG + 9, np.int64)))
    node, mixed, done = model.nodes[0], [], threading.Event()

    def look() -> None:
        while not done.is_set():
            value = model.graph.snapshot().main.nodes[0].attributes["a"]
            found = (np.asarray(value), np.asarray(value[:]), np.array(list(value)))
            mixed.extend(each for each in found if each.min() != each.max())

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(100):
        node.attributes["a"] = attribute("ints", np.full(LONG + 9, number))
    done.set()
    thread.join()
    assert not mixed
