import numpy as np
import pytest

from onnxlab.execution.base.dependents import Dependents
from onnxlab.graph import edits
from tests.execution.support.models import graph

BRANCHING = """
branching (float[2] x, bool p) => (float[2] y, float[2] z)
<float[2] w = {1, 2}, float[2] v = {3, 4}>
{
    a = Add (x, w)
    b = If (p) <
        then_branch = then () => (float[2] t) { t = Neg (a) },
        else_branch = otherwise () => (float[2] e) { e = Mul (v, v) }
    >
    y = Relu (b)
    z = Add (x, x)
}
"""


class Case:
    def __init__(self):
        self.graph = graph(BRANCHING)
        self.known = Dependents(self.graph)
        self.graph.followers.append(self.known.follow)

    def of(self, name):
        return {self.graph.values[vid].name for vid in self.known.of([self.graph.main.names[name]])}


@pytest.fixture
def case():
    return Case()


def test_bodies_count_as_their_node(case):
    assert case.of("w") == {"a", "b", "y"}
    assert case.of("v") == {"b", "y"}
    assert case.of("x") == {"a", "b", "y", "z"}


EDITS = {
    "data": lambda g: edits.set_initializer(g, g.values[g.main.names["w"]], np.zeros(2, np.float32)),
    "wires": lambda g: edits.set_input(g, g.nodes[g.values[g.main.names["z"]].producer[0]], 1, "w"),
    "name": lambda g: edits.rename_value(g, g.values[g.main.names["a"]], "other"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_remembered_is_what_a_new_walk_finds(case, edit):
    before = {name: case.known.of([ident]) for name, ident in case.graph.main.names.items()}
    EDITS[edit](case.graph)
    for name, ident in case.graph.main.names.items():
        assert case.known.of([ident]) == Dependents(case.graph).of([ident]), name
    case.graph.undo()
    assert before == {name: case.known.of([ident]) for name, ident in case.graph.main.names.items()}


def test_an_edit_of_data_forgets_nothing(case, monkeypatch):
    case.of("w")
    EDITS["data"](case.graph)
    monkeypatch.setattr(case.known, "_made_of", None)
    assert case.of("w") == {"a", "b", "y"}
