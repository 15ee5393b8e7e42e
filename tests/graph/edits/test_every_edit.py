"""Every kind of edit that a Model offers, by itself: made, undone to the byte, and made again by the script of it.

The state machine of `test_edit_state_machine.py` mixes them; here each is seen to happen.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from unittest import mock

import onnx
import pytest

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits import EDITS, metadata
from onnxlab.model import Model
from tests.graph.edit.test_script import replayed
from tests.graph.edits.test_structure_edits import blocks, nested
from tests.graph.support.composite_edits import COMPOSITE, Pick
from tests.graph.support.models import branches, chain, nameless, state, untidy
from tests.graph.support.torture import torture

MODELS: tuple[Callable[[], onnx.ModelProto], ...] = (
    untidy, branches, nested, lambda: blocks(3), chain, torture,
)  # fmt: skip
ASKS = {"extract_changes_nothing", "boundary_is_consistent"}


def made(name: str, proto: onnx.ModelProto, numbers: tuple[int, int, int]) -> bool:
    """Whether an edit changed anything. Refused, it must not have; done, it is undone, and done again by its script."""
    model = Model(proto)
    before, index = model.to_bytes(), state(model.graph)
    try:
        COMPOSITE[name](Pick(model, numbers, 1))
    except EditError:
        assert model.to_bytes() == before
        assert state(model.graph) == index
        return False
    after = model.to_bytes()
    assert nameless(model.graph) == nameless(ModelGraph(onnx.ModelProto.FromString(after)))
    assert replayed(model, before) == after
    model.undo(to=0)
    assert model.to_bytes() == before
    assert state(model.graph) == index
    return after != before


@pytest.mark.parametrize("name", sorted(COMPOSITE))
def test_it_happens_and_is_undone_and_replayed(name: str) -> None:
    """Draws until it was seen to happen to two models."""
    draw, happened = Random(name), 0
    for number in range(300):
        model, numbers = MODELS[number % len(MODELS)], tuple(draw.randrange(10_000) for _ in range(3))
        happened += made(name, model(), numbers)
        if happened == 2 or (name in ASKS and number > 20):
            return
    assert happened, "no draw of this edit changed anything"


def test_no_edit_is_left_out() -> None:
    """Everything in the table of edits is called by some of these."""
    called = set()

    def noting(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def noted(*positional: object, **named: object) -> object:
            called.add(name)
            return function(*positional, **named)

        return noted

    expected = set(EDITS) | {"convert_opset"}
    patches = {name: noting(name, getattr(edits, name)) for name in expected}
    inner = {name: patches[name] for name in ("set_metadata", "set_opset")}
    with mock.patch.multiple(edits, **patches), mock.patch.multiple(metadata, **inner):  # type: ignore[call-overload]
        for number in range(15):
            for edit in COMPOSITE.values():
                model = Model(MODELS[number % 5]())
                with suppress(EditError):
                    edit(Pick(model, (number * 7, number * 5, number), 1))
            if called == expected:
                return
    assert called == expected, expected - called
