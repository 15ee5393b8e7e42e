"""The declarations of the protocol and of the edits hold: for the TypeScript, the answers, the events, the methods."""

import base64
import inspect
import io
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.graph.edits import EDITS
from onnxlab.graph.edits.recording.python_calls import Assign, Item, PythonCall
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.notebook.edits.edit_requests import NOT_BY_HAND
from onnxlab.notebook.edits.kinds import KINDS
from onnxlab.notebook.protocol.events import EVENTS
from onnxlab.notebook.protocol.methods import METHODS
from onnxlab.notebook.protocol.pairs import PAIRS
from onnxlab.notebook.protocol.records import History
from onnxlab.notebook.protocol.schema import mismatch
from onnxlab.notebook.session.hub import hub_of
from onnxlab.notebook.widgets import html_page
from tests.notebook.conftest import Page, edit
from tests.support import twin


def test_the_typescript_is_what_python_declares() -> None:
    stale = [path.name for path, text in twin.files().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `python -m tests.support.twin`"


@pytest.fixture
def replies(page: Page, model: onnxlab.Model, tmp_path: Path) -> dict[str, Any]:
    """An answer to every method, by its name."""
    conv, value = model.nodes["/stem/conv"].id, model.value("w").id
    model.save(tmp_path / "m.onnx")
    np.savez(weights := io.BytesIO(), w=np.asarray(model.tensor("w")))
    usual = {
        "node": conv,
        "value": value,
        "nodes": [conv],
        "op": "Conv",
        "ok": True,
        "on": True,
        "position": 0,
        "run": 1,
    }
    params: dict[str, dict[str, Any]] = {
        name: {key: usual[key] for key, parameter in method.parameters.items() if parameter.required and key in usual}
        for name, method in METHODS.items()
    }
    params |= {
        "edit": edit("rename_node", conv, name="first"),
        "elements": {"value": value},
        "upload": {"file": "a", "name": "a.npz", "offset": 0, "data": base64.b64encode(weights.getvalue()).decode()},
        "file": {"file": "a"},
        "apply_weights": {"file": "a"},
        "open": {"file": "a"},
        "pin": {"value": model.value("r").id, "on": True},
        "boxes": {"value": model.value("r").id},
        "overlay": {"by": "flops"},
        "attribute_column": {"name": "strides"},
        "rewrites": {"level": "basic", "rules": [], "microsoft": False},
        "gains": {"level": "basic", "microsoft": False},
        "rewrite": {"level": "basic", "rules": ["relu_again"], "microsoft": False},
        "pattern": {"nodes": [conv], "numbers": True},
        "pattern_places": {"pattern": "Conv(x, *w)"},
        "watch": {"value": value, "text": "nan == 0"},
        "unwatch": {"place": 0},
        "cut_preview": {"outputs": [model.value("r").id], "inputs": [], "part": [], "siblings": True, "behind": False},
    }
    first, last = ["edit", "undo", "redo", "run", "stop", "upload"], ["open"]
    later = {"recover", "discard", "trees", *PAIRS}  # which need a model of trees, and two models
    middle = [name for name in METHODS if name not in {*first, *last, *later}]
    return {name: page.ask(name, **params[name]) for name in (*first, *middle, *last)}


def test_every_answer_is_what_its_method_declares(replies: dict[str, Any]) -> None:
    assert METHODS.keys() - replies.keys() == {"recover", "discard", "trees", *PAIRS}
    wrong = [problem for name, answer in replies.items() if (problem := mismatch(METHODS[name].answer, answer, name))]
    assert wrong == []


def test_every_event_is_what_is_declared(page: Page, replies: dict[str, Any], model: onnxlab.Model) -> None:
    page.ask("open", file=None)
    model.nodes[0].attributes["strides"] = [2, 2]
    page.session.close()
    declared = {typing.get_args(typing.get_type_hints(event_type)["event"])[0]: event_type for event_type in EVENTS}
    assert {event["event"] for event in page.events} >= {
        "commit", "progress", "history", "overlay", "opened", "closed",
    }  # fmt: skip
    wrong = [problem for event in page.events if (problem := mismatch(declared[event["event"]], event, event["event"]))]
    assert wrong == []
    assert mismatch(History, page.events[0]["history"]) == ""


def test_a_mismatch_is_seen(replies: dict[str, Any]) -> None:
    node = replies["inspect"]
    assert "lacks name" in mismatch(METHODS["inspect"].answer, {key: node[key] for key in node if key != "name"})
    assert "declares no more" in mismatch(METHODS["inspect"].answer, {**node, "more": 1})
    assert "since_version is 'new'" in mismatch(METHODS["inspect"].answer, {**node, "since_version": "new"})


def test_a_page_without_a_kernel_holds_what_methods_declare(model: onnxlab.Model) -> None:
    answers = html_page.record(hub_of(model))["answers"]
    assert answers.keys() == {name for name, method in METHODS.items() if method.recorded is not None} - PAIRS.keys()
    for name, recorded in answers.items():
        for answer in recorded.values():
            same = isinstance(answer, str) and answer in recorded
            assert same or mismatch(METHODS[name].answer, answer, name) == ""


# -- the table of edits ------------------------------------------------------------------------------------------------


OWNERS: dict[str, Any] = {"model": onnxlab.Model, "node": Node, "nodes": onnxlab.Model, "value": Value}
OTHERWISE = {"insert_model"}
"""Edits whose request has a file where Python takes a model."""
WIDER = {("set_model_field", "value")}
"""Parameters that Python takes as numbers too, where a form has texts."""
BY_KIND: dict[str, tuple[str, ...]] = {
    "text": ("str", "Literal"), "name": ("str",), "long": ("str",), "text?": ("str",), "bool": ("bool",),
    "int": ("int",),
    "version": ("int",), "value": ("Value", "ValueKey"), "value?": ("Value",), "values": ("Sequence", "Iterable"),
    "nodes": ("Sequence",), "names": ("Sequence",), "scope": ("str",), "function": ("str",), "dtype": ("Any",),
    "dim": ("int", "str"), "shape": ("Sequence",), "array": ("Any",), "attribute": ("Any",), "model_file": ("Model",),
}  # fmt: skip
"""What a method's annotation names for a kind of parameter."""


def method_of(name: str) -> Callable[..., Any]:
    """The method, property or mapping of a handle or of Model that makes an edit."""
    spec = EDITS[name]
    statement = spec.statement
    owner = onnxlab.Model if getattr(statement, "of_model", False) else OWNERS[spec.subject]
    if isinstance(statement, PythonCall):
        return getattr(owner, statement.method)
    if isinstance(statement, Assign):
        return getattr(owner, statement.attribute).fset
    assert isinstance(statement, Item)
    mapping = typing.get_type_hints(getattr(owner, statement.mapping).fget)["return"]
    return mapping.__setitem__


@pytest.mark.parametrize("name", [name for name, spec in EDITS.items() if spec.statement and name not in OTHERWISE])
def test_methods_have_the_parameters_of_the_table(name: str) -> None:
    spec, method = EDITS[name], method_of(name)
    skip = 2 if getattr(spec.statement, "of_model", False) else 1
    theirs = list(inspect.signature(method).parameters.values())[skip:]
    if not isinstance(spec.statement, PythonCall):
        assert len(theirs) >= len(spec.parameters)
        return
    known = {formal.name: formal for formal in theirs}
    takes_any = any(formal.kind is formal.VAR_KEYWORD for formal in theirs)
    for key, parameter in spec.parameters.items():
        if key == "domain" and key not in known:
            assert takes_any, "an operator's domain goes with its attributes"
            continue
        assert key in known, f"{method.__qualname__} has no parameter {key!r}"
        declared = known[key]
        if not parameter.required:
            assert declared.default == parameter.default, key
        if (name, key) in WIDER:
            continue
        assert any(word in str(declared.annotation) for word in BY_KIND[parameter.kind]), (key, declared.annotation)
    needed = {
        formal.name for formal in theirs if formal.default is formal.empty and formal.kind < formal.VAR_POSITIONAL
    }
    assert needed <= spec.parameters.keys()


def test_every_kind_of_the_table_is_known_to_requests() -> None:
    kinds = {parameter.kind for spec in EDITS.values() for parameter in spec.parameters.values()}
    assert kinds == KINDS.keys()
    assert kinds == BY_KIND.keys()


def test_every_edit_is_on_the_page() -> None:
    paths = [path for path in twin.SOURCES.rglob("*.ts*") if path.name not in ("edits.ts", "edit_fields.ts")]
    sources = "".join(path.read_text(encoding="utf-8") for path in paths)
    missing = [name for name in EDITS if name not in NOT_BY_HAND and f'"{name}"' not in sources]
    assert missing == ["set_inputs"], "inputs are set one by one"
