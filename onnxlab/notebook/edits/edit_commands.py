"""What can be done to a model by hand: every gesture with what it takes, what it does, and its line of Python.

A gesture calls the same methods as a cell would; its line is what somebody would write to have the same done, and is
shown beside the edit in the page's history.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxlab.notebook.edits.edit_command import KINDS, EditCommand, Given, called, subject_of
from onnxlab.notebook.edits.model_commands import GESTURES as OF_MODELS
from onnxlab.notebook.edits.node_commands import GESTURES as OF_NODES
from onnxlab.notebook.edits.value_commands import GESTURES as OF_VALUES
from onnxlab.notebook.protocol.messages import ProtocolError

if TYPE_CHECKING:
    from onnxlab.model import Model

GESTURES: Mapping[str, EditCommand] = {**OF_MODELS, **OF_NODES, **OF_VALUES}


def line(model: "Model", name: str, subject: Sequence[int], given: Given) -> str:
    """A gesture in Python, for the model as it is before. Raises what `perform` does before it acts."""
    gesture = check(name, subject, given)
    return gesture.line(subject_of(model, gesture, subject), given)


def perform(model: "Model", name: str, subject: Sequence[int], given: Given, origin: str) -> None:
    """Do a gesture as one undo step.

    Args:
        subject: ids of what it is done to; empty for the model.
        given: its parameters.
        origin: the view that asked.

    Raises:
        ProtocolError: there is no such gesture, or its parameters do not fit.
        NameLookupError: the subject is not in the model any more.
        EditError: the model refuses; nothing changed.
    """
    gesture = check(name, subject, given)
    on = subject_of(model, gesture, subject)
    shown = {key: value for key, value in given.items() if isinstance(value, str)}
    label = gesture.label.format(called(model, gesture, subject), **shown)
    with model.graph.edit(label, origin):
        gesture.act(on, given)


def check(name: str, subject: Sequence[int], given: Given) -> EditCommand:
    """The gesture of this name, its parameters looked at. Raises ProtocolError as `perform` does."""
    gesture = GESTURES.get(name)
    if gesture is None:
        raise ProtocolError("malformed", f"edit: no gesture {name!r}; there are {', '.join(GESTURES)}")
    if given.keys() != gesture.takes.keys():
        takes = ", ".join(gesture.takes) or "nothing"
        raise ProtocolError("malformed", f"edit: {name} takes {takes}, got {', '.join(map(str, given)) or 'nothing'}")
    for key, kind in gesture.takes.items():
        words, fits = KINDS[kind]
        if not fits(given[key]):
            raise ProtocolError("malformed", f"edit: {key} of {name} is {words}, got {str(given[key])[:60]!r}")
    wanted = {"model": len(subject) == 0, "nodes": len(subject) > 0}.get(gesture.subject, len(subject) == 1)
    if not wanted:
        raise ProtocolError("malformed", f"edit: {name} is done to one {gesture.subject}, got {len(subject)} ids")
    return gesture
