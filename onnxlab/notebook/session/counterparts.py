"""Models that a view can be compared with: earlier states, others of the kernel, files beside it, files of the page.

The page chooses by ids that the kernel gave out; no text of it becomes a path or the name of a variable.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import IPython

from onnxlab.errors import LoadError
from onnxlab.formats import registry
from onnxlab.model import Model, load
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.notebook.session.hub import open_models
from onnxlab.printable import printable

MOST = 100
"""Models of each kind that are listed."""


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A model to compare with.

    Attributes:
        kind: "state" of the history, "model" of the kernel, or "file".
        title: the name that it has in the list and above its picture.
        about: what else tells it from the others.
        opened: makes the model.
    """

    kind: str
    title: str
    about: str
    opened: Callable[[], Model]


class Counterparts:
    """The list of models that a view can be compared with, each under the id that the page gets."""

    def __init__(self) -> None:
        self._listed: dict[str, Counterpart] = {}
        self._ids = count(1)

    def listed(self, model: Model) -> JSON:
        """The models that there are now: earlier states first, then models of the kernel, then files."""
        with model.graph.lock:
            states = [*_saved(model), *islice(_states(model), MOST)]
        kinds = (states, islice(_models(model), MOST), islice(_files(model), MOST))
        self._listed = {str(next(self._ids)): counterpart for kind in kinds for counterpart in kind}
        rows = [
            {"id": ident, "kind": entry.kind, "title": printable(entry.title), "about": printable(entry.about)}
            for ident, entry in self._listed.items()
        ]
        return {"counterparts": rows}

    def chosen(self, ident: str) -> Counterpart:
        """The model of an id. Raises ProtocolError where the list has no such id any more."""
        if ident not in self._listed:
            raise ProtocolError("gone", "The list of models is a former one.", "Open it again.")
        return self._listed[ident]


def _saved(model: Model) -> Iterator[Counterpart]:
    """The model's own file."""
    if model.path is not None and Path(model.path).is_file():
        path = Path(model.path)
        yield Counterpart("state", path.name, "the file as it is now", partial(_loaded, path))


def _states(model: Model) -> Iterator[Counterpart]:
    """States of the history that can still be made, the last one first; as it was loaded, before all of them."""
    history = model.history
    labels = ["as loaded", *history.all_labels]
    first = len(history.dropped)
    for position in dict.fromkeys((first, *range(len(labels) - 1, first, -1))):
        if position == history.position:
            continue
        since = history.position - position
        about = "undone" if since < 0 else "the last edit undone" if since == 1 else f"{since} edits ago"
        title = labels[position] if position == 0 else f"after: {labels[position]}"
        yield Counterpart("state", title, about, partial(_earlier, model, position, labels[1 : position + 1]))


def _earlier(model: Model, position: int, labels: list[str]) -> Model:
    """A state of the history. Raises ProtocolError where other edits were made meanwhile."""
    with model.graph.lock:
        if model.history.all_labels[:position] != labels:
            raise ProtocolError("gone", "The history has other edits now.", "Open the list again.")
        return model.earlier(position)


def _models(model: Model) -> Iterator[Counterpart]:
    """Models that variables of the notebook hold, then those that other views show."""
    shell: Any = IPython.get_ipython()
    variables = dict(shell.user_ns) if shell is not None else {}
    seen = {id(model)}
    for name, held in variables.items():
        if issubclass(type(held), Model) and not name.startswith("_") and id(held) not in seen:
            seen.add(id(held))
            yield Counterpart("model", name, held.name, partial(_alive, weakref.ref(held)))
    for shown in open_models():
        if id(shown) not in seen:
            seen.add(id(shown))
            yield Counterpart("model", shown.name, "in another view", partial(_alive, weakref.ref(shown)))


def _alive(reference: "weakref.ref[Model]") -> Model:
    """A model that the list does not keep alive. Raises ProtocolError where it is gone."""
    model = reference()
    if model is None:
        raise ProtocolError("gone", "The model is no longer in the kernel.", "Open the list again.")
    return model


def _files(model: Model) -> Iterator[Counterpart]:
    """Files of models beside the model's own; of a model without a file, those of the kernel's folder."""
    file = Path(model.path) if model.path is not None else None
    folder = file.parent if file is not None else Path.cwd()
    try:
        sizes = {path: path.stat().st_size for path in sorted(folder.iterdir()) if path != file and _is_model(path)}
    except OSError:
        return
    for path, size in sizes.items():
        yield Counterpart("file", path.name, f"{size:,} bytes", partial(_loaded, path))


def _is_model(path: Path) -> bool:
    form = registry.by_suffix(path)
    return form is not None and form.read is not None and not form.weights and path.is_file()


def _loaded(path: Path) -> Model:
    try:
        return load(path)
    except LoadError as error:
        raise ProtocolError("failed", printable(str(error))) from error
