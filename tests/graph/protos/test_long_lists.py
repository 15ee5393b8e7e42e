"""Attributes with long lists: kept as arrays, equal to lists, every bit as it was through edits, files and journals."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.protos.attributes import decode, encode
from onnxlab.graph.protos.long_lists import LONG, LongList
from tests.graph.edit.test_script import replayed
from tests.graph.support.long_lists import KINDS, attribute, custom, forest, items, varint

# -- what it is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_like_the_list_that_it_is(kind: str) -> None:
    values = [0.0, *range(1, LONG + 3)] if kind == "floats" else list(range(LONG + 3))
    values = [f"text {value}" for value in values] if kind == "strings" else values
    decoded = decode(encode("a", values, kind))
    assert isinstance(decoded, LongList)
    assert list(decoded) == values == decoded[:]
    assert decoded == values
    assert decoded == tuple(values)
    assert decoded == np.array(values, object if kind == "strings" else None)
    assert decoded != values[:-1]
    assert decoded != [*values[:-1], values[0]]
    assert decoded != "text"
    assert not decoded == 3  # noqa: SIM201 - it is __eq__ that is asked
    assert (decoded[-1], decoded[3:5], decoded[0]) == (values[-1], values[3:5], values[0])
    assert type(decoded[0]) is type(values[0])
    with pytest.raises(IndexError):
        decoded[len(values)]
    assert values[7] in decoded
    assert copy.deepcopy(decoded) == pickle.loads(pickle.dumps(decoded)) == values
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(decoded)[0] = values[1]
    assert np.array(decoded).dtype == {"ints": np.int64, "floats": np.float32, "strings": object}[kind]


def test_its_text_is_short() -> None:
    assert repr(decode(attribute("ints", np.arange(10_000)))) == "[0, 1, 2, … 10,000 items]"
    assert len(repr(decode(attribute("strings", [b"x" * 10_000] * (LONG + 1))))) < 200


def test_a_short_list_stays_a_list() -> None:
    decoded = decode(attribute("ints", np.arange(LONG)))
    assert type(decoded) is list
    assert decoded == list(range(LONG))


def test_a_second_decoding_while_it_is_held_gives_the_same_array() -> None:
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
    assert [stored.SerializeToString() for stored in model.proto.graph.node[0].attribute] == [
        attribute(kind, values).SerializeToString()
    ]


def as_packed(data: bytes, values: Any) -> bytes:
    """The model with its floats in one piece, as some writers have them."""
    unpacked = b"".join(b"\x3d" + number.tobytes() for number in np.asarray(values, "<f4"))
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
def test_any_edits_give_what_they_say_and_undo_to_the_same_bytes(kind: str, edits: list[str], seed: int) -> None:
    """Of a list that is overwritten where it stands, and of what takes its place."""
    data = custom(kind, items(kind, LONG + 9, seed)).SerializeToString()
    model = onnxlab.load(data)
    node, states, held = model.nodes[0], [data], []
    for number, edit in enumerate(edits):
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
            assert [stored.SerializeToString() for stored in model.proto.graph.node[0].attribute] == expected
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
    """The attribute after an edit."""
    count = {"longer": LONG + 500, "shorter": LONG + 1, "short": 3, "empty": 0}.get(edit, LONG + 9)
    proto = attribute(kind, items(kind, count, seed))
    if edit == "gone" and len(now):
        return None
    if edit == "one item" and len(now) and getattr(now[0], kind):
        proto = onnx.AttributeProto.FromString(now[0].SerializeToString())
        getattr(proto, kind)[0] = items(kind, 1, seed)[0]
    if edit == "documented":
        proto.doc_string = "of this list"
    return attribute("ints", np.arange(LONG + 3)) if edit == "other type" else proto


def test_edits_and_undo_take_no_memory_of_the_model() -> None:
    """protobuf keeps what a message once took until the whole model goes: lists are overwritten where they stand."""
    model = onnxlab.load(custom("ints", np.arange(LONG + 9)))
    node, stands = model.nodes[0], model.proto.graph.node[0].attribute[0]
    for number in range(4):
        node.attributes["a"] = attribute("ints", np.arange(LONG + 9) + number)
    while model.history.labels:
        model.undo()
    assert model.proto.graph.node[0].attribute[0] is stands
    kept_items = model.history._undone[0].changes[0].proto  # type: ignore[attr-defined]
    assert kept_items.attribute is None
    assert kept_items._stored.dtype == np.uint16
    assert len({id(entry) for step in model.history._undone for entry in held(step)}) == 4, "each list once"


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
