"""Help of every public name: one screen, each parameter described, and an example that runs with the output shown."""

import doctest
import inspect
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.analysis.cost.cost import Cost
from onnxlab.analysis.datasets.evaluation import Evaluation
from onnxlab.analysis.datasets.table import DatasetStatistics, ValueStatistics
from onnxlab.analysis.memory.timeline import MemoryTimeline
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.handles.structure import Structure
from onnxlab.model import Model
from onnxlab.model.files import Files
from onnxlab.model.running import Subgraph

SCREEN = 60
CLASSES: list[type] = [Model, Files, Structure, Subgraph, Node, Value, MemoryTimeline, Cost,
                       DatasetStatistics, ValueStatistics, Evaluation]  # fmt: skip


def public_names() -> Iterator[tuple[str, Any]]:
    """(name, object as it stands in its class) of every public name."""
    for name in onnxlab.__all__:
        if not name.startswith("__"):
            yield f"onnxlab.{name}", getattr(onnxlab, name)
    for cls in CLASSES:
        yield cls.__name__, cls
        for name in dir(cls):
            member = inspect.getattr_static(cls, name)
            if not name.startswith("_") and not inspect.ismemberdescriptor(member):
                yield f"{cls.__name__}.{name}", member


PUBLIC = dict(public_names())


def doc_of(member: Any) -> str:
    return inspect.cleandoc((member.fget if isinstance(member, property) else member).__doc__ or "")


@pytest.mark.parametrize("name", PUBLIC)
def test_help_fits_a_screen(name: str) -> None:
    page = pydoc.plain(pydoc.render_doc(PUBLIC[name]))
    assert len(page.splitlines()) <= SCREEN
    assert len(doc_of(PUBLIC[name]).splitlines()[0]) > 10


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = onnxlab.load()
    names = {
        "onnxlab": onnxlab, "onnx": onnx, "np": np, "model": model,
        "node": model.nodes["/stem/relu/Relu"], "value": model.value("stem/relu_out"),
    }  # fmt: skip
    text = doc_of(PUBLIC[name])
    assert "\nExamples:\n" in text
    example = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    assert example.examples
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    output: list[str] = []
    done = doctest.DocTestRunner(optionflags=flags).run(example, out=output.append)
    assert done.failed == 0, "".join(output)


@pytest.mark.parametrize("name", [name for name, member in PUBLIC.items() if inspect.isfunction(member)])
def test_every_parameter_is_described(name: str) -> None:
    signature = inspect.signature(PUBLIC[name])
    parameters = [parameter for key, parameter in signature.parameters.items() if key != "self"]
    text = doc_of(PUBLIC[name])
    sections = re.split(r"\n(Args|Returns|Yields|Raises|Examples):\n", text)
    section_of = dict(zip(sections[1::2], sections[2::2], strict=True))
    described = re.findall(r"^    (\w+(?:, \w+)*):", section_of.get("Args", ""), re.MULTILINE)
    assert ", ".join(described).split(", ") == ([parameter.name for parameter in parameters] or [""])
    returned = str(signature.return_annotation)
    if returned not in ("None", "<class 'inspect._empty'>"):
        assert "Returns" in section_of or "Yields" in section_of


def test_no_keywords_are_hidden() -> None:
    """Only attributes of operators, and names of symbols, are as many as their operator or model has."""
    hidden = [
        (name, parameter.name)
        for name, member in PUBLIC.items()
        if inspect.isfunction(member)
        for parameter in inspect.signature(member).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name not in ("attributes", "named")
    ]
    assert hidden == []
